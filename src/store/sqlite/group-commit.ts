// `GroupCommit` puts all writes of one pass of the event loop into one commit and one disk sync: a hundred arrivals
// cost one sync. It resolves no write before that sync. The event loop goes on during the sync, and writes that arrive
// meanwhile share the next commit.
import type { DatabaseSync } from 'node:sqlite'
import { SluiceError, type ErrorCode } from '../../errors.ts'
import type { LaneReadScope } from '../core/store.ts'
import { toSluiceError } from './statements.ts'

interface QueuedWrite {
  readonly work: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface CompletedWrite {
  readonly waiting: QueuedWrite
  readonly value: unknown
}

type GroupResult =
  | { readonly kind: 'done'; readonly values: readonly unknown[] }
  | { readonly kind: 'failed'; readonly error: SluiceError; readonly isDiskFull: boolean }

/** `DeferredState` is the part of the tables that lives in memory, and must be written or dropped at the right time. */
interface DeferredState {
  hasDeferred(lanes: LaneReadScope): boolean
  /** Called before rows are read that memory may have changed. */
  flush(lanes: LaneReadScope): void
  /** Called inside the transaction, after all its work. */
  beforeCommit(): void
  afterTransaction(how: 'committed' | 'rolled-back'): void
}

export interface GroupCommitDependencies {
  readonly db: DatabaseSync
  readonly file: string
  readonly readOnly: boolean
  readonly tables: DeferredState
  /** Called first in a transaction. Throws if this store may not write. */
  readonly begun: () => void
  /** Called after each commit: the log has grown. */
  readonly onCommitted: () => void
  /** Called after a commit did not fit on the disk. Returns whether another try may fit. */
  readonly makeRoom: () => boolean
  /** Syncs the log to the disk. Undefined if the store is in memory or read-only. */
  readonly sync: (() => Promise<void>) | undefined
  readonly close: () => Promise<void>
}

/** These errors are not the fault of one write: the other writes of the group would fail the same way. */
const DISK_ERRORS: ReadonlySet<ErrorCode> = new Set(['STORE_FULL', 'STORE_UNWRITABLE', 'STORE_DAMAGED', 'STORE_TAKEN'])

export class GroupCommit {
  readonly durable = { isDurable: true, reason: 'WAL, synced to the disk before anything is acknowledged' }
  readonly #dependencies: GroupCommitDependencies
  #queue: QueuedWrite[] = []
  #scheduled = false
  #syncing: Promise<void> | undefined
  #open = true
  /** A rollback has not completed: memory may hold changes that the file does not have. */
  #needsRollback = false
  /** The error of a failed disk sync. The disk may differ from memory, so every later write is rejected. */
  #syncError: unknown

  constructor(parts: GroupCommitDependencies) {
    this.#dependencies = parts
  }

  write<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.#open) return reject(storeClosed())
      if (this.#dependencies.readOnly)
        return reject(new SluiceError('STORE_READ_ONLY', 'This store is open for reading only.'))
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
      return undefined
    })
  }

  async read<T>(lanes: LaneReadScope, work: () => T): Promise<T> {
    if (!this.#open) throw storeClosed()
    const { readOnly, tables } = this.#dependencies
    if (!readOnly && (tables.hasDeferred(lanes) || this.#needsRollback)) await this.write(() => tables.flush(lanes))
    try {
      return work()
    } catch (error) {
      throw toSluiceError(error, this.#dependencies.file)
    }
  }

  /** `readMemory` is for values that no row holds. */
  async readMemory<T>(work: () => T): Promise<T> {
    if (!this.#open) throw storeClosed()
    return work()
  }

  async close(): Promise<void> {
    if (!this.#open) return
    await this.#syncing
    this.#flush()
    this.#open = false
    await this.#syncing
    await this.#dependencies.close()
  }

  /** `#schedule` commits after the current pass of the event loop, so that everything that arrives in it shares the
      commit. */
  #schedule(): void {
    if (this.#scheduled || this.#syncing !== undefined) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    const group = this.#queue
    this.#queue = []
    this.#scheduled = false
    if (group.length === 0) return
    const done = this.#syncError === undefined ? this.#commitGroup(group) : this.#rejectAll(group)
    if (done.length > 0) this.#acknowledge(done)
  }

  #rejectAll(group: readonly QueuedWrite[]): readonly CompletedWrite[] {
    for (const waiting of group) waiting.reject(this.#syncError)
    return []
  }

  /** `#commitGroup` returns the writes that are now in the log, and rejects the others. */
  #commitGroup(group: readonly QueuedWrite[]): readonly CompletedWrite[] {
    let results = this.#attempt(group)
    if (results.kind === 'failed' && results.isDiskFull && this.#dependencies.makeRoom()) results = this.#attempt(group)
    if (results.kind === 'done') return group.map((waiting, at) => ({ waiting, value: results.values[at] }))
    if (group.length > 1 && !DISK_ERRORS.has(results.error.code)) {
      // One write of the group failed. Commit each one alone, so that only the bad one is rejected.
      return group.flatMap((waiting) => this.#commitGroup([waiting]))
    }
    const { error } = results
    for (const waiting of group) waiting.reject(error)
    return []
  }

  #acknowledge(done: readonly CompletedWrite[]): void {
    const { sync } = this.#dependencies
    if (sync === undefined) return resolveWrites(done)
    this.#syncing = this.#syncAndAcknowledge(sync, done)
  }

  async #syncAndAcknowledge(sync: () => Promise<void>, done: readonly CompletedWrite[]): Promise<void> {
    try {
      await sync()
      resolveWrites(done)
    } catch (error) {
      this.#syncError = error
      for (const { waiting } of done) waiting.reject(error)
    }
    this.#syncing = undefined
    if (this.#queue.length > 0) this.#schedule()
  }

  #attempt(group: readonly QueuedWrite[]): GroupResult {
    const { db, file, tables } = this.#dependencies
    try {
      if (this.#needsRollback) this.#rollback()
      db.exec('begin immediate')
      this.#dependencies.begun()
      const values = group.map((waiting) => waiting.work())
      tables.beforeCommit()
      db.exec('commit')
      this.#notifyCommitted()
      return { kind: 'done', values }
    } catch (error) {
      this.#tryRollback()
      const failure = toSluiceError(error, file)
      // A write that exceeds `maxBytes` has the same code, and no room on the disk would help it.
      return { kind: 'failed', error: failure, isDiskFull: failure.code === 'STORE_FULL' && failure !== error }
    }
  }

  /** The commit is stored: no later failure may report that it is not. */
  #notifyCommitted(): void {
    this.#dependencies.tables.afterTransaction('committed')
    try {
      this.#dependencies.onCommitted()
    } catch {
      // The log keeps what the checkpoint did not write back; a checkpoint after a later commit does it.
    }
  }

  #rollback(): void {
    const { db, tables } = this.#dependencies
    this.#needsRollback = true
    if (db.isTransaction) db.exec('rollback')
    tables.afterTransaction('rolled-back')
    this.#needsRollback = false
  }

  /** `#tryRollback` may fail too, e.g. on a disk that can no longer be read. Then the rollback is repeated before
      the next commit. */
  #tryRollback(): void {
    try {
      this.#rollback()
    } catch {
      // `#needsRollback` stays set: nothing is read or written before the rollback succeeds.
    }
  }
}

function resolveWrites(done: readonly CompletedWrite[]): void {
  for (const { waiting, value } of done) waiting.resolve(value)
}

function storeClosed(): SluiceError {
  return new SluiceError('STORE_CLOSED', 'The store was closed.')
}
