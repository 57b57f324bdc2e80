// `RefusedDocs` stores the refused requests of each source as one small document, so that they outlive the process
// (R5). It writes now and then, and never while a request waits. However much a stranger sends, a process writes at
// most at this rate and this size.
import { waitAtMost, type Clock, type Millis } from '../clock.ts'
import type { Keyring, EncryptedDocs } from '../crypto/keyring.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import { changeDoc, readDoc } from '../store/documents.ts'
import { MAX_KEPT, NO_SOURCE, type RefusedRequest, type RefusedRequests } from './refused-requests.ts'

export interface RefusedDocsDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  /** The requests that this process has refused. */
  readonly refusedRequests: Pick<RefusedRequests, 'list'>
  readonly keyring: Keyring
  /** For a source with encrypted payloads, the document is encrypted too. */
  readonly isEncrypted: (source: string) => boolean
}

const KIND = 'refused'
/** No source can have this name. */
const ID_OF_NO_SOURCE = '(none)'
const WRITE_EVERY: Millis = 5_000
const STOP_WITHIN: Millis = 2_000
const DOC_BYTES = 64_000
const HEADER_BYTES = 2_000
const PATH_LENGTH = 500
/** Clocks differ a little. A request further ahead was written by a wrong clock, and would stay first for ever. */
const MAX_CLOCK_AHEAD: Millis = 60_000

export class RefusedDocs {
  readonly #deps: RefusedDocsDependencies
  readonly #unwritten = new Set<string>()
  /** Set until every write due when the timer fired was tried: a store that hangs gets no further writes meanwhile. */
  #timer: (() => void) | undefined
  #writing: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: RefusedDocsDependencies) {
    this.#deps = parts
  }

  /** `list` returns the refused requests of all processes, newest first; if the store fails, those of this process. */
  async list(source: string): Promise<readonly RefusedRequest[]> {
    const own = this.#deps.refusedRequests.list(source)
    try {
      const { doc, now } = await readDoc(await this.#deps.store(), KIND, toDocId(source))
      return mergeRequests(own, this.#parseRequests(doc, source, now))
    } catch {
      return own
    }
  }

  onAdded(source: string): void {
    this.#unwritten.add(source)
    this.#scheduleWrite()
  }

  /** `flush` writes the rest, if the store responds in time. */
  async flush(): Promise<void> {
    if (this.#unwritten.size > 0) this.#write()
    await waitAtMost(this.#deps.clock, this.#writing, STOP_WITHIN)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.()
    await this.flush()
  }

  #scheduleWrite(): void {
    if (this.#isStopped) return
    this.#timer ??= this.#deps.clock.after(WRITE_EVERY, () => void this.#writeAll())
  }

  async #writeAll(): Promise<void> {
    this.#write()
    await this.#writing
    this.#timer = undefined
    if (this.#unwritten.size > 0) this.#scheduleWrite()
  }

  #write(): void {
    this.#writing = this.#writeAfter(this.#writing)
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    await before
    const sources = [...this.#unwritten]
    this.#unwritten.clear()
    for (const source of sources) if (!(await this.#writeSource(source))) this.#unwritten.add(source)
  }

  /** `#writeSource` never rejects: a failed write is tried again next time. */
  async #writeSource(source: string): Promise<boolean> {
    try {
      const change = { kind: KIND, id: toDocId(source), title: `the refused requests of source ${source}` }
      await changeDoc(await this.#deps.store(), change, (doc, now) => {
        const requests = mergeRequests(this.#deps.refusedRequests.list(source), this.#parseRequests(doc, source, now))
        return { body: this.#toBody(source, requests), result: undefined }
      })
      return true
    } catch {
      return false
    }
  }

  #toBody(source: string, requests: readonly RefusedRequest[]): Uint8Array {
    const text = Buffer.from(serializeBounded(requests))
    return this.#deps.isEncrypted(source) ? this.#deps.keyring.encrypt(text, refusedPurpose(source)) : text
  }

  #parseRequests(doc: Doc | undefined, source: string, now: Millis): readonly RefusedRequest[] {
    if (doc === undefined) return []
    const { body } = doc
    try {
      const bytes =
        body[0] === LIST_START ? Buffer.from(body) : this.#deps.keyring.decrypt(body, refusedPurpose(source))
      const requests = JSON.parse(bytes.toString()) as readonly RefusedRequest[]
      return requests.filter(({ at }) => at <= now + MAX_CLOCK_AHEAD)
    } catch {
      // The document was encrypted with a key that is gone. Nobody can read it any more, so the next write replaces it.
      return []
    }
  }
}

/** The first byte of a plain list; encrypted bytes begin differently. */
const LIST_START = '['.charCodeAt(0)

export const REFUSED_DOCS: EncryptedDocs = {
  kind: KIND,
  reencrypt: (keyring, { id, body }) =>
    body[0] === LIST_START ? undefined : keyring.reencrypt(body, refusedPurpose(id)),
}

function mergeRequests(local: readonly RefusedRequest[], stored: readonly RefusedRequest[]): readonly RefusedRequest[] {
  const known = new Set(local.map(({ request }) => request))
  const others = stored.filter(({ request }) => !known.has(request))
  return [...local, ...others].toSorted((one, other) => other.at - one.at).slice(0, MAX_KEPT)
}

/** `serializeBounded` keeps as many of the newest requests as fit, because strangers choose the length of each. */
function serializeBounded(requests: readonly RefusedRequest[]): string {
  const texts = requests.map((one) => {
    const headers = takeFitting(
      Object.entries(one.headers),
      HEADER_BYTES,
      ([name, value]) => name.length + value.length,
    )
    return JSON.stringify({ ...one, path: one.path.slice(0, PATH_LENGTH), headers: Object.fromEntries(headers) })
  })
  return `[${takeFitting(texts, DOC_BYTES, (text) => Buffer.byteLength(text) + 1).join(',')}]`
}

function takeFitting<T>(items: readonly T[], room: number, sizeOf: (item: T) => number): readonly T[] {
  let left = room
  return items.filter((item) => {
    const size = sizeOf(item)
    if (size > left) return false
    left -= size
    return true
  })
}

function toDocId(source: string): string {
  return source === NO_SOURCE ? ID_OF_NO_SOURCE : source
}

function refusedPurpose(source: string): string {
  return `refused requests of source ${source}`
}
