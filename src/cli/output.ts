// What the command line prints: tables for people, JSON for programs, and nothing of a stranger's that could steer a terminal.
import { styleText } from 'node:util'
import type { Millis } from '../clock.ts'
import { json } from '../observe/explain-words.ts'
import { writeAnswer } from './answer-stream.ts'

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => string | number | undefined
}

/** A name and what stands behind it; undefined is left out. */
export type Field = readonly [string, string | number | undefined]

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export interface OutputParts {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly asJson: boolean
  readonly isVerbose: boolean
}

/** On a terminal: what is longer would break the lines of the table. */
const CELL_MAX = 48
const GAP = '  '

export class Output {
  readonly asJson: boolean
  readonly stderr: NodeJS.WriteStream
  readonly #parts: OutputParts

  constructor(parts: OutputParts) {
    this.asJson = parts.asJson
    this.stderr = parts.stderr
    this.#parts = parts
  }

  answer(value: unknown): void {
    writeAnswer(`${json(value)}\n`)
  }

  line(text: string): void {
    writeAnswer(`${text}\n`)
  }

  /** Beside the answer: whoever reads the answer by a program does not get it. */
  note(text: string): void {
    this.stderr.write(`${text}\n`)
  }

  tell(text: string): void {
    if (this.#parts.isVerbose) this.note(text)
  }

  /** In colour only where a person looks, and does not mind. */
  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#parts.stdout })
  }

  table<T>(columns: readonly Column<T>[], rows: readonly T[], none: string): void {
    if (rows.length === 0) return this.note(none)
    const cells = rows.map((row) => columns.map(({ cell }) => this.#cell(cell(row))))
    const widths = columns.map(({ title }, at) => Math.max(title.length, ...cells.map((row) => (row[at] ?? '').length)))
    const lineOf = (texts: readonly string[]): string =>
      texts
        .map((text, at) => text.padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd()
    this.line(this.paint('bold', lineOf(columns.map(({ title }) => title))))
    for (const row of cells) this.line(lineOf(row))
  }

  fields(fields: readonly Field[]): void {
    const shown = fields.filter(([, value]) => value !== undefined)
    const width = Math.max(0, ...shown.map(([name]) => name.length))
    for (const [name, value] of shown)
      this.line(`${this.paint('bold', name.padEnd(width))}${GAP}${plain(String(value))}`)
  }

  #cell(value: string | number | undefined): string {
    const text = plain(String(value ?? '-'))
    if (!this.#parts.stdout.isTTY || text.length <= CELL_MAX) return text
    return `${text.slice(0, CELL_MAX - 2)}..`
  }
}

/** Keys, errors and payloads are a stranger's: what moves a cursor, rings a bell or turns text around is spelled out. */
export function plain(text: string): string {
  return text.replaceAll(/[^ -~]/gu, (letter) => json(letter).slice(1, -1))
}

/** The same of a text that may have several lines. */
export function plainLines(text: string): string {
  return text.split('\n').map(plain).join('\n')
}

export function time(at: Millis | undefined): string | undefined {
  if (at === undefined || Math.abs(at) > LATEST) return undefined
  return new Date(at).toISOString().replace('T', ' ').replace(/\.\d+/, '')
}

/** The last moment that a Date can be. */
const LATEST = 8.64e15

/** As people write it: 250 ms, 4.2 s, 12 m, 5 h, 3 d. */
export function span(ms: Millis): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} m`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} d`
}

export function many(count: number, what: string, whats = `${what}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? what : whats}`
}
