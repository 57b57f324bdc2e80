// `npm run bench`: measures Sluice beside its peers in one run, and reports whether the targets are reached.
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { withContenders } from './contenders.ts'
import { measureDeliver } from './deliver/measure.ts'
import { measureIngest } from './ingest/measure.ts'
import { measureLanes } from './lanes.ts'
import { readOptions, USAGE } from './options.ts'
import type { Options } from './options.ts'
import { tableOf, writeReport } from './report.ts'
import { verdictsOf } from './results.ts'
import type { BenchName, BenchResult, ComparedBench } from './results.ts'
import { compare } from './rounds.ts'
import { makeRunFolder } from './run-folder.ts'
import type { Settings } from './sides.ts'
import { findSubject } from './subject.ts'
import { measureWorkers } from './workers/measure.ts'

const BUSY = 0.5
const started = performance.now()
const folder = makeRunFolder()

function progress(line: string): void {
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6)
  process.stderr.write(`${seconds} s  ${line}\n`)
}

async function attempt(bench: BenchName, run: () => Promise<BenchResult>): Promise<BenchResult> {
  try {
    return await run()
  } catch (error) {
    console.error(error)
    return { kind: 'failed', bench, why: error instanceof Error ? error.message : String(error) }
  }
}

async function runCompared(
  benches: readonly ComparedBench[],
  options: Options,
  sides: Record<string, Settings>,
): Promise<readonly BenchResult[]> {
  if (benches.length === 0) return []
  progress('starting PostgreSQL …')
  return withContenders(folder, options, async (contenders) => {
    if (contenders.subject === undefined) progress('there is no bench/sluice.ts: the peer runs alone')
    const results: BenchResult[] = []
    for (const side of [contenders.subject, contenders.peer]) if (side !== undefined) sides[side.name] = side.settings
    for (const bench of benches) {
      results.push(await attempt(bench, () => compare(bench, contenders, options.rounds, progress)))
    }
    return results
  })
}

async function runLanes(options: Options): Promise<BenchResult> {
  if ((await findSubject()) === undefined) {
    return { kind: 'skipped', bench: 'lanes', why: 'there is no bench/sluice.ts' }
  }
  return attempt('lanes', () => measureLanes(folder, options.lanes, progress))
}

function defaultFile(date: string, { benches, store }: Options): string {
  const name = `${date.slice(0, 19).replaceAll(':', '-')}-${benches.join('-')}${store === 'sqlite' ? '' : `-${store}`}.json`
  return fileURLToPath(new URL(`./results/${name}`, import.meta.url))
}

async function main(options: Options): Promise<number> {
  const date = new Date().toISOString()
  const loadBefore = loadavg()[0] ?? 0
  if (loadBefore > BUSY) progress(`the machine is busy (load ${loadBefore.toFixed(1)}): expect scattered figures`)
  const sides: Record<string, Settings> = {}
  const compared = options.benches.filter((bench) => bench === 'append' || bench === 'drain')
  const results = [...(await runCompared(compared, options, sides))]
  if (options.benches.includes('workers')) {
    results.push(await attempt('workers', () => measureWorkers(folder, options.workers, progress)))
  }
  if (options.benches.includes('lanes')) results.push(await runLanes(options))
  if (options.benches.includes('ingest')) {
    results.push(await attempt('ingest', () => measureIngest(folder, options.ingest, progress)))
  }
  if (options.benches.includes('deliver')) {
    results.push(await attempt('deliver', () => measureDeliver(folder, options.deliver, progress)))
  }
  const file = options.jsonFile ?? defaultFile(date, options)
  await writeReport(file, { date, loadBefore, options: { ...options }, sides, results })
  console.log(`\n${tableOf(results)}\n\n${file}`)
  const failed = results.some((result) => result.kind === 'failed')
  const missed = results.flatMap(verdictsOf).some((verdict) => verdict !== 'met')
  return failed || (options.strict && missed) ? 1 : 0
}

/** Undefined if the command line was wrong; the error is then printed already. */
function optionsOrUsage(line: readonly string[]): Options | undefined {
  try {
    return readOptions(line)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    console.error(`${error.message}\n\n${USAGE}`)
    return undefined
  }
}

// These handlers call process.exit, because only then the exit handlers run that remove the folder of the run.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, (_name, number: number) => process.exit(128 + number))
}

const options = optionsOrUsage(process.argv.slice(2))
if (options === undefined) process.exit(2)
try {
  process.exit(await main(options))
} catch (error) {
  console.error(error)
  process.exit(1)
}
