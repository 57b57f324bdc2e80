// Turns results into a table for people and into JSON for comparing runs.
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { dirname } from 'node:path'
import type { Spread } from './figures.ts'
import type { Target, BenchResult, Deliver, Floor, Ingest, WorkersResult } from './results.ts'
import type { Settings } from './sides.ts'

const HEADINGS = ['bench', 'side', 'median', 'spread', 'ratio', 'target', 'verdict'] as const
type Row = Readonly<Partial<Record<(typeof HEADINGS)[number], string>>>

export interface Report {
  readonly date: string
  /** The load of the machine before the first measurement. */
  readonly loadBefore: number
  readonly options: Readonly<Record<string, unknown>>
  readonly sides: Readonly<Record<string, Settings>>
  readonly results: readonly BenchResult[]
}

export async function writeReport(file: string, report: Report): Promise<void> {
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryMegabytes: Math.round(totalmem() / 1e6),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
  }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify({ ...report, machine }, null, 2)}\n`)
}

export function tableOf(results: readonly BenchResult[]): string {
  const rows: readonly Row[] = [
    Object.fromEntries(HEADINGS.map((heading) => [heading, heading])),
    ...results.flatMap(rowsOf),
  ]
  const widths = HEADINGS.map((heading) => Math.max(...rows.map((row) => (row[heading] ?? '').length)))
  const lines = rows.map((row) =>
    HEADINGS.map((heading, column) => (row[heading] ?? '').padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return lines.join('\n')
}

function rowsOf(result: BenchResult): readonly Row[] {
  const { bench } = result
  switch (result.kind) {
    case 'comparison':
      return result.rates.map(({ side, perSecond }, place) => ({
        bench,
        side,
        ...figures(perSecond, (value) => `${Math.round(value).toLocaleString('en')}/s`),
        ...(place === 0 && result.ratio !== undefined
          ? {
              ratio: ratioText(result.ratio.spread),
              target: targetText(result.ratio.target),
              verdict: result.ratio.verdict,
            }
          : {}),
      }))
    case 'workers':
      return besideRows(result)
    case 'lanes':
      return [
        ...result.growth.map((grown) => ({
          bench,
          side: `${grown.lanes.toLocaleString('en')} lanes, due by ${grown.due}`,
          ...figures(grown.micros, (value) => `${Math.round(value).toLocaleString('en')} µs`),
          ratio: ratioText(grown.spread),
          target: targetText(grown.target),
          verdict: grown.verdict,
        })),
        {
          bench,
          side: 'peak memory',
          ...figures(result.memory.megabytes, (value) => `${value.toFixed(0)} MB`),
          target: targetText(result.memory.target),
          verdict: result.memory.verdict,
        },
      ]
    case 'ingest':
      return [
        ...besideRows(result),
        ...(result.floor === undefined ? [] : [floorRow(bench, result.floor)]),
        {
          bench,
          side: `answers at ${result.calm.perSecond.toLocaleString('en')}/s`,
          median: `p99 ${result.calm.p99.toFixed(1)} ms`,
          target: `${targetText(result.calm.target)} ms`,
          verdict: result.calm.verdict,
        },
      ]
    case 'deliver':
      return [
        ...besideRows(result),
        floorRow(bench, result.floor),
        ...result.cpu.map(({ side, micros }) => ({
          bench,
          side: `${side}, CPU of a POST`,
          ...figures(micros, (value) => `${Math.round(value).toLocaleString('en')} µs`),
        })),
      ]
    case 'skipped':
      return [{ bench, side: `skipped: ${result.why}` }]
    case 'failed':
      return [{ bench, side: `failed: ${result.why}` }]
  }
}

/** Several sides: the first one is compared with each of the others. */
function besideRows({ bench, rates, ratios }: Ingest | Deliver | WorkersResult): readonly Row[] {
  return rates.map(({ side, perSecond }) => {
    const against = ratios.find((ratio) => ratio.side === side)
    const judged =
      against === undefined
        ? {}
        : { ratio: ratioText(against.spread), target: targetText(against.target), verdict: against.verdict }
    return { bench, side, ...figures(perSecond, (value) => `${Math.round(value).toLocaleString('en')}/s`), ...judged }
  })
}

function floorRow(bench: string, { side, of, spread }: Floor): Row {
  return { bench, side: `${side}, of ${of}`, ratio: ratioText(spread) }
}

function figures(spread: Spread, text: (value: number) => string): Row {
  return { median: text(spread.median), spread: `${text(spread.least)} – ${text(spread.most)}` }
}

function ratioText({ median, least, most }: Spread): string {
  return `${median.toFixed(2)} (${least.toFixed(2)} – ${most.toFixed(2)})`
}

function targetText(target: Target): string {
  switch (target.kind) {
    case 'at least':
      return `≥ ${target.bound}${target.goal === undefined ? '' : ` (goal ${target.goal})`}`
    case 'at most':
      return `≤ ${target.bound}`
  }
}
