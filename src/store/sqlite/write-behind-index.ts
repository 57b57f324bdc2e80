// `WriteBehindIndex` batches the writes of an index whose keys are hashes, because each entry touches a different page.
// The newest entries wait in memory, sorted into ranges of the index, and each commit writes one range at a time.
// Nothing is at risk: the file has the rows that the entries refer to, and memory is filled from them when the store
// opens.
import type { SQLInputValue } from 'node:sqlite'
import { number, text, type Statements } from './statements.ts'

const RANGES = 256
/** A range with this many times the usual number of entries is written at once. */
const CROWDED_FACTOR = 8

export interface WriteBehindIndexDependencies<K extends SQLInputValue> {
  /** The insert statement for a key and a number, without its values. */
  readonly insert: string
  /** Returns the index key of a name. */
  readonly keyOf: (name: string) => K
  /** The number of entries in a round, in which each range is written once. Memory holds at most the entries of
      three rounds. */
  readonly round: number
  /** The name in `meta` of the first number that may be missing from the index. */
  readonly since: string
  /** The query for numbers and names from a number on. Undefined in a read-only store, which adds nothing. */
  readonly unwritten: string | undefined
  /** Called when the index has a key. */
  readonly onWritten?: (key: K) => void
}

interface Range {
  /** Most names have one number. */
  readonly numbers: Map<string, number | Set<number>>
  size: number
}

export class WriteBehindIndex<K extends SQLInputValue> {
  readonly #sql: Statements
  readonly #dependencies: WriteBehindIndexDependencies<K>
  readonly #ranges = Array.from({ length: RANGES }, (): Range => ({ numbers: new Map(), size: 0 }))
  /** The names that this commit added to or removed from memory, and beside them their numbers (negative if
      removed). */
  readonly #changed: string[] = []
  readonly #changes: number[] = []
  /** Entries with older numbers are written at once: a start would have to load everything newer than the oldest
      entry in memory. */
  #oldestInMemory: number
  /** The highest number so far, and at the start of the round. */
  #highest: number
  #highestBefore: number
  #addedSinceWrite = 0
  /** The range to write next. */
  #next = 0

  constructor(sql: Statements, parts: WriteBehindIndexDependencies<K>) {
    this.#sql = sql
    this.#dependencies = parts
    this.#oldestInMemory = number(sql.get('select value from meta where name = ?', parts.since)?.[0] ?? 0)
    this.#highest = this.#oldestInMemory - 1
    this.#highestBefore = this.#highest
    if (parts.unwritten === undefined) return
    for (const [n, name] of sql.all(parts.unwritten, this.#oldestInMemory)) {
      addToRange(findRange(this.#ranges, text(name)), text(name), number(n))
    }
  }

  /** `find` returns the numbers in memory. */
  find(name: string): readonly number[] {
    return toNumbers(findRange(this.#ranges, name).numbers.get(name))
  }

  add(name: string, n: number): void {
    const range = findRange(this.#ranges, name)
    if (n < this.#oldestInMemory) this.#write(name, n)
    else if (addToRange(range, name, n)) this.#recordChange(name, n)
    if (range.size >= CROWDED_FACTOR * this.#perRange) this.#writeRange(range)
    this.advance(n)
  }

  /** `advance` counts a number that needs no entry, so that the entries before it age. */
  advance(n: number): void {
    this.#highest = Math.max(this.#highest, n)
    if (++this.#addedSinceWrite < this.#perRange) return
    this.#addedSinceWrite = 0
    const range = this.#ranges[this.#next]
    if (range !== undefined) this.#writeRange(range)
    this.#next = (this.#next + 1) % RANGES
    if (this.#next === 0) this.#finishRound()
  }

  get #perRange(): number {
    return this.#dependencies.round / RANGES
  }

  /** `remove` changes memory only, not the index. */
  remove(name: string, n: number): void {
    if (removeFromRange(findRange(this.#ranges, name), name, n)) this.#recordChange(name, negate(n))
  }

  /** A rollback undoes the changes of memory in reverse order: a name may have been removed and added again. */
  afterTransaction(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      for (let at = this.#changed.length - 1; at >= 0; at--) {
        const [name = '', n = 0] = [this.#changed[at], this.#changes[at]]
        const range = findRange(this.#ranges, name)
        if (n < 0) addToRange(range, name, negate(n))
        else removeFromRange(range, name, n)
      }
    }
    this.#changed.length = 0
    this.#changes.length = 0
  }

  #recordChange(name: string, n: number): void {
    this.#changed.push(name)
    this.#changes.push(n)
  }

  #writeRange(range: Range): void {
    for (const [name, known] of range.numbers) {
      for (const n of toNumbers(known)) {
        this.#write(name, n)
        this.#recordChange(name, negate(n))
      }
    }
    range.numbers.clear()
    range.size = 0
  }

  #write(name: string, n: number): void {
    const key = this.#dependencies.keyOf(name)
    this.#dependencies.onWritten?.(key)
    this.#sql.runBatched(this.#dependencies.insert, [key, n])
  }

  /** After a round, everything older than the oldest entry in memory is in the index. */
  #finishRound(): void {
    let oldest = this.#highest + 1
    for (const { numbers } of this.#ranges) {
      for (const known of numbers.values()) for (const n of toNumbers(known)) oldest = Math.min(oldest, n)
    }
    this.#sql.run('update meta set value = ? where name = ?', oldest, this.#dependencies.since)
    // A number drawn before this round but added after it would otherwise keep this bound from moving.
    this.#oldestInMemory = Math.max(oldest, this.#highestBefore + 1)
    this.#highestBefore = this.#highest
  }
}

/** `negate` is its own inverse, and also maps 0 to a negative number. */
function negate(n: number): number {
  return -1 - n
}

/** `addToRange` returns whether the entry was new. */
function addToRange(range: Range, name: string, n: number): boolean {
  const known = range.numbers.get(name)
  if (known === n || (known instanceof Set && known.has(n))) return false
  if (known === undefined) range.numbers.set(name, n)
  else if (known instanceof Set) known.add(n)
  else range.numbers.set(name, new Set([known, n]))
  range.size++
  return true
}

/** `removeFromRange` returns whether the entry existed. */
function removeFromRange(range: Range, name: string, n: number): boolean {
  const known = range.numbers.get(name)
  const was = known instanceof Set ? known.delete(n) : known === n
  if (!was) return false
  if (!(known instanceof Set) || known.size === 0) range.numbers.delete(name)
  range.size--
  return true
}

function toNumbers(known: number | Set<number> | undefined): readonly number[] {
  return known === undefined ? NONE : typeof known === 'number' ? [known] : [...known]
}

const NONE: readonly number[] = []
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIXBITS = new Uint8Array(128)
for (let value = 0; value < BASE64URL.length; value++) SIXBITS[BASE64URL.charCodeAt(value)] = value

/** `hashPrefix` returns the first bits of a hash, 6 per character. */
export function hashPrefix(hash: string, characters: number): number {
  let h = 0
  for (let at = 0; at < characters; at++) h = h * 64 + (SIXBITS[hash.charCodeAt(at)] ?? 0)
  return h
}

function findRange<T>(ranges: readonly T[], name: string): T {
  const range = ranges[Math.floor(hashPrefix(name, 2) / (4_096 / RANGES))]
  if (range === undefined) throw new RangeError('Every name must have a range.')
  return range
}
