// `npm run example <name>`: sets the clone up, then runs examples/<name>/main.ts on the pinned Node. Without a name, it lists
// the examples.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { main, pinnedNode, root, run } from './lib.mjs'
import { setup } from './setup.mjs'

const folder = join(root, 'examples')
const isApp = (name) => existsSync(join(folder, name, 'main.ts'))

await main(async ([name = '', ...args]) => {
  if (!/^[\w-]+$/.test(name) || !isApp(name)) {
    console.error(name === '' ? 'Which example? These exist:' : `There is no example named "${name}". These exist:`)
    for (const one of readdirSync(folder).filter(isApp)) console.error(`  ${one}`)
    return 2
  }
  await setup()
  await build()
  const { code } = await run(pinnedNode, ['--no-warnings', join('examples', name, 'main.ts'), ...args])
  return code
})
