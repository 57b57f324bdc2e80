// Searches one store for a violated rule, in a process of its own:
//   node test/simulation/hunt.ts <memory|sqlite|limits:memory|limits:sqlite> <runs> <seed> [path]
// Exits with 1 and the shortest history that was found, or with 0. With SLUICE_COVERAGE=1 it prints what the histories reached;
// with SLUICE_SHRINK=0 it does not shorten the history.
import { simulateLimits } from './limits/simulate.ts'
import { simulate } from './simulate.ts'
import { opener, type StoreName, STORES } from './stores.ts'

const [what = 'memory', runs = '1000', seed = '1', path] = process.argv.slice(2)
const name = what.replace('limits:', '')

function isStore(text: string): text is StoreName {
  return STORES.some((one) => one === text)
}

if (!isStore(name)) throw new Error(`no store ${name}: one of ${STORES.join(', ')}`)

const hunt = what === name ? simulate : simulateLimits
const report = await hunt({
  open: opener(name),
  runs: Number(runs),
  seed: Number(seed),
  shrink: process.env['SLUICE_SHRINK'] !== '0',
  ...(path === undefined ? {} : { path }),
})
const { violation, ms } = report
const speed = Math.round((report.runs * 1000) / Math.max(1, ms))
console.log(`${what}: ${report.runs} histories in ${ms} ms, ${speed} a second, seed ${seed}, trace ${report.trace}`)
if (process.env['SLUICE_COVERAGE'] === '1') {
  for (const [reached, n] of [...report.reached].toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`${n}\t${reached}`)
}
if (violation !== undefined) {
  console.log(`violation (seed ${violation.seed}, path ${violation.path}, ${violation.shrinks} shrinks)`)
  for (const line of violation.commands) console.log(`  ${line}`)
  console.log(violation.message)
  process.exitCode = 1
}
