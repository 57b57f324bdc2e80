// `npm test`: from a fresh clone to a verdict in one command. `npm test -- <pattern>` runs only the tests that match, and
// `STORES=<stores> npm test` only those of these stores (vitest.config.ts), without the checks.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { check } from './check.mjs'
import { cache, main, pinnedNode, run, timed } from './lib.mjs'
import { setup } from './setup.mjs'

const report = join(cache, 'vitest.json')

await main(async (args) => {
  await timed('set-up', setup)
  await timed('build', build)
  if (args.length === 0 && (process.env.STORES ?? '') === '') {
    const wrong = await timed('check', check)
    if (wrong > 0) return close(0, wrong)
  }
  const code = await timed('tests', () => vitest(args))
  const { passed, failed } = tally()
  // An error outside any test fails the run too.
  return close(passed, code === 0 ? failed : Math.max(failed, 1))
})

/** The last line of every run, for people and for machines. */
function close(passed, failed) {
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

async function vitest(args) {
  mkdirSync(cache, { recursive: true })
  rmSync(report, { force: true })
  // Tests start hundreds of processes of the same files: each is compiled once.
  process.env.NODE_COMPILE_CACHE ??= join(cache, 'compiled')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const { code } = await run(pinnedNode, ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...args])
  return code
}

function tally() {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    const broken = testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0)
    return { passed: numPassedTests, failed: numFailedTests + broken.length }
  } catch {
    // Vitest did not get as far as a report.
    return { passed: 0, failed: 1 }
  }
}
