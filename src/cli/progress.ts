// How far something long has come: a bar with rate and end on a terminal, and a line now and then anywhere else.
import type { Clock, Millis } from '../clock.ts'

interface ProgressStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface ProgressParts {
  readonly stream: ProgressStream
  readonly clock: Clock
  readonly what: string
  readonly total: number
}

const DRAWN_EVERY: Millis = 100
const SAID_EVERY: Millis = 5_000
const BAR = 24

export class Progress {
  readonly #parts: ProgressParts
  readonly #began: Millis
  #shown: Millis | undefined
  #done = 0

  constructor(parts: ProgressParts) {
    this.#parts = parts
    this.#began = parts.clock.monotonic()
  }

  at(done: number): void {
    const { clock, stream } = this.#parts
    const now = clock.monotonic()
    this.#done = done
    const since = now - (this.#shown ?? (stream.isTTY === true ? -Infinity : this.#began))
    if (since < (stream.isTTY === true ? DRAWN_EVERY : SAID_EVERY)) return
    this.#shown = now
    this.#show(stream.isTTY === true)
  }

  /** The last word, whatever was shown before. */
  end(): void {
    const isDrawn = this.#parts.stream.isTTY === true
    this.#show(isDrawn)
    if (isDrawn) this.#parts.stream.write('\n')
  }

  #show(isDrawn: boolean): void {
    const { stream } = this.#parts
    const text = isDrawn ? `${this.#bar()}  ${this.#figures()}` : this.#figures()
    if (isDrawn) stream.write(`\r\u001b[K${text.slice(0, (stream.columns ?? 100) - 1)}`)
    else stream.write(`${text}\n`)
  }

  #bar(): string {
    const { total } = this.#parts
    const full = total === 0 ? BAR : Math.min(BAR, Math.floor((this.#done / total) * BAR))
    return `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}]`
  }

  #figures(): string {
    const { what, total, clock } = this.#parts
    const seconds = Math.max(1, clock.monotonic() - this.#began) / 1_000
    const rate = this.#done / seconds
    const percent = total === 0 ? 100 : Math.floor((Math.min(this.#done, total) / total) * 100)
    const so = `${what}  ${percent} %  ${grouped(this.#done)} of ${grouped(total)}  ${grouped(Math.round(rate))}/s`
    if (this.#done >= total) return `${so}  took ${clocked(seconds)}`
    if (rate === 0) return so
    const left = (total - this.#done) / rate
    const ends = new Date(clock.now() + left * 1_000)
    return `${so}  ends ${ends.toISOString().slice(11, 19)}Z, in ${clocked(left)}`
  }
}

function grouped(count: number): string {
  return count.toLocaleString('en')
}

function clocked(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} m ${whole % 60} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} m`
}
