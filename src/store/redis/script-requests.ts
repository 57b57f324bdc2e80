// `LoadRequest` and `CommitRequest` collect what one call of a script reads, checks and writes (load.lua, commit.lua).
import { createHash } from 'node:crypto'
import type { RedisArgument, RedisReply } from './client.ts'
import type { Range } from './texts.ts'

/** A script cannot pass more arguments than this to one command. */
const MAX_COMMAND_ARGUMENTS = 1_000

class ScriptRequest {
  readonly keys: string[]
  readonly #numbers = new Map<string, string>()

  constructor(meta: string) {
    this.keys = [meta]
    this.#numbers.set(meta, '1')
  }

  /** `key` declares a key and returns its number as text. */
  protected key(name: string): string {
    let known = this.#numbers.get(name)
    if (known === undefined) {
      known = String(this.keys.push(name))
      this.#numbers.set(name, known)
    }
    return known
  }
}

type OnReply = (reply: RedisReply) => void

/** `FoundRange` is a part of an index with the rows of its members. */
export interface FoundRange {
  readonly members: readonly string[]
  readonly rows: readonly (Buffer | null)[]
}

export class LoadRequest extends ScriptRequest {
  /** How many numbers to draw from the counter. */
  draws = 0
  readonly #arguments: RedisArgument[] = []
  readonly #listeners: OnReply[] = []

  get isEmpty(): boolean {
    return this.#listeners.length === 0 && this.draws === 0
  }

  readRows(hash: string, fields: readonly string[], onRows: (rows: readonly (Buffer | null)[]) => void): void {
    this.#add(['rows', this.key(hash), String(fields.length), ...fields], (reply) => onRows(reply as (Buffer | null)[]))
  }

