// `npm run bench`: measures the built package on the pinned Node, so that figures can be compared between machines.
// `npm run bench -- figures` runs the tests that hold a figure against its limit.
import { build } from './build.mjs'
import { main, pinnedNode, run } from './lib.mjs'
import { setup } from './setup.mjs'
import { close, runTier } from './vitest.mjs'

await main(async (args) => {
  await setup()
  await build()
  if (args[0] === 'figures') return close(await runTier('figures', args.slice(1)))
  const { code } = await run(pinnedNode, ['bench/main.ts', ...args])
  return code
})
