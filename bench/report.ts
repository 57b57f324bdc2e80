// Turns results into the table for people and the JSON for comparing runs with each other.
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { dirname } from 'node:path'
import type { Spread } from './figures.ts'
import type { Asked, BenchResult, Deliver, Floor, Ingest, WorkersResult } from './results.ts'
import type { Settings } from './sides.ts'

const HEADINGS = ['bench', 'side', 'median', 'spread', 'ratio', 'asked', 'verdict'] as const
type Row = Readonly<Partial<Record<(typeof HEADINGS)[number], string>>>

export interface Report {
  readonly date: string
  /** How busy the machine was before anything was measured. */
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
              asked: askedText(result.ratio.asked),
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
          asked: askedText(grown.asked),
          verdict: grown.verdict,
        })),
        {
          bench,
          side: 'peak memory',
          ...figures(result.memory.megabytes, (value) => `${value.toFixed(0)} MB`),
          asked: askedText(result.memory.asked),
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
          asked: `${askedText(result.calm.asked)} ms`,
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

/** Several sides, of which all but the first are what that is compared with. */
function besideRows({ bench, rates, ratios }: Ingest | Deliver | WorkersResult): readonly Row[] {
  return rates.map(({ side, perSecond }) => {
    const against = ratios.find((ratio) => ratio.side === side)
    const judged =
      against === undefined
        ? {}
        : { ratio: ratioText(against.spread), asked: askedText(against.asked), verdict: against.verdict }
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

function askedText(asked: Asked): string {
  switch (asked.kind) {
    case 'at least':
      return `≥ ${asked.bound}${asked.hope === undefined ? '' : ` (hope ${asked.hope})`}`
    case 'at most':
      return `≤ ${asked.bound}`
  }
}
