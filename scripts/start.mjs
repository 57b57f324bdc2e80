// `npm start`: from a fresh clone to the running demo in one command.
import { build } from './build.mjs'
import { main, pinnedNode, run } from './lib.mjs'
import { setup } from './setup.mjs'

await main(async (args) => {
  await setup()
  await build()
  const { code } = await run(pinnedNode, ['--no-warnings', 'examples/demo/main.ts', ...args])
  return code
})
