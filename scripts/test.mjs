// `npm test`: from a fresh clone to a verdict in one command. `npm test -- <pattern>` runs only the files that match, and
// `STORES=<stores> npm test` only the files of the named stores (vitest.config.ts). Both leave out the static checks.
// `npm run test:faults` runs the second tier: kills, races, planted bugs, pages in a browser and the oldest PostgreSQL.
import { installBrowser } from './browser.mjs'
import { build } from './build.mjs'
import { check } from './check.mjs'
import { main, timed } from './lib.mjs'
import { installRedisServer } from './redis-server.mjs'
import { setup } from './setup.mjs'
import { close, runTier } from './vitest.mjs'

await main(async (args) => {
  const isFaults = args[0] === '--faults'
  const patterns = isFaults ? args.slice(1) : args
  await timed('set-up', setup)
  installRedisServer()
  if (isFaults) installBrowser()
  await timed('build', build)
  if (!isFaults && patterns.length === 0 && (process.env.STORES ?? '') === '') {
    const failed = await timed('check', check)
    if (failed > 0) return close({ passed: 0, failed })
  }
  return close(await runTier(isFaults ? 'faults' : 'test', patterns))
})
