// An index by hashes is written all over: one page for each entry. So the newest entries wait in memory, sorted into ranges of
// the index, and one range at a time is written with a commit. Nothing is at risk: what they are about is in the file, and memory
// is filled from that when it is opened.
import type { SQLInputValue } from 'node:sqlite'
import { number, text, type Statements } from './statements.ts'

const RANGES = 256
/** A range that has so many times as many as others usually have when they are written does not wait for its turn. */
const CROWDED = 8

export interface LateIndexParts {
  /** Of a key and a number, without its values. */
  readonly insert: string
  /** What stands in the index for a name. */
  readonly keyOf: (name: string) => SQLInputValue
  /** At most so many, and half of that most of the time; as many are looked at when memory is filled, twice at most. */
  readonly inMemory: number
  /** In `meta`: numbers from this one on may not be in the index. */
  readonly since: string
  /** Numbers and their names from a number on, as the file has them. */
  readonly unwritten: string
  /** Now the index has it. */
  readonly wrote?: (name: string) => void
}

/** Most names have one. */
type Numbers = number | readonly number[]

interface Range {
  readonly numbers: Map<string, Numbers>
  size: number
}

interface Entry {
  readonly name: string
  readonly n: number
}

export class LateIndex {
  readonly #sql: Statements
  readonly #parts: LateIndexParts
  readonly #ranges = Array.from({ length: RANGES }, (): Range => ({ numbers: new Map(), size: 0 }))
  /** What this commit put into memory and took out of it. */
  readonly #came: Entry[] = []
  readonly #went: Entry[] = []
  #since: number
  /** Of all that came. */
  #highest: number
  #cameSince = 0
  /** The range that is written next. */
  #next = 0

  constructor(sql: Statements, parts: LateIndexParts) {
    this.#sql = sql
    this.#parts = parts
    this.#since = number(sql.get('select value from meta where name = ?', parts.since)?.[0] ?? 0)
    this.#highest = this.#since - 1
    for (const [n, name] of sql.all(parts.unwritten, this.#since)) this.#remember(text(name), number(n))
  }

  /** Those in memory. */
  of(name: string): readonly number[] {
    const known = rangeOf(this.#ranges, name).numbers.get(name)
    return known === undefined ? NONE : listOf(known)
  }

  add(name: string, n: number): void {
    // Memory would not be filled with it: newer ones are in the index already.
    if (n < this.#since) this.#write(name, n)
    else if (this.#remember(name, n)) this.#came.push({ name, n })
    const range = rangeOf(this.#ranges, name)
    if (range.size >= CROWDED * this.#perRange) this.#writeRange(range)
    this.pass(n)
  }

  /** One that does without, and makes those before it older all the same. */
  pass(n: number): void {
    this.#highest = Math.max(this.#highest, n)
    if (++this.#cameSince < this.#perRange) return
    this.#cameSince = 0
    const range = this.#ranges[this.#next]
    if (range !== undefined) this.#writeRange(range)
    this.#next = (this.#next + 1) % RANGES
    if (this.#next === 0) this.#roundDone()
  }

  get #perRange(): number {
    return this.#parts.inMemory / RANGES
  }

  /** The index is not looked at. */
  remove(name: string, n: number): void {
    if (this.#forget(name, n)) this.#went.push({ name, n })
  }

  /** After a rollback memory is again as it was: what was written or removed is back, what came is gone. */
  letGo(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      for (const { name, n } of this.#went) this.#remember(name, n)
      for (const { name, n } of this.#came) this.#forget(name, n)
    }
    this.#came.length = 0
    this.#went.length = 0
  }

  #remember(name: string, n: number): boolean {
    const range = rangeOf(this.#ranges, name)
    const known = range.numbers.get(name)
    if (known !== undefined && listOf(known).includes(n)) return false
    range.numbers.set(name, known === undefined ? n : [...listOf(known), n])
    range.size++
    return true
  }

  #forget(name: string, n: number): boolean {
    const range = rangeOf(this.#ranges, name)
    const known = listOf(range.numbers.get(name) ?? NONE)
    const left = known.filter((other) => other !== n)
    if (left.length === known.length) return false
    if (left.length === 0) range.numbers.delete(name)
    else range.numbers.set(name, left)
    range.size--
    return true
  }

  #writeRange(range: Range): void {
    for (const [name, known] of range.numbers) {
      for (const n of listOf(known)) {
        this.#write(name, n)
        this.#went.push({ name, n })
      }
    }
    range.numbers.clear()
    range.size = 0
  }

  #write(name: string, n: number): void {
    this.#parts.wrote?.(name)
    this.#sql.behind(this.#parts.insert, [this.#parts.keyOf(name), n])
  }

  /** Once round: whatever is older than all that is in memory is in the index. */
  #roundDone(): void {
    let oldest = this.#highest + 1
    for (const range of this.#ranges) {
      for (const known of range.numbers.values()) oldest = Math.min(oldest, ...listOf(known))
    }
    this.#since = oldest
    this.#sql.run('update meta set value = ? where name = ?', oldest, this.#parts.since)
  }
}

const NONE: readonly number[] = []

function listOf(known: Numbers): readonly number[] {
  return typeof known === 'number' ? [known] : known
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIXBITS = new Uint8Array(128)
for (let value = 0; value < BASE64URL.length; value++) SIXBITS[BASE64URL.charCodeAt(value)] = value

/** The first bits of a hash: of each character 6. */
export function prefixOf(hash: string, characters: number): number {
  let h = 0
  for (let at = 0; at < characters; at++) h = h * 64 + (SIXBITS[hash.charCodeAt(at)] ?? 0)
  return h
}

function rangeOf<T>(ranges: readonly T[], name: string): T {
  const range = ranges[Math.floor(prefixOf(name, 2) / (4_096 / RANGES))]
  if (range === undefined) throw new RangeError('There is a range for every name.')
  return range
}
