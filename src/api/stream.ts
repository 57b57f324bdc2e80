// `Stream` sends changes (arrivals, claims, settlements, actions of operators) live as server-sent events. One poll of
// the store serves all readers. A reader that is too slow is disconnected and can resume from its last event.
import { randomBytes } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import type { FeedEntry, ReadFeedReply, Store } from '../store/contract/index.ts'
import { TooManyRequestsError } from './responses.ts'

export interface StreamDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
}

/** `Watcher` is the caller of a stream: the name of its key, and whether that key may still read. */
export interface Watcher {
  readonly name: string
  readonly isStillAllowed: () => Promise<boolean>
}

interface Reader extends Watcher {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** The last position sent to this reader. */
  sentUpTo: number
  lastSentAt: Millis
  /** When `isStillAllowed` was last checked. */
  checkedAt: Millis
}

const POLL_EVERY: Millis = 250
const HEARTBEAT_EVERY: Millis = 15_000
const FEED_BATCH = 1_000
/** The buffer of one reader. A reader that falls further behind is disconnected. */
const MAX_UNREAD_BYTES = 256 * 1024
const MAX_READERS = 100
/** The maximum number of readers with the same key, so that one key cannot use up all readers. */
const MAX_READERS_PER_KEY = 20
const RETRY_WHEN_FULL: Millis = 5_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
} as const

const encoder = new TextEncoder()

/** `CHANGE_KINDS` are the event names of the stream. */
export const CHANGE_KINDS = ['event', 'alert', 'claimed', 'settled', 'dead', 'steered', 'purged'] as const

export class Stream {
  readonly #deps: StreamDependencies
  /** Positions restart with the process, so an id contains the process it is from. */
  readonly #era = randomBytes(4).toString('hex')
  readonly #readers = new Set<Reader>()
  /** The names of the readers that are being opened. Each already counts against the maximum. */
  readonly #opening: string[] = []
  #cancel: (() => void) | undefined

  constructor(deps: StreamDependencies) {
    this.#deps = deps
  }

  get readers(): number {
    return this.#readers.size
  }

