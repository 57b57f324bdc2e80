// `npm run prove -- <name>`: sets the clone up, then starts prove-run.ts, which needs the pinned Node.
import { build } from './build.mjs'
import { main, pinnedNode, run } from './lib.mjs'
import { setup } from './setup.mjs'

await main(async (args) => {
  await setup()
  await build()
  const { code } = await run(pinnedNode, ['scripts/prove-run.ts', ...args])
  return code
})
