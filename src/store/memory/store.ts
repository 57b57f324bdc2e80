// `openMemoryStore` opens a store for tests and for the model. It keeps everything in memory, and loses it with the process.
import { randomBytes } from 'node:crypto'
import { systemClock, type Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Reply, Store } from '../contract/index.ts'
import { TableStore, type Committer, type TransactionBody } from '../core/store.ts'
import { EMPTY_OUTBOX, type OutboxTable, type Tables } from '../core/tables.ts'
import { MemoryLimits } from './limits.ts'
import { MemoryRecords } from './records.ts'
import { MemoryDocs, MemorySmallTables } from './small-tables.ts'
import { MemoryEvents, MemoryLanes, MemoryDeadLetters, MemoryUnrouted, MemoryPlacements, MemoryRuns } from './tables.ts'

export class MemoryTables implements Tables {
  readonly name: string = randomBytes(4).toString('hex')
  readonly lanes: MemoryLanes = new MemoryLanes()
  readonly placements: MemoryPlacements = new MemoryPlacements()
  readonly events: MemoryEvents = new MemoryEvents()
  readonly runs: MemoryRuns = new MemoryRuns()
  readonly deadLetters: MemoryDeadLetters = new MemoryDeadLetters()
  readonly unrouted: MemoryUnrouted = new MemoryUnrouted()
  readonly outbox: OutboxTable = EMPTY_OUTBOX
  readonly limits: MemoryLimits = new MemoryLimits()
  readonly small: MemorySmallTables = new MemorySmallTables()
  readonly docs: MemoryDocs = new MemoryDocs()
  readonly records: MemoryRecords = new MemoryRecords(this)
  #counter = 0
  #routes = 1

  readonly draw = (): number => ++this.#counter

  hasRoomFor(): boolean {
    return true
  }

  routes(): number {
    return this.#routes
  }

  raiseRoutes(): void {
    this.#routes++
  }
}

class MemoryCommitter implements Committer {
  readonly durable = { isDurable: false, reason: 'memory is gone when the process is' }
  readonly #tables = new MemoryTables()
  readonly #clock: Clock
  #open = true

  constructor(clock: Clock) {
    this.#clock = clock
  }

  // This extra step gives callers the same order of events as a store that waits for a disk.
  async write<T>(work: TransactionBody<T>): Promise<T> {
    if (!this.#open) throw new SluiceError('STORE_CLOSED', 'The store was closed.')
    return work(this.#tables, this.#clock.now())
  }

  read<T>(work: TransactionBody<T>): Promise<T> {
    return this.write(work)
  }

  readClockAndEpoch(): Promise<Reply> {
    return this.read((tables, now) => ({ now, routes: tables.routes() }))
  }

  async close(): Promise<void> {
    this.#open = false
  }
}

export function openMemoryStore({ clock = systemClock }: { readonly clock?: Clock } = {}): Store {
  return new TableStore({ commits: new MemoryCommitter(clock), clock })
}