  /** Reads up to `n` members of a range. Without `hash`, the members have no rows. */
  readRange(
    set: string,
    hash: string | undefined,
    range: Range & { readonly n: number },
    onFound: (found: FoundRange) => void,
  ): void {
    const bounds =
      range.isReversed === true ? [`(${range.to}`, `[${range.from}`, 'REV'] : [`[${range.from}`, `(${range.to}`, '']
    this.#add(['range', this.key(set), this.key(hash ?? set), ...bounds, toLimit(range.n)], (reply) => {
      const [members, rows = []] = reply as [Buffer[], (Buffer | null)[]?]
      onFound({ members: members.map(String), rows })
    })
  }

  count(set: string, range: Range, onCount: (count: number) => void): void {
    this.#add(['count', this.key(set), `[${range.from}`, `(${range.to}`], (reply) => onCount(Number(reply)))
  }

  /** Reads the first member and the size of each group of a range. */
  readGroups(
    set: string,
    range: Range & { readonly n: number },
    onGroups: (groups: readonly IndexGroup[]) => void,
  ): void {
    this.#add(['groups', this.key(set), `[${range.from}`, `(${range.to}`, toLimit(range.n)], (reply) => {
      const found = reply as (Buffer | number)[]
      const groups: IndexGroup[] = []
      for (let at = 0; at < found.length; at += 2)
        groups.push({ first: String(found[at]), count: Number(found[at + 1]) })
      onGroups(groups)
    })
  }

  readPlaced(from: PlacedSource, prefixes: readonly string[], onPlaced: (reply: RedisReply) => void): void {
    const keys = [from.set, from.rows, from.bodies].map((name) => this.key(name))
    this.#add(
      ['placed', ...keys, String(from.perLane), String(from.bytes), String(prefixes.length), ...prefixes],
      onPlaced,
    )
  }

  #add(args: readonly string[], onReply: OnReply): void {
    this.#arguments.push(...args)
    this.#listeners.push(onReply)
  }

  get arguments(): readonly RedisArgument[] {
    return [String(this.draws), String(this.#listeners.length), ...this.#arguments]
  }

  receive(replies: readonly RedisReply[]): void {
    for (const [at, listener] of this.#listeners.entries()) listener(replies[at] ?? null)
  }
}

export interface IndexGroup {
  readonly first: string
  readonly count: number
}

export interface PlacedSource {
  readonly set: string
  readonly rows: string
  readonly bodies: string
  readonly perLane: number
  readonly bytes: number
}

function toLimit(n: number): string {
  return Number.isSafeInteger(n) ? String(n) : '-1'
}

interface RowChecks {
  readonly fields: RedisArgument[]
  readonly onConflict: (() => void)[]
}

interface RangeCheck {
  readonly args: readonly string[]
  readonly onConflict: () => void
}

interface WriteGroup {
  readonly command: string
  readonly key: string
  readonly args: RedisArgument[]
}

export class CommitRequest extends ScriptRequest {
  /** The value that the counter must have, '' for any. */
  counter = ''
  draws = 0
  readonly #rowChecks = new Map<string, RowChecks>()
  readonly #rangeChecks: RangeCheck[] = []
  readonly #writes = new Map<string, WriteGroup>()
  readonly version: string
  readonly #isWriting: boolean

  constructor(meta: string, version: string, isWriting: boolean) {
    super(meta)
    this.version = version
    this.#isWriting = isWriting
  }

  /** Checks that the row has this version, '' for none. */
  checkRow(
    hash: string,
    field: string,
    { version, onConflict }: { readonly version: string; readonly onConflict: () => void },
  ): void {
    let group = this.#rowChecks.get(hash)
    if (group === undefined) this.#rowChecks.set(hash, (group = { fields: [], onConflict: [] }))
    group.fields.push(field, version)
    group.onConflict.push(onConflict)
  }

  checkRange(
    set: string,
    { from, to, n }: Range & { readonly n: number },
    { members, onConflict }: { readonly members: readonly string[]; readonly onConflict: () => void },
  ): void {
    const hash = createHash('sha1').update(members.join('\n')).digest('hex')
    this.#rangeChecks.push({ args: [this.key(set), `[${from}`, `(${to}`, toLimit(n), hash], onConflict })
  }

  /** Adds arguments to the command for this key. Commands on different keys may be executed in any order. */
  write(command: string, key: string, ...args: readonly RedisArgument[]): void {
    if (!this.#isWriting) return
    const name = `${command} ${key}`
    let group = this.#writes.get(name)
    if (group === undefined) this.#writes.set(name, (group = { command, key: this.key(key), args: [] }))
    group.args.push(...args)
  }

  get isEmpty(): boolean {
    return this.#rowChecks.size + this.#rangeChecks.length + this.#writes.size === 0
  }

  get arguments(): readonly RedisArgument[] {
    const args: RedisArgument[] = [this.counter, String(this.draws), String(this.#rowChecks.size)]
    for (const [hash, { fields }] of this.#rowChecks) {
      args.push(this.key(hash), String(fields.length / 2))
      for (const field of fields) args.push(field)
    }
    args.push(String(this.#rangeChecks.length))
    for (const check of this.#rangeChecks) args.push(...check.args)
    const writes = [...this.#writes.values()].flatMap(splitWrite)
    args.push(String(writes.length))
    for (const write of writes) {
      args.push(write.command, write.key, String(write.args.length))
      for (const one of write.args) args.push(one)
    }
    return args
  }

  /** Tells those who added the failed checks. The numbers are those of the script. */
  reportConflicts(numbers: readonly number[]): void {
    const listeners = [
      ...[...this.#rowChecks.values()].flatMap(({ onConflict }) => onConflict),
      ...this.#rangeChecks.map(({ onConflict }) => onConflict),
    ]
    for (const number of numbers) listeners[number - 1]?.()
  }
}

function splitWrite(write: WriteGroup): readonly WriteGroup[] {
  if (write.args.length <= MAX_COMMAND_ARGUMENTS) return [write]
  const parts: WriteGroup[] = []
  for (let at = 0; at < write.args.length; at += MAX_COMMAND_ARGUMENTS)
    parts.push({ ...write, args: write.args.slice(at, at + MAX_COMMAND_ARGUMENTS) })
  return parts
}
