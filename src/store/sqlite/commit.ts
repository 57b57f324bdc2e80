// Work of one moment shares one commit, and one sync of the disk: a hundred arrivals cost one. None is answered before that
// sync. While the disk syncs the event loop goes on, and what arrives meanwhile shares the next commit.
import type { DatabaseSync } from 'node:sqlite'
import { SluiceError, type ErrorCode } from '../../errors.ts'
import type { LanesRead } from '../rules/store.ts'
import { fault } from './faults.ts'

interface Waiting {
  readonly work: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Done {
  readonly waiting: Waiting
  readonly value: unknown
}

/** What memory holds of the file, and when it has to be put down or let go. */
interface BehindTheFile {
  isBehind(lanes: LanesRead): boolean
  /** Before anybody reads their rows. */
  catchUp(lanes: LanesRead): void
  /** Inside the transaction, when all its work is done. */
  finish(): void
  ended(how: 'committed' | 'rolled-back'): void
}

export interface CommitParts {
  readonly db: DatabaseSync
  readonly file: string
  readonly readOnly: boolean
  readonly tables: BehindTheFile
  /** The log has grown. */
  readonly committed: () => void
  /** Puts the log on the disk. Undefined: there is no disk, or nothing is written. */
  readonly sync: (() => Promise<void>) | undefined
  readonly close: () => Promise<void>
}

/** Not the fault of one piece of work: the others would fail the same way. */
const OF_THE_DISK: ReadonlySet<ErrorCode> = new Set(['STORE_FULL', 'STORE_UNWRITABLE', 'STORE_DAMAGED'])

export class GroupCommit {
  readonly durable = { yes: true, because: 'WAL, synced to the disk before anything is acknowledged' }
  readonly #parts: CommitParts
  #queue: Waiting[] = []
  #scheduled = false
  #syncing: Promise<void> | undefined
  #open = true
  /** A commit was undone, and memory may still say what the file does not. */
  #inDoubt = false
  /** The disk did not take what was written: what is on it is not what memory says, and nobody may build on that. */
  #unsynced: unknown

  constructor(parts: CommitParts) {
    this.#parts = parts
  }

  write<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.#open) return reject(closed())
      if (this.#parts.readOnly) return reject(new SluiceError('STORE_READ_ONLY', 'This store was opened to be read.'))
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
      return undefined
    })
  }

  async read<T>(lanes: LanesRead, work: () => T): Promise<T> {
    if (!this.#open) throw closed()
    const { readOnly, tables } = this.#parts
    if (!readOnly && (tables.isBehind(lanes) || this.#inDoubt)) await this.write(() => tables.catchUp(lanes))
    try {
      return work()
    } catch (error) {
      throw fault(error, this.#parts.file)
    }
  }

  /** For what is in no row. */
  async glance<T>(work: () => T): Promise<T> {
    if (!this.#open) throw closed()
    return work()
  }

  async close(): Promise<void> {
    if (!this.#open) return
    await this.#syncing
    this.#flush()
    this.#open = false
    await this.#syncing
    await this.#parts.close()
  }

  /** Once round the event loop: everything that has arrived by then goes along. */
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
    const done = this.#unsynced === undefined ? this.#committed(group) : this.#refused(group)
    if (done.length > 0) this.#acknowledge(done)
  }

  #refused(group: readonly Waiting[]): readonly Done[] {
    for (const waiting of group) waiting.reject(this.#unsynced)
    return []
  }

  /** Those that are in the log now; the others are told why not. */
  #committed(group: readonly Waiting[]): readonly Done[] {
    const results = this.#attempt(group)
    if (results.kind === 'done') return group.map((waiting, at) => ({ waiting, value: results.values[at] }))
    if (group.length > 1 && !OF_THE_DISK.has(results.error.code)) {
      // One of them cannot be done. Each by itself, so that it fails alone.
      return group.flatMap((waiting) => this.#committed([waiting]))
    }
    for (const waiting of group) waiting.reject(results.error)
    return []
  }

  #acknowledge(done: readonly Done[]): void {
    const { sync } = this.#parts
    if (sync === undefined) return answer(done)
    this.#syncing = this.#synced(sync, done)
  }

  async #synced(sync: () => Promise<void>, done: readonly Done[]): Promise<void> {
    try {
      await sync()
      answer(done)
    } catch (error) {
      this.#unsynced = error
      for (const { waiting } of done) waiting.reject(error)
    }
    this.#syncing = undefined
    if (this.#queue.length > 0) this.#schedule()
  }

  #attempt(group: readonly Waiting[]): { kind: 'done'; values: unknown[] } | { kind: 'failed'; error: SluiceError } {
    const { db, file, tables } = this.#parts
    try {
      if (this.#inDoubt) this.#undo()
      db.exec('begin immediate')
      const values = group.map((waiting) => waiting.work())
      tables.finish()
      db.exec('commit')
      this.#tellCommitted()
      return { kind: 'done', values }
    } catch (error) {
      this.#undoIfPossible()
      return { kind: 'failed', error: fault(error, file) }
    }
  }

  /** It is stored: whatever fails from here on must not say that it is not. */
  #tellCommitted(): void {
    this.#parts.tables.ended('committed')
    try {
      this.#parts.committed()
    } catch {
      // What is not written back now is in the log, and is written back after another commit.
    }
  }

  #undo(): void {
    const { db, tables } = this.#parts
    this.#inDoubt = true
    if (db.isTransaction) db.exec('rollback')
    tables.ended('rolled-back')
    this.#inDoubt = false
  }

  /** A disk that takes nothing may not even give back what it has. Then it is asked again before the next commit. */
  #undoIfPossible(): void {
    try {
      this.#undo()
    } catch {
      // In doubt: nothing is read or written before this has been done.
    }
  }
}

function answer(done: readonly Done[]): void {
  for (const { waiting, value } of done) waiting.resolve(value)
}

function closed(): SluiceError {
  return new SluiceError('STORE_CLOSED', 'The store was closed.')
}
