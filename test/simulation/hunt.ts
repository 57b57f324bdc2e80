// Hunts one store for a broken rule, in a process of its own:
//   node test/simulation/hunt.ts <memory|sqlite> <runs> <seed> [path]
// Ends with 1 and the shortest history found, or with 0. With SLUICE_COVERAGE=1 it says what the histories reached.
import { opener, type StoreName, STORES } from './stores.ts'
import { simulate } from './simulate.ts'

const [name = 'memory', runs = '1000', seed = '1', path] = process.argv.slice(2)

function isStore(text: string): text is StoreName {
  return STORES.some((one) => one === text)
}

if (!isStore(name)) throw new Error(`no store ${name}: one of ${STORES.join(', ')}`)

const report = await simulate({
  open: opener(name),
  runs: Number(runs),
  seed: Number(seed),
  ...(path === undefined ? {} : { path }),
})
const { violation, ms } = report
const speed = Math.round((report.runs * 1000) / Math.max(1, ms))
console.log(`${name}: ${report.runs} histories in ${ms} ms, ${speed} a second, seed ${seed}, trace ${report.trace}`)
if (process.env['SLUICE_COVERAGE'] === '1') {
  for (const [what, n] of [...report.reached].toSorted(([a], [b]) => a.localeCompare(b))) console.log(`${n}\t${what}`)
}
if (violation !== undefined) {
  console.log(`violation (seed ${violation.seed}, path ${violation.path}, ${violation.shrinks} shrinks)`)
  for (const line of violation.commands) console.log(`  ${line}`)
  console.log(violation.message)
  process.exitCode = 1
}
