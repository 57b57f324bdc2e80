// Writes docs/openapi.json, the document that `/openapi.json` returns. Run it after a change of the routes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { main, pinnedNode, root, run } from './lib.mjs'

const file = join(root, 'docs', 'openapi.json')
const print = `import { buildOpenApi } from './src/api/openapi.ts'; process.stdout.write(JSON.stringify(buildOpenApi()))`

await main(async () => {
  const { code, output } = await run(pinnedNode, ['--input-type=module', '--eval', print], { capture: true })
  if (code !== 0) return code
  writeFileSync(file, output)
  return (await run('oxfmt', [file])).code
})
