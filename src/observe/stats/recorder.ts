// `StatsRecorder` counts per minute and writes the counts every few seconds, so that rates, durations and failures are
// known over any window and all processes. A killed process loses the last seconds of its counts, but no event.
import { randomBytes } from 'node:crypto'
import { waitAtMost, type Clock, type Millis } from '../../clock.ts'
import type { Store } from '../../store/contract/index.ts'
import type { Emitter, EventMap, EventName } from '../emitter.ts'
import { Bucket, type StoredBucket } from './buckets.ts'
import { BLOCK, toBlockId, floorTo, foldOld, MINUTE, readBuckets, writeBlock } from './rollups.ts'
import { previousEventEnd, eventEnds, emittedFacts, type RunFacts } from './run-facts.ts'

export interface StatsRecorderDependencies {
  readonly events: Pick<Emitter, 'on'>
  readonly clock: Clock
  /** The time of the store's clock. */
  readonly now: () => Millis
  readonly store: () => Promise<Store>
}

interface Block {
  readonly start: Millis
  /** Unique: a block for the same minutes, after a restart or a clock step, must not overwrite this one. */
  readonly id: string
  readonly cells: Map<Millis, Bucket>
  rev: number
  /** How many things were counted, and how many of them the store has. */
  counted: number
  written: number
}

const WRITE_EVERY: Millis = 5_000
const STOP_WITHIN: Millis = 2_000
const FOLD_EVERY: Millis = 10 * MINUTE
const FOLD_NEXT: Millis = 50
/** If the store rejects writes, the oldest blocks are dropped beyond this number. */
const MAX_UNWRITTEN_BLOCKS = 12
/** The engine moves events through these sources itself, so they do not count as received. */
const INTERNAL_SOURCES: ReadonlySet<string> = new Set(['sluice.delayed', 'sluice.replay'])

const ENDINGS = ['run.done', 'run.dropped', 'run.retry', 'run.dead', 'run.partial'] as const
const FAILURES: ReadonlySet<EventName> = new Set(['run.retry', 'run.dead', 'run.partial'])

export class StatsRecorder {
  readonly #deps: StatsRecorderDependencies
  readonly #blocks = new Map<Millis, Block>()
  #block: Block | undefined
  #bucket = new Bucket(-Infinity, MINUTE)
  #timer: (() => void) | undefined
  #writing: Promise<void> = Promise.resolve()
  #isStopped = false
  #lastRunBegan: Millis | undefined

