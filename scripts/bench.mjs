// `npm run bench`: measures what was built, on the pinned Node, so that figures can be compared between machines.
import { build } from './build.mjs'
import { main, pinnedNode, run } from './lib.mjs'
import { setup } from './setup.mjs'

await main(async (args) => {
  await setup()
  await build()
  const { code } = await run(pinnedNode, ['bench/main.ts', ...args])
  return code
})
