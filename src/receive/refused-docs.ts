// Refused requests outlive the process that refused them: one small document of each source, written now and then and
// never while a request waits (R5). However many a stranger sends, a process writes as often and as much as it says here.
import { within, type Clock, type Millis } from '../clock.ts'
import type { Seal, SealedDocs } from '../seal.ts'
import type { Store, WriteDocsCall } from '../store/contract/index.ts'
import { KEPT, NO_SOURCE, type RefusedRequest, type RefusedRequests } from './refused-requests.ts'

export interface RefusedDocsParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  /** What this process has refused. */
  readonly refused: Pick<RefusedRequests, 'of'>
  readonly seal: Seal
  /** What was sent to a source whose payloads are sealed is sealed here as well. */
  readonly isSealed: (source: string) => boolean
}

const KIND = 'refused'
/** No source can be called so. */
const ID_OF_NO_SOURCE = '(none)'
const WRITE_EVERY: Millis = 5_000
const STOP_WITHIN: Millis = 2_000
const TRIES = 5
const DOC_BYTES = 64_000
const HEADER_BYTES = 2_000
const PATH_LENGTH = 500
/** Clocks differ a little; what is further ahead was written by one that was wrong, and would stay first for ever. */
const AHEAD: Millis = 60_000

interface Kept {
  readonly rev: number
  readonly requests: readonly RefusedRequest[]
}

export class RefusedDocs {
  readonly #parts: RefusedDocsParts
  readonly #unwritten = new Set<string>()
  /** Set until all that was unwritten when it rang has been tried: a store that hangs is not asked again meanwhile. */
  #timer: (() => void) | undefined
  #writing: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: RefusedDocsParts) {
    this.#parts = parts
  }

  /** Newest first, of all processes; if the store fails, of this one. */
  async of(source: string): Promise<readonly RefusedRequest[]> {
    const own = this.#parts.refused.of(source)
    try {
      return merged(own, (await this.#read(await this.#parts.store(), source)).requests)
    } catch {
      return own
    }
  }

  added(source: string): void {
    this.#unwritten.add(source)
    this.#arm()
  }

  /** Writes what is not written yet, if the store answers in time. */
  async flush(): Promise<void> {
    if (this.#unwritten.size > 0) this.#write()
    await within(this.#parts.clock, this.#writing, STOP_WITHIN)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.()
    await this.flush()
  }

  #arm(): void {
    if (this.#isStopped) return
    this.#timer ??= this.#parts.clock.after(WRITE_EVERY, () => void this.#inTurn())
  }

  async #inTurn(): Promise<void> {
    this.#write()
    await this.#writing
    this.#timer = undefined
    if (this.#unwritten.size > 0) this.#arm()
  }

  #write(): void {
    this.#writing = this.#writeAfter(this.#writing)
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    await before
    const sources = [...this.#unwritten]
    this.#unwritten.clear()
    for (const source of sources) if (!(await this.#isWritten(source))) this.#unwritten.add(source)
  }

  /** Fails nobody: what could not be written is tried again the next time. */
  async #isWritten(source: string): Promise<boolean> {
    try {
      const store = await this.#parts.store()
      for (let tries = 0; tries < TRIES; tries++) {
        const { rev, requests } = await this.#read(store, source)
        const write = this.#written(source, rev, merged(this.#parts.refused.of(source), requests))
        const { kind } = await store.writeDocs({ writes: [write], raiseRoutes: false, audit: undefined })
        if (kind === 'written') return true
      }
      return false
    } catch {
      return false
    }
  }

  #written(source: string, ifRev: number, requests: readonly RefusedRequest[]): WriteDocsCall['writes'][number] {
    const text = Buffer.from(bounded(requests))
    const body = this.#parts.isSealed(source) ? this.#parts.seal.seal(text, purposeOf(source)) : text
    return { kind: KIND, id: idOf(source), ifRev, body }
  }

  async #read(store: Store, source: string): Promise<Kept> {
    const { docs, now } = await store.readDocs({ kind: KIND, ids: [idOf(source)], after: '', n: 1 })
    const [doc] = docs
    if (doc === undefined) return { rev: 0, requests: [] }
    const requests = this.#requestsIn(doc.body, source).filter(({ at }) => at <= now + AHEAD)
    return { rev: doc.rev, requests }
  }

  #requestsIn(body: Uint8Array, source: string): readonly RefusedRequest[] {
    try {
      const bytes = body[0] === LIST ? Buffer.from(body) : this.#parts.seal.open(body, purposeOf(source))
      return JSON.parse(bytes.toString()) as readonly RefusedRequest[]
    } catch {
      // Sealed under a key that is gone: nobody can read it any more, and it makes room.
      return []
    }
  }
}

/** How a list begins; what is sealed begins otherwise. */
const LIST = '['.charCodeAt(0)

export const REFUSED_DOCS: SealedDocs = {
  kind: KIND,
  resealed: (seal, { id, body }) => (body[0] === LIST ? undefined : seal.resealed(body, purposeOf(id))),
}

function merged(own: readonly RefusedRequest[], kept: readonly RefusedRequest[]): readonly RefusedRequest[] {
  const known = new Set(own.map(({ request }) => request))
  const others = kept.filter(({ request }) => !known.has(request))
  return [...own, ...others].toSorted((one, other) => other.at - one.at).slice(0, KEPT)
}

/** Whoever sends decides how long all of it is: of the newest there is as much as there is room for. */
function bounded(requests: readonly RefusedRequest[]): string {
  const texts = requests.map((one) => {
    const headers = fitting(Object.entries(one.headers), HEADER_BYTES, ([name, value]) => name.length + value.length)
    return JSON.stringify({ ...one, path: one.path.slice(0, PATH_LENGTH), headers: Object.fromEntries(headers) })
  })
  return `[${fitting(texts, DOC_BYTES, (text) => Buffer.byteLength(text) + 1).join(',')}]`
}

function fitting<T>(items: readonly T[], room: number, sizeOf: (item: T) => number): readonly T[] {
  let left = room
  return items.filter((item) => {
    const size = sizeOf(item)
    if (size > left) return false
    left -= size
    return true
  })
}

function idOf(source: string): string {
  return source === NO_SOURCE ? ID_OF_NO_SOURCE : source
}

function purposeOf(source: string): string {
  return `refused requests of source ${source}`
}
