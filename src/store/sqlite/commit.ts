// Work of one moment shares one commit: a hundred arrivals cost one sync of the disk. None is answered before that sync.
import type { DatabaseSync } from 'node:sqlite'
import { SluiceError, type ErrorCode } from '../../errors.ts'
import type { Commit } from '../embedded/store.ts'
import { fault } from './faults.ts'

interface Waiting {
  readonly work: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** What memory holds of the file, and when it has to be put down or let go. */
interface BehindTheFile {
  readonly isBehind: boolean
  /** Before anybody reads the rows. */
  catchUp(): void
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
  readonly close: () => Promise<void>
}

/** Not the fault of one piece of work: the others would fail the same way. */
const OF_THE_DISK: ReadonlySet<ErrorCode> = new Set(['STORE_FULL', 'STORE_UNWRITABLE', 'STORE_DAMAGED'])

export class GroupCommit implements Commit {
  readonly durable = { yes: true, because: 'WAL with synchronous=FULL: synced before it is acknowledged' }
  readonly #parts: CommitParts
  #queue: Waiting[] = []
  #scheduled = false
  #open = true
  /** A commit was undone, and memory may still say what the file does not. */
  #inDoubt = false

  constructor(parts: CommitParts) {
    this.#parts = parts
  }

  write<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.#open) return reject(closed())
      if (this.#parts.readOnly) return reject(new SluiceError('STORE_READ_ONLY', 'This store was opened to be read.'))
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      if (this.#scheduled) return undefined
      this.#scheduled = true
      // Once round the event loop: everything that has arrived by then goes along.
      setImmediate(() => this.#flush())
      return undefined
    })
  }

  async read<T>(work: () => T): Promise<T> {
    if (!this.#open) throw closed()
    const { readOnly, tables } = this.#parts
    if (!readOnly && (tables.isBehind || this.#inDoubt)) await this.write(() => tables.catchUp())
    try {
      return work()
    } catch (error) {
      throw fault(error, this.#parts.file)
    }
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#flush()
    this.#open = false
    await this.#parts.close()
  }

  #flush(): void {
    const group = this.#queue
    this.#queue = []
    this.#scheduled = false
    if (group.length === 0) return
    const results = this.#attempt(group)
    if (results.kind === 'done') {
      for (const [at, waiting] of group.entries()) waiting.resolve(results.values[at])
    } else if (group.length === 1 || OF_THE_DISK.has(results.error.code)) {
      for (const waiting of group) waiting.reject(results.error)
    } else {
      // One of them cannot be done. Each by itself, so that it fails alone.
      for (const waiting of group) this.#alone(waiting)
    }
  }

  #alone(waiting: Waiting): void {
    const result = this.#attempt([waiting])
    if (result.kind === 'done') waiting.resolve(result.values[0])
    else waiting.reject(result.error)
  }

  #attempt(group: readonly Waiting[]): { kind: 'done'; values: unknown[] } | { kind: 'failed'; error: SluiceError } {
    const { db, file, tables } = this.#parts
    try {
      if (this.#inDoubt) this.#undo()
      db.exec('begin immediate')
      const values = group.map((waiting) => waiting.work())
      tables.finish()
      db.exec('commit')
      this.#committed()
      return { kind: 'done', values }
    } catch (error) {
      this.#undoIfPossible()
      return { kind: 'failed', error: fault(error, file) }
    }
  }

  /** It is stored: whatever fails from here on must not say that it is not. */
  #committed(): void {
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

function closed(): SluiceError {
  return new SluiceError('STORE_CLOSED', 'The store was closed.')
}
