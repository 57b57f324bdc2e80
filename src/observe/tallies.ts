// What happened, counted by the minute while it happens and written every few seconds: rates, times and failures over any
// window can then be told, over all processes. A process that is killed loses the last seconds of its counting, no event.
import { randomBytes } from 'node:crypto'
import { within, type Clock, type Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'
import type { Emitter, EventMap } from './events.ts'
import { Cell, type WrittenCell } from './tallies-count.ts'
import { BLOCK, blockId, floor, foldOld, MINUTE, readCells, writeBlock } from './tallies-docs.ts'
import { beforeOf, endOf, factsOf, type RunFacts } from './tallies-facts.ts'

export interface TalliesParts {
  readonly events: Pick<Emitter, 'on'>
  readonly clock: Clock
  /** The store's time. */
  readonly now: () => Millis
  readonly store: () => Promise<Store>
}

interface Block {
  readonly start: Millis
  /** Of its own: whoever counts in the same minutes, after a start or a step of the clock, writes beside it. */
  readonly id: string
  readonly cells: Map<Millis, Cell>
  rev: number
  /** How often something was counted, and how much of that the store has. */
  counted: number
  written: number
}

const WRITE_EVERY: Millis = 5_000
const STOP_WITHIN: Millis = 2_000
const FOLD_EVERY: Millis = 10 * MINUTE
const FOLD_AGAIN: Millis = 50
/** Of a store that takes none: the oldest are forgotten first. */
const BLOCKS_UNWRITTEN_MAX = 12
/** What the engine itself sends from one place to another: nobody counts that as an event. */
const OURS: ReadonlySet<string> = new Set(['sluice.delayed', 'sluice.replay'])

const ENDINGS = ['run.done', 'run.dropped', 'run.retry', 'run.dead', 'run.partial'] as const

export class Tallies {
  readonly #parts: TalliesParts
  readonly #blocks = new Map<Millis, Block>()
  #block: Block | undefined
  #cell = new Cell(-Infinity, MINUTE)
  #timer: (() => void) | undefined
  #writing: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: TalliesParts) {
    this.#parts = parts
    parts.events.on('event.received', (what) => this.#received(what))
    for (const ending of ENDINGS) {
      parts.events.on(ending, (what) => {
        const facts = factsOf(what)
        if (facts !== undefined) this.#ended(facts)
      })
    }
  }

  /** All that is known of the time from `from` on, in pieces of a minute, ten, or an hour. */
  async since(from: Millis): Promise<readonly WrittenCell[]> {
    for (const block of this.#blocks.values()) this.#letGoIfOver(block)
    const own = [...this.#blocks.values()].flatMap(({ cells }) => Array.from(cells.values(), (cell) => cell.written()))
    const inMemory = new Set([...this.#blocks.values()].map(({ id }) => id))
    const written = await readCells(await this.#parts.store(), from, inMemory)
    return [...own.filter(({ at }) => at + MINUTE > from), ...written]
  }

  /** Writes what is not written yet, if the store answers. */
  async flush(): Promise<void> {
    this.#writing = this.#writeAfter(this.#writing)
    await within(this.#parts.clock, this.#writing, STOP_WITHIN)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.()
    await this.flush()
  }

  /** Old documents of all processes are folded, and forgotten in the end. A chore; answers when it wants to be next. */
  readonly fold = async (): Promise<Millis> => ((await foldOld(await this.#parts.store())) ? FOLD_AGAIN : FOLD_EVERY)

  #received({ source, type, flows }: EventMap['event.received']): void {
    if (OURS.has(source)) return
    const cell = this.#now()
    cell.kinds.at(source, type).received++
    if (flows !== undefined) for (const flow of flows) cell.flows.at(flow, '').received++
  }

  #ended(facts: RunFacts): void {
    const { flow, events, rank } = facts.lease
    if (OURS.has(flow)) return
    const cell = this.#now()
    const now = this.#parts.now()
    const how = endOf(facts)
    const before = beforeOf(facts)
    const ofFlow = cell.flows.at(flow, '')
    for (const { id, source, type, arrived } of events) {
      const end = how(id)
      if (end === undefined) continue
      const ofKind = cell.kinds.at(source, type)
      ofKind.end(end, before)
      ofFlow.end(end, before)
      // One that runs again years later did not take years.
      if (end !== 'done' || rank === 1) continue
      const ms = Math.max(0, now - arrived)
      ofKind.took(ms)
      ofFlow.took(ms)
    }
  }

  #now(): Cell {
    const now = this.#parts.now()
    const { at } = this.#cell
    if (this.#block === undefined || now < at || now >= at + MINUTE) this.#begin(now)
    if (this.#block !== undefined) this.#block.counted++
    this.#arm()
    return this.#cell
  }

  #begin(now: Millis): void {
    const start = floor(now, BLOCK)
    const block = this.#blocks.get(start) ?? newBlock(start)
    this.#blocks.set(start, block)
    const at = floor(now, MINUTE)
    const cell = block.cells.get(at) ?? new Cell(at, MINUTE)
    block.cells.set(at, cell)
    this.#block = block
    this.#cell = cell
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= BLOCKS_UNWRITTEN_MAX) break
      this.#blocks.delete(oldest)
    }
  }

  #arm(): void {
    if (this.#isStopped) return
    this.#timer ??= this.#parts.clock.after(WRITE_EVERY, () => void this.#inTurn())
  }

  async #inTurn(): Promise<void> {
    this.#writing = this.#writeAfter(this.#writing)
    await this.#writing
    this.#timer = undefined
    if ([...this.#blocks.values()].some(({ counted, written }) => counted > written)) this.#arm()
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    await before
    for (const block of this.#blocks.values()) await this.#write(block)
  }

  /** Fails nobody: what could not be written is tried again the next time. */
  async #write(block: Block): Promise<void> {
    const { id, cells, counted, written, rev } = block
    try {
      if (counted > written) {
        const answer = await writeBlock(await this.#parts.store(), id, cells.values(), rev)
        if (answer === 'folded') return this.#letGo(block)
        Object.assign(block, { rev: answer, written: counted })
      }
      return this.#letGoIfOver(block)
    } catch {
      return undefined
    }
  }

  /** It is read from the store from now on, where others fold it. */
  #letGoIfOver(block: Block): void {
    if (block.counted === block.written && block.start + BLOCK <= this.#parts.now()) this.#letGo(block)
  }

  #letGo(block: Block): void {
    this.#blocks.delete(block.start)
    if (this.#block === block) this.#block = undefined
  }
}

function newBlock(start: Millis): Block {
  const id = blockId(start, randomBytes(6).toString('base64url'))
  return { start, id, cells: new Map(), rev: 0, counted: 0, written: 0 }
}