  /** `open` starts a stream after the event that the reader got last; `''` starts with the next event. */
  async open(lastEventId: string, watcher: Watcher): Promise<Response> {
    const names = [...Array.from(this.#readers, ({ name }) => name), ...this.#opening]
    if (names.length >= MAX_READERS) throw new TooManyRequestsError(`${MAX_READERS} are watching.`, RETRY_WHEN_FULL)
    const { name } = watcher
    if (names.filter((one) => one === name).length >= MAX_READERS_PER_KEY) {
      throw new TooManyRequestsError(`${name} has ${MAX_READERS_PER_KEY} streams open.`, RETRY_WHEN_FULL)
    }
    this.#opening.push(name)
    try {
      return this.#startStream(lastEventId, await readNewestPosition(await this.#deps.store()), watcher)
    } finally {
      this.#opening.splice(this.#opening.indexOf(name), 1)
    }
  }

  #startStream(lastEventId: string, last: number, { name, isStillAllowed }: Watcher): Response {
    const seen = this.#parsePosition(lastEventId, last)
    const after = seen ?? last
    let reader: Reader | undefined
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const now = this.#deps.clock.monotonic()
          reader = { controller, sentUpTo: after, lastSentAt: now, name, isStillAllowed, checkedAt: now }
          this.#readers.add(reader)
          const hello = `retry: 1000\nid: ${this.#eventId(after)}\n`
          enqueue(
            reader,
            seen === undefined && lastEventId !== ''
              ? `${hello}event: skipped\ndata: {}\n\n`
              : `${hello}event: begun\ndata: {}\n\n`,
          )
          this.#schedulePoll(0)
        },
        cancel: () => this.#removeReader(reader),
      },
      { highWaterMark: MAX_UNREAD_BYTES, size: (chunk) => chunk.byteLength },
    )
    return new Response(body, { headers: HEADERS })
  }

  /** `close` ends all streams when the app stops. */
  close(): void {
    for (const reader of this.#readers) reader.controller.close()
    this.#readers.clear()
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** `recheckAccess` makes the stream check each reader's access again before it sends anything more. */
  recheckAccess(): void {
    for (const reader of this.#readers) reader.checkedAt = -Infinity
  }

  /** A position beyond the newest change is not one that this process gave out. */
  #parsePosition(lastEventId: string, last: number): number | undefined {
    const [era, seq] = lastEventId.split('-')
    const isOurs = era === this.#era && seq !== undefined && /^\d{1,15}$/.test(seq) && Number(seq) <= last
    return isOurs ? Number(seq) : undefined
  }

  #eventId(seq: number): string {
    return `${this.#era}-${seq}`
  }

  #removeReader(reader: Reader | undefined): void {
    if (reader !== undefined) this.#readers.delete(reader)
  }

  #schedulePoll(after: Millis): void {
    if (this.#cancel !== undefined || this.#readers.size === 0) return
    this.#cancel = this.#deps.clock.after(after, () => {
      void this.#sendToAll()
        .catch(() => {
          // The store is unavailable: the next poll retries.
        })
        .finally(() => {
          this.#cancel = undefined
          this.#schedulePoll(POLL_EVERY)
        })
    })
  }

  async #sendToAll(): Promise<void> {
    const store = await this.#deps.store()
    // Most readers are at the same position, so one read serves them all.
    const pages = new Map<number, ReadFeedReply>()
    for (const reader of this.#readers) {
      if (!(await this.#checkAccess(reader))) continue
      const page = pages.get(reader.sentUpTo) ?? (await store.readFeed({ after: reader.sentUpTo, n: FEED_BATCH }))
      pages.set(reader.sentUpTo, page)
      this.#sendTo(reader, page)
    }
  }

  /** Returns false if the reader has lost access; its stream has then ended. */
  async #checkAccess(reader: Reader): Promise<boolean> {
    const now = this.#deps.clock.monotonic()
    if (now - reader.checkedAt < HEARTBEAT_EVERY) return true
    if (await reader.isStillAllowed()) {
      reader.checkedAt = now
      return true
    }
    if (this.#readers.delete(reader)) reader.controller.close()
    return false
  }

  #sendTo(reader: Reader, { changes, next, skipped }: ReadFeedReply): void {
    const now = this.#deps.clock.monotonic()
    if (changes.length === 0 && !skipped && now - reader.lastSentAt < HEARTBEAT_EVERY) return
    if ((reader.controller.desiredSize ?? 0) <= 0) return this.#disconnect(reader)
    reader.sentUpTo = next
    reader.lastSentAt = now
    const missed = skipped ? 'event: skipped\ndata: {}\n\n' : ''
    const text = changes.map((change) => this.#format(change)).join('')
    enqueue(reader, missed + text === '' ? ': still there\n\n' : missed + text)
  }

  /** The client can reconnect with the last id it received. */
  #disconnect(reader: Reader): void {
    this.#removeReader(reader)
    reader.controller.error(new Error('The reader is too slow.'))
  }

  #format({ seq, ...change }: FeedEntry): string {
    const sent = { ...change, kind: kindOf(change) }
    return `id: ${this.#eventId(seq)}\nevent: ${sent.kind}\ndata: ${JSON.stringify(sent)}\n\n`
  }
}

/** Changes that people wait for, i.e. dead letters and alerts, have kinds of their own. */
function kindOf({ kind, detail, source }: Omit<FeedEntry, 'seq'>): (typeof CHANGE_KINDS)[number] {
  if (kind === 'settled' && detail === 'dead') return 'dead'
  return kind === 'event' && source === 'sluice' && detail.startsWith('alert.') ? 'alert' : kind
}

function enqueue({ controller }: Reader, text: string): void {
  controller.enqueue(encoder.encode(text))
}

/** New readers start here: older changes are not sent. */
async function readNewestPosition(store: Store): Promise<number> {
  let after = 0
  for (;;) {
    const { changes, next } = await store.readFeed({ after, n: FEED_BATCH })
    if (changes.length === 0) return next
    after = next
  }
}
