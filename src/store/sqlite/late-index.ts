// An index by hashes is written all over: one page for each entry. So the newest entries wait in memory, sorted into ranges of
// the index, and one range at a time is written with a commit. Nothing is at risk: what they are about is in the file, and memory
// is filled from that when it is opened.
import type { SQLInputValue } from 'node:sqlite'
import { number, text, type Statements } from './statements.ts'

const RANGES = 256
/** A range that has so many times as many as others usually have when they are written does not wait for its turn. */
const CROWDED = 8

export interface LateIndexParts<K extends SQLInputValue> {
  /** Of a key and a number, without its values. */
  readonly insert: string
  /** What stands in the index for a name. */
  readonly keyOf: (name: string) => K
  /** After so many that came each range has been written once: a round. Memory is filled with at most those of three rounds. */
  readonly round: number
  /** In `meta`: numbers from this one on may not be in the index. */
  readonly since: string
  /** Numbers and their names from a number on, as the file has them. Undefined: nothing is added here. */
  readonly unwritten: string | undefined
  /** Now the index has it. */
  readonly wrote?: (key: K) => void
}

interface Range {
  /** Most names have one. */
  readonly numbers: Map<string, number | Set<number>>
  size: number
}

export class LateIndex<K extends SQLInputValue> {
  readonly #sql: Statements
  readonly #parts: LateIndexParts<K>
  readonly #ranges = Array.from({ length: RANGES }, (): Range => ({ numbers: new Map(), size: 0 }))
  /** What this commit put into memory, and took out of it: names, and beside them their numbers, those that went below zero. */
  readonly #changed: string[] = []
  readonly #changes: number[] = []
  /** Older ones are written as they come: memory would be filled with all that is newer than the oldest in it. */
  #old: number
  /** Of all that came, now and when the round began. */
  #highest: number
  #highestBefore: number
  #cameSince = 0
  /** The range that is written next. */
  #next = 0

  constructor(sql: Statements, parts: LateIndexParts<K>) {
    this.#sql = sql
    this.#parts = parts
    this.#old = number(sql.get('select value from meta where name = ?', parts.since)?.[0] ?? 0)
    this.#highest = this.#old - 1
    this.#highestBefore = this.#highest
    if (parts.unwritten === undefined) return
    for (const [n, name] of sql.all(parts.unwritten, this.#old)) {
      remember(rangeOf(this.#ranges, text(name)), text(name), number(n))
    }
  }

  /** Those in memory. */
  of(name: string): readonly number[] {
    return listOf(rangeOf(this.#ranges, name).numbers.get(name))
  }

  add(name: string, n: number): void {
    const range = rangeOf(this.#ranges, name)
    if (n < this.#old) this.#write(name, n)
    else if (remember(range, name, n)) this.#note(name, n)
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
    return this.#parts.round / RANGES
  }

  /** The index is not looked at. */
  remove(name: string, n: number): void {
    if (forget(rangeOf(this.#ranges, name), name, n)) this.#note(name, went(n))
  }

  /** After a rollback memory is again as it was, step by step: the same may have gone and come again. */
  letGo(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      for (let at = this.#changed.length - 1; at >= 0; at--) {
        const [name = '', n = 0] = [this.#changed[at], this.#changes[at]]
        const range = rangeOf(this.#ranges, name)
        if (n < 0) remember(range, name, went(n))
        else forget(range, name, n)
      }
    }
    this.#changed.length = 0
    this.#changes.length = 0
  }

  #note(name: string, n: number): void {
    this.#changed.push(name)
    this.#changes.push(n)
  }

  #writeRange(range: Range): void {
    for (const [name, known] of range.numbers) {
      for (const n of listOf(known)) {
        this.#write(name, n)
        this.#note(name, went(n))
      }
    }
    range.numbers.clear()
    range.size = 0
  }

  #write(name: string, n: number): void {
    const key = this.#parts.keyOf(name)
    this.#parts.wrote?.(key)
    this.#sql.behind(this.#parts.insert, [key, n])
  }

  /** Whatever is older than all that is in memory is in the index. */
  #roundDone(): void {
    let oldest = this.#highest + 1
    for (const { numbers } of this.#ranges) {
      for (const known of numbers.values()) for (const n of listOf(known)) oldest = Math.min(oldest, n)
    }
    this.#sql.run('update meta set value = ? where name = ?', oldest, this.#parts.since)
    // One that was drawn before this round began and comes after it would hold that number where it is.
    this.#old = Math.max(oldest, this.#highestBefore + 1)
    this.#highestBefore = this.#highest
  }
}

/** And back. */
function went(n: number): number {
  return -1 - n
}

/** Whether it was not known. */
function remember(range: Range, name: string, n: number): boolean {
  const known = range.numbers.get(name)
  if (known === n || (known instanceof Set && known.has(n))) return false
  if (known === undefined) range.numbers.set(name, n)
  else if (known instanceof Set) known.add(n)
  else range.numbers.set(name, new Set([known, n]))
  range.size++
  return true
}

/** Whether it was known. */
function forget(range: Range, name: string, n: number): boolean {
  const known = range.numbers.get(name)
  const was = known instanceof Set ? known.delete(n) : known === n
  if (!was) return false
  if (!(known instanceof Set) || known.size === 0) range.numbers.delete(name)
  range.size--
  return true
}

function listOf(known: number | Set<number> | undefined): readonly number[] {
  return known === undefined ? NONE : typeof known === 'number' ? [known] : [...known]
}

const NONE: readonly number[] = []
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
