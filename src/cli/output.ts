// `Output` prints tables for people and JSON for programs. It escapes untrusted text that could control a terminal.
import { once } from 'node:events'
import { styleText } from 'node:util'
import type { Millis } from '../clock.ts'
import { toSafeJson } from '../observe/explain/format.ts'
import { EXIT } from './exit.ts'

// Standard output is for the result of the command. Logs and prints of the configured app go to standard error.
const { stdout, stderr } = process
const write = stdout.write.bind(stdout)

export function writeOutput(text: string): void {
  write(text, handleWriteError)
}

/** `waitForDrain` resolves when standard output can take more. */
export async function waitForDrain(): Promise<void> {
  if (stdout.writableNeedDrain) await once(stdout, 'drain')
}

export function exitOnWriteError(): void {
  stdout.on('error', handleWriteError)
}

let isEnding = false

/** A closed pipe, as in `sluice dead list | head`, is not a failure. Any other write error ends the program. */
function handleWriteError(error?: NodeJS.ErrnoException | null): void {
  if (error === undefined || error === null || isEnding) return
  if (error.code === 'EPIPE') process.exit(EXIT.done)
  isEnding = true
  stderr.write(`The output could not be written: ${error.message}\n`, () => process.exit(EXIT.failed))
}

/** `redirectStdout` sends everything that other code prints from now on to standard error. */
export function redirectStdout(): void {
  stdout.write = stderr.write.bind(stderr)
}

/** `exitAfterFlush` ends the process once everything is written. */
export function exitAfterFlush(code: number): void {
  write('', () => stderr.write('', () => process.exit(code)))
}

/** A column shows one member under its own name, or what `cell` returns. */
export type Column<T> = (keyof T & string) | ComputedColumn<T>

interface ComputedColumn<T> {
  readonly title: string
  readonly cell: (row: T) => string | number | undefined
}

/** A label and its value. A field with an undefined value is omitted. */
export type Field = readonly [string, string | number | undefined]

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export interface OutputOptions {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly asJson: boolean
  readonly isVerbose: boolean
}

/** Longer cells would wrap the lines of a table on a terminal. */
const CELL_MAX = 48
const GAP = '  '

export class Output {
  readonly asJson: boolean
  readonly stderr: NodeJS.WriteStream
  readonly #deps: OutputOptions

  constructor(deps: OutputOptions) {
    this.asJson = deps.asJson
    this.stderr = deps.stderr
    this.#deps = deps
  }

  printJson(value: unknown): void {
    writeOutput(`${toSafeJson(value)}\n`)
  }

  print(text: string): void {
    writeOutput(`${text}\n`)
  }

  /** `note` prints to standard error, so programs that read the result do not get it. */
  note(text: string): void {
    this.stderr.write(`${text}\n`)
  }

  printVerbose(text: string): void {
    if (this.#deps.isVerbose) this.note(text)
  }

  /** Colours only on a terminal, and not with `NO_COLOR`. */
  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#deps.stdout })
  }

  table<T>(shown: readonly Column<T>[], rows: readonly T[], none: string): void {
    if (rows.length === 0) return this.note(none)
    const columns = shown.map(toComputedColumn)
    const cells = rows.map((row) => columns.map(({ cell }) => this.#cell(cell(row))))
    const widths = columns.map(({ title }, at) => Math.max(title.length, ...cells.map((row) => (row[at] ?? '').length)))
    const lineOf = (texts: readonly string[]): string =>
      texts
        .map((text, at) => text.padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd()
    this.print(this.paint('bold', lineOf(columns.map(({ title }) => title))))
    for (const row of cells) this.print(lineOf(row))
  }

  fields(fields: readonly Field[]): void {
    const shown = fields.filter(([, value]) => value !== undefined)
    const width = Math.max(0, ...shown.map(([name]) => name.length))
    for (const [name, value] of shown)
      this.print(`${this.paint('bold', name.padEnd(width))}${GAP}${escapeText(String(value))}`)
  }

  #cell(value: string | number | undefined): string {
    const text = escapeText(String(value ?? '-'))
    if (!this.#deps.stdout.isTTY || text.length <= CELL_MAX) return text
    return `${text.slice(0, CELL_MAX - 2)}..`
  }
}

function toComputedColumn<T>(column: Column<T>): ComputedColumn<T> {
  if (typeof column !== 'string') return column
  return { title: column, cell: (row) => row[column] as string | number | undefined }
}

/** `escapeText` spells out characters of untrusted text that move the cursor, ring the bell or reverse the text. */
export function escapeText(text: string): string {
  return text.replaceAll(/[^ -~]/gu, (deadLetter) => toSafeJson(deadLetter).slice(1, -1))
}

/** `escapeLines` does the same for a text that may have several lines. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeText).join('\n')
}

export function formatTime(at: Millis | undefined): string | undefined {
  if (at === undefined || Math.abs(at) > LATEST_DATE) return undefined
  return new Date(at).toISOString().replace('T', ' ').replace(/\.\d+/, '')
}

/** The latest time that a Date can represent. */
const LATEST_DATE = 8.64e15

/** `formatDuration` writes durations as people do: 250 ms, 4.2 s, 12 m, 5 h, 3 d. */
export function formatDuration(ms: Millis): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} m`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} d`
}

export function formatCount(count: number, what: string, whats = `${what}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? what : whats}`
}