  constructor(parts: StatsRecorderDependencies) {
    this.#deps = parts
    parts.events.on('event.received', (what) => this.#countReceived(what))
    for (const ending of ENDINGS) {
      parts.events.on(ending, (what) => {
        const facts = emittedFacts(what)
        if (facts !== undefined) this.#countEnded(facts, FAILURES.has(ending))
      })
    }
    parts.events.on('run.claimed', (what) => this.#countClaimed(what))
  }

  /** When this process last claimed a run. */
  get lastRunBegan(): Millis | undefined {
    return this.#lastRunBegan
  }

  /** `readSince` returns all counts from `from` on, in buckets of a minute, ten minutes or an hour. */
  async readSince(from: Millis): Promise<readonly StoredBucket[]> {
    for (const block of this.#blocks.values()) this.#dropIfStored(block)
    const own = [...this.#blocks.values()].flatMap(({ cells }) => Array.from(cells.values(), (cell) => cell.toStored()))
    const inMemory = new Set([...this.#blocks.values()].map(({ id }) => id))
    const written = await readBuckets(await this.#deps.store(), from, inMemory)
    return [...own.filter(({ at }) => at + MINUTE > from), ...written]
  }

  /** `flush` writes the unwritten counts, if the store is available. */
  async flush(): Promise<void> {
    this.#writing = this.#writeAfter(this.#writing)
    await waitAtMost(this.#deps.clock, this.#writing, STOP_WITHIN)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.()
    await this.flush()
  }

  /** `fold` is a maintenance task: it merges old documents of all processes and deletes the oldest. */
  readonly fold = async (): Promise<Millis> => ((await foldOld(await this.#deps.store())) ? FOLD_NEXT : FOLD_EVERY)

  #countReceived({ source, type, flows }: EventMap['event.received']): void {
    if (INTERNAL_SOURCES.has(source)) return
    const cell = this.#bucketAt(this.#deps.now())
    cell.kinds.get(source, type).received++
    if (flows !== undefined) for (const flow of flows) cell.flows.get(flow, '').received++
  }

  #countClaimed({ flow, late }: EventMap['run.claimed']): void {
    if (INTERNAL_SOURCES.has(flow)) return
    this.#lastRunBegan = this.#deps.now()
    const counts = this.#bucketAt(this.#lastRunBegan).flows.get(flow, '')
    counts.lateMs = Math.max(counts.lateMs, Math.round(late))
  }

  #countEnded(facts: RunFacts, hasFailed: boolean): void {
    const { flow, events, rank } = facts.lease
    if (INTERNAL_SOURCES.has(flow)) return
    const now = this.#deps.now()
    const cell = this.#bucketAt(now)
    const how = eventEnds(facts)
    const before = previousEventEnd(facts)
    const ofFlow = cell.flows.get(flow, '')
    ofFlow.runs++
    if (hasFailed) ofFlow.failedRuns++
    for (const { id, source, type, arrived } of events) {
      const end = how(id)
      if (end === undefined) continue
      const ofKind = cell.kinds.get(source, type)
      ofKind.countEnd(end, before)
      ofFlow.countEnd(end, before)
      // A replay years later did not take years, so its duration does not count.
      if (end !== 'done' || rank === 1) continue
      const ms = Math.max(0, now - arrived)
      ofKind.addTime(ms)
      ofFlow.addTime(ms)
    }
  }

  #bucketAt(now: Millis): Bucket {
    const { at } = this.#bucket
    if (this.#block === undefined || now < at || now >= at + MINUTE) this.#startBlock(now)
    if (this.#block !== undefined) this.#block.counted++
    this.#scheduleWrite()
    return this.#bucket
  }

  #startBlock(now: Millis): void {
    const start = floorTo(now, BLOCK)
    const block = this.#blocks.get(start) ?? createBlock(start)
    this.#blocks.set(start, block)
    const at = floorTo(now, MINUTE)
    const cell = block.cells.get(at) ?? new Bucket(at, MINUTE)
    block.cells.set(at, cell)
    this.#block = block
    this.#bucket = cell
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= MAX_UNWRITTEN_BLOCKS) break
      this.#blocks.delete(oldest)
    }
  }

  #scheduleWrite(): void {
    if (this.#isStopped) return
    this.#timer ??= this.#deps.clock.after(WRITE_EVERY, () => void this.#writeAll())
  }

  async #writeAll(): Promise<void> {
    this.#writing = this.#writeAfter(this.#writing)
    await this.#writing
    this.#timer = undefined
    if ([...this.#blocks.values()].some(({ counted, written }) => counted > written)) this.#scheduleWrite()
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    await before
    for (const block of this.#blocks.values()) await this.#writeBlock(block)
  }

  /** Never throws: the next flush retries what could not be written. */
  async #writeBlock(block: Block): Promise<void> {
    const { id, cells, counted, written, rev } = block
    try {
      if (counted > written) {
        const answer = await writeBlock(await this.#deps.store(), id, cells.values(), rev)
        if (answer === 'folded') return this.#drop(block)
        Object.assign(block, { rev: answer, written: counted })
      }
      return this.#dropIfStored(block)
    } catch {
      return undefined
    }
  }

  /** From now on the block is read from the store, where any process may fold it. */
  #dropIfStored(block: Block): void {
    if (block.counted === block.written && block.start + BLOCK <= this.#deps.now()) this.#drop(block)
  }

  #drop(block: Block): void {
    this.#blocks.delete(block.start)
    if (this.#block === block) this.#block = undefined
  }
}

function createBlock(start: Millis): Block {
  const id = toBlockId(start, randomBytes(6).toString('base64url'))
  return { start, id, cells: new Map(), rev: 0, counted: 0, written: 0 }
}
