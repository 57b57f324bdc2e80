// Runs the tests of one tier (see vitest.config.ts) and counts them.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cache, pinnedNode, run, timed } from './lib.mjs'

const report = join(cache, 'vitest.json')

export const TIERS = {
  test: ['light', 'apart', 'postgres', 'redis'],
  faults: ['faults', 'faults-postgres', 'faults-redis', 'postgres-15'],
  figures: ['figures'],
}

/** `runTier` runs a tier's tests, or those of its files that match a pattern, and resolves to the counts. */
export async function runTier(tier, patterns) {
  mkdirSync(cache, { recursive: true })
  rmSync(report, { force: true })
  // Tests start hundreds of processes from the same files, so each file is compiled once.
  process.env.NODE_COMPILE_CACHE ??= join(cache, 'compiled')
  const projects = TIERS[tier].map((name) => `--project=${name}`)
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...projects, ...reporters, ...patterns]
  const { code } = await timed('tests', () => run(pinnedNode, args))
  const { passed, failed } = tally()
  // An error outside any test fails the run too.
  return { passed, failed: code === 0 ? failed : Math.max(failed, 1) }
}

/** `close` prints the last line of a run, for people and for machines, and returns the exit code. */
export function close({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

function tally() {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    const broken = testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0)
    return { passed: numPassedTests, failed: numFailedTests + broken.length }
  } catch {
    // Vitest stopped before it wrote a report.
    return { passed: 0, failed: 1 }
  }
}
