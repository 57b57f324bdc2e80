// Shows the progress of a long operation: a bar with rate and remaining time on a terminal, occasional lines elsewhere.
import type { Clock, Millis } from '../clock.ts'

interface ProgressStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface ProgressOptions {
  readonly stream: ProgressStream
  readonly clock: Clock
  readonly what: string
  readonly total: number
  /** What was done before, e.g. by an interrupted command. The rate does not count it. Default: 0. */
  readonly from?: number
}

const DRAWN_EVERY: Millis = 100
const PRINTED_EVERY: Millis = 5_000
const BAR = 24

export class Progress {
  readonly #deps: ProgressOptions
  readonly #startedAt: Millis
  #shownAt: Millis | undefined
  #done: number

  constructor(deps: ProgressOptions) {
    this.#deps = deps
    this.#done = deps.from ?? 0
    this.#startedAt = deps.clock.monotonic()
  }

  update(done: number): void {
    const { clock, stream } = this.#deps
    const now = clock.monotonic()
    this.#done = done
    const since = now - (this.#shownAt ?? (stream.isTTY === true ? -Infinity : this.#startedAt))
    if (since < (stream.isTTY === true ? DRAWN_EVERY : PRINTED_EVERY)) return
    this.#shownAt = now
    this.#show(stream.isTTY === true)
  }

  /** `end` always prints the final state. */
  end(): void {
    const isDrawn = this.#deps.stream.isTTY === true
    this.#show(isDrawn)
    if (isDrawn) this.#deps.stream.write('\n')
  }

  #show(isDrawn: boolean): void {
    const { stream } = this.#deps
    const text = isDrawn ? `${this.#bar()}  ${this.#summary()}` : this.#summary()
    if (isDrawn) stream.write(`\r\u001b[K${text.slice(0, (stream.columns ?? 100) - 1)}`)
    else stream.write(`${text}\n`)
  }

  #bar(): string {
    const { total } = this.#deps
    const full = total === 0 ? BAR : Math.min(BAR, Math.floor((this.#done / total) * BAR))
    return `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}]`
  }

  #summary(): string {
    const { what, total, clock, from = 0 } = this.#deps
    const seconds = Math.max(1, clock.monotonic() - this.#startedAt) / 1_000
    const rate = (this.#done - from) / seconds
    const percent = total === 0 ? 100 : Math.floor((Math.min(this.#done, total) / total) * 100)
    const text = `${what}  ${percent} %  ${formatNumber(this.#done)} of ${formatNumber(total)}  ${formatNumber(Math.round(rate))}/s`
    if (this.#done >= total) return `${text}  took ${formatSeconds(seconds)}`
    if (rate === 0) return text
    const left = (total - this.#done) / rate
    const ends = new Date(clock.now() + left * 1_000)
    return `${text}  ends ${ends.toISOString().slice(11, 19)}Z, in ${formatSeconds(left)}`
  }
}

function formatNumber(count: number): string {
  return count.toLocaleString('en')
}

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} m ${whole % 60} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} m`
}
