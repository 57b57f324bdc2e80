// What happens, live, for whoever watches: arrivals, claims, ends, acts of people. One look at the store serves all readers;
// one who reads too slowly is cut off, and can go on from where he was.
import { randomBytes } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import type { Change, FeedReply, Store } from '../store/contract/index.ts'
import { CallLater } from './call-later.ts'

export interface StreamParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
}

interface Reader {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** Up to where it has been told. */
  after: number
  quietSince: Millis
  readonly isStillIn: () => Promise<boolean>
  /** When that was looked at. */
  checked: Millis
}

const LOOK_EVERY: Millis = 250
const STILL_THERE_EVERY: Millis = 15_000
const AT_ONCE = 1_000
/** Of one reader; what it has not taken by then is not kept for it. */
const BYTES_UNREAD = 256 * 1024
const MOST_READERS = 100
const ROOM_AFTER: Millis = 5_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
} as const

const encoder = new TextEncoder()
const ANYBODY = (): Promise<boolean> => Promise.resolve(true)

/** Names of what is told. */
export const KINDS = ['event', 'alert', 'claimed', 'settled', 'dead', 'steered', 'purged'] as const

export class Stream {
  readonly #parts: StreamParts
  /** Numbers begin anew with the process: those of another mean nothing here. */
  readonly #era = randomBytes(4).toString('hex')
  readonly #readers = new Set<Reader>()
  /** Those for whom the store is being asked have a place already. */
  #coming = 0
  #cancel: (() => void) | undefined

  constructor(parts: StreamParts) {
    this.#parts = parts
  }

  get readers(): number {
    return this.#readers.size
  }

  /** `lastEventId`: of the last one that the reader got, '' for from now on. `isStillIn`: whether it may still be told. */
  async open(lastEventId: string, isStillIn: () => Promise<boolean> = ANYBODY): Promise<Response> {
    if (this.#readers.size + this.#coming >= MOST_READERS) {
      throw new CallLater(`${MOST_READERS} are watching.`, ROOM_AFTER)
    }
    this.#coming++
    try {
      return this.#begun(lastEventId, await newest(await this.#parts.store()), isStillIn)
    } finally {
      this.#coming--
    }
  }

  #begun(lastEventId: string, last: number, isStillIn: Reader['isStillIn']): Response {
    const seen = this.#seenBy(lastEventId, last)
    const after = seen ?? last
    let reader: Reader | undefined
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const now = this.#parts.clock.monotonic()
          reader = { controller, after, quietSince: now, isStillIn, checked: now }
          this.#readers.add(reader)
          const hello = `retry: 1000\nid: ${this.#idOf(after)}\n`
          tell(
            reader,
            seen === undefined && lastEventId !== ''
              ? `${hello}event: skipped\ndata: {}\n\n`
              : `${hello}event: begun\ndata: {}\n\n`,
          )
          this.#look(0)
        },
        cancel: () => this.#leave(reader),
      },
      { highWaterMark: BYTES_UNREAD, size: (chunk) => chunk.byteLength },
    )
    return new Response(body, { headers: HEADERS })
  }

  /** When the app stops. */
  end(): void {
    for (const reader of this.#readers) reader.controller.close()
    this.#readers.clear()
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** Before anybody is told anything more, it is looked at who still may. */
  checkSoon(): void {
    for (const reader of this.#readers) reader.checked = -Infinity
  }

  /** One that lies ahead of all that happened is none that we gave. */
  #seenBy(lastEventId: string, last: number): number | undefined {
    const [era, seq] = lastEventId.split('-')
    const isOurs = era === this.#era && seq !== undefined && /^\d{1,15}$/.test(seq) && Number(seq) <= last
    return isOurs ? Number(seq) : undefined
  }

  #idOf(seq: number): string {
    return `${this.#era}-${seq}`
  }

  #leave(reader: Reader | undefined): void {
    if (reader !== undefined) this.#readers.delete(reader)
  }

  #look(after: Millis): void {
    if (this.#cancel !== undefined || this.#readers.size === 0) return
    this.#cancel = this.#parts.clock.after(after, () => {
      void this.#tellAll()
        .catch(() => {
          // A store that does not answer is looked at again.
        })
        .finally(() => {
          this.#cancel = undefined
          this.#look(LOOK_EVERY)
        })
    })
  }

  async #tellAll(): Promise<void> {
    const store = await this.#parts.store()
    // Most are at the same place: one look is enough for all of these.
    const pages = new Map<number, FeedReply>()
    for (const reader of this.#readers) {
      if (!(await this.#keeps(reader))) continue
      const page = pages.get(reader.after) ?? (await store.feed({ after: reader.after, n: AT_ONCE }))
      pages.set(reader.after, page)
      this.#tellOne(reader, page)
    }
  }

  /** False: it may no longer be told anything, and has ended. */
  async #keeps(reader: Reader): Promise<boolean> {
    const now = this.#parts.clock.monotonic()
    if (now - reader.checked < STILL_THERE_EVERY) return true
    if (await reader.isStillIn()) {
      reader.checked = now
      return true
    }
    if (this.#readers.delete(reader)) reader.controller.close()
    return false
  }

  #tellOne(reader: Reader, { changes, next, skipped }: FeedReply): void {
    const now = this.#parts.clock.monotonic()
    if (changes.length === 0 && !skipped && now - reader.quietSince < STILL_THERE_EVERY) return
    if ((reader.controller.desiredSize ?? 0) <= 0) return this.#cutOff(reader)
    reader.after = next
    reader.quietSince = now
    const missed = skipped ? 'event: skipped\ndata: {}\n\n' : ''
    const text = changes.map((change) => this.#textOf(change)).join('')
    tell(reader, missed + text === '' ? ': still there\n\n' : missed + text)
  }

  /** It can come back with the last id it got. */
  #cutOff(reader: Reader): void {
    this.#leave(reader)
    reader.controller.error(new Error('The reader is too slow.'))
  }

  #textOf({ seq, ...change }: Change): string {
    const told = { ...change, kind: kindOf(change) }
    return `id: ${this.#idOf(seq)}\nevent: ${told.kind}\ndata: ${JSON.stringify(told)}\n\n`
  }
}

/** What people wait for has a name of its own. */
function kindOf({ kind, detail, source }: Omit<Change, 'seq'>): (typeof KINDS)[number] {
  if (kind === 'settled' && detail === 'dead') return 'dead'
  return kind === 'event' && source === 'sluice' && detail.startsWith('alert.') ? 'alert' : kind
}

function tell({ controller }: Reader, text: string): void {
  controller.enqueue(encoder.encode(text))
}

/** From here on: what was before is not told again. */
async function newest(store: Store): Promise<number> {
  let after = 0
  for (;;) {
    const { changes, next } = await store.feed({ after, n: AT_ONCE })
    if (changes.length === 0) return next
    after = next
  }
}
