// The store for tests and for the model: everything in memory, gone when the process is.
import { randomBytes } from 'node:crypto'
import { systemClock, type Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Reply, Store } from '../contract/index.ts'
import { TableStore, type Commits, type Piece } from '../rules/store.ts'
import { NO_OUTBOX, type OutboxTable, type Tables } from '../rules/tables.ts'
import { MemoryLimits } from './limits.ts'
import { MemoryRecords } from './records.ts'
import { MemoryDocs, MemorySmall } from './small-tables.ts'
import { MemoryEvents, MemoryLanes, MemoryLetters, MemoryMarks, MemoryPlaces, MemoryRuns } from './tables.ts'

export class MemoryTables implements Tables {
  readonly name: string = randomBytes(4).toString('hex')
  readonly lanes: MemoryLanes = new MemoryLanes()
  readonly places: MemoryPlaces = new MemoryPlaces()
  readonly events: MemoryEvents = new MemoryEvents()
  readonly runs: MemoryRuns = new MemoryRuns()
  readonly letters: MemoryLetters = new MemoryLetters()
  readonly marks: MemoryMarks = new MemoryMarks()
  readonly outbox: OutboxTable = NO_OUTBOX
  readonly limits: MemoryLimits = new MemoryLimits()
  readonly small: MemorySmall = new MemorySmall()
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

class InMemory implements Commits {
  readonly durable = { yes: false, because: 'memory is gone when the process is' }
  readonly #tables = new MemoryTables()
  readonly #clock: Clock
  #open = true

  constructor(clock: Clock) {
    this.#clock = clock
  }

  // A step of its own, so that callers see the same order of things as with a store that has to wait for a disk.
  async write<T>(work: Piece<T>): Promise<T> {
    if (!this.#open) throw new SluiceError('STORE_CLOSED', 'The store was closed.')
    return work(this.#tables, this.#clock.now())
  }

  read<T>(work: Piece<T>): Promise<T> {
    return this.write(work)
  }

  moment(): Promise<Reply> {
    return this.read((tables, now) => ({ now, routes: tables.routes() }))
  }

  async close(): Promise<void> {
    this.#open = false
  }
}

export function openMemoryStore({ clock = systemClock }: { readonly clock?: Clock } = {}): Store {
  return new TableStore({ commits: new InMemory(clock), clock })
}
