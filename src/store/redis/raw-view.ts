// `RawView` is a table of bytes that belong to rows of another table: the bodies of events, and the requests that brought them. Whoever
// changes the bytes changes that row too, so the bytes need no version of their own.
import type { CommitRequest, LoadRequest } from './script-requests.ts'
import type { TransactionPart } from './table-view.ts'

export class RawView implements TransactionPart {
  readonly hash: string
  readonly #loaded = new Map<string, Buffer | undefined>()
  readonly #changed = new Map<string, Uint8Array | undefined>()
  readonly #misses = new Set<string>()

  constructor(name: string, prefix: string) {
    this.hash = `${prefix}:${name}`
  }

  get(key: string): Uint8Array | undefined {
    if (this.#changed.has(key)) return this.#changed.get(key)
    if (!this.#loaded.has(key)) this.#misses.add(key)
    return this.#loaded.get(key)
  }

  put(key: string, bytes: Uint8Array): void {
    this.#changed.set(key, bytes)
  }

  remove(key: string): void {
    this.#changed.set(key, undefined)
  }

  setLoaded(key: string, bytes: Buffer | undefined): void {
    this.#loaded.set(key, bytes)
  }

  resetPass(): void {
    this.#changed.clear()
    this.#misses.clear()
  }

  get hasMisses(): boolean {
    return this.#misses.size > 0
  }

  addReads(load: LoadRequest): void {
    if (this.#misses.size === 0) return
    const keys = [...this.#misses]
    this.#misses.clear()
    load.readRows(this.hash, keys, (rows) => {
      for (const [at, key] of keys.entries()) this.#loaded.set(key, rows[at] ?? undefined)
    })
  }

  addCommit(commit: CommitRequest): void {
    for (const [key, bytes] of this.#changed) {
      if (bytes === undefined) commit.write('HDEL', this.hash, key)
      else commit.write('HSET', this.hash, key, toBuffer(bytes))
    }
  }

  updateCache(): void {}

  /** Another commit may have removed the bytes. */
  forgetLoaded(): void {
    this.#loaded.clear()
  }
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
