// What processes tell each other: that something is due, has to stop, or has changed. Told beside the commits, which it
// would slow down by half, on a connection of its own; whatever is lost is found by polling.
import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type { Hint } from '../contract/index.ts'
import { cut } from './connections.ts'
import { quoted } from './schema.ts'

export interface HintParts {
  readonly channel: string
  readonly connect: () => Promise<Client>
  readonly clock: Clock
}

interface Told {
  readonly from: string
  readonly hints: readonly Hint[]
}

/** News of so long go together. */
const APART: Millis = 5
const AGAIN_AFTER: readonly Millis[] = [100, 500, 1_000, 5_000]
/** Whoever only listens hears nothing of a server that has vanished: one that has not answered by the next time is taken for gone. */
const ASKED_EVERY: Millis = 5_000
/** While the server takes none; what is left out is found by polling. */
const MOST_WAITING = 10_000
/** What one message of the server may have, and some room. */
const MOST_BYTES = 7_500

export class Hints {
  readonly #parts: HintParts
  readonly #self = randomUUID()
  #client: Client | undefined
  #waiting = new Map<string, Hint>()
  #isOpen = true
  #isHearing = false
  #failures = 0
  #sending: Promise<void> | undefined
  #connecting: Promise<void> | undefined
  #cancel: () => void = () => {}
  #cancelAgain: () => void = () => {}
  #watched: () => void = () => {}

  constructor(parts: HintParts) {
    this.#parts = parts
  }

  /** From other processes; begins to listen. */
  hear(tell: (hint: Hint) => void): void {
    if (this.#isHearing || !this.#isOpen) return
    this.#isHearing = true
    this.#connecting = this.#connect(tell)
  }

  /** Others say that they look on. */
  onWatched(watched: () => void): void {
    this.#watched = watched
  }

  /** To other processes. Nobody waits for it. */
  send(hints: readonly Hint[]): void {
    if (!this.#isHearing || !this.#isOpen) return
    // Where an event came into a lane is nobody else's business.
    for (const hint of hints) {
      if (hint.kind !== 'opened' && this.#waiting.size < MOST_WAITING) this.#waiting.set(JSON.stringify(hint), hint)
    }
    if (this.#waiting.size > 0 && this.#sending === undefined) {
      this.#sending = new Promise((resolve) => {
        this.#cancel = this.#parts.clock.after(APART, () => void this.#flush().then(resolve, resolve))
      })
    }
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#cancel()
    this.#cancelAgain()
    await this.#connecting
    await this.#client?.end().catch(() => {})
  }

  async #flush(): Promise<void> {
    const hints = [...this.#waiting.values()]
    this.#waiting = new Map()
    try {
      for (const text of textsOf({ from: this.#self, hints })) {
        await this.#client?.query('select pg_notify($1, $2)', [this.#parts.channel, text])
      }
    } catch {
      // The connection is replaced; what was not told is found by polling.
    }
    this.#sending = undefined
    this.send([])
  }

  async #connect(tell: (hint: Hint) => void): Promise<void> {
    const again = (): void => {
      if (!this.#isOpen) return
      this.#client = undefined
      const delay = AGAIN_AFTER[Math.min(this.#failures++, AGAIN_AFTER.length - 1)] ?? 0
      this.#cancelAgain = this.#parts.clock.after(delay, () => {
        this.#connecting = this.#connect(tell)
      })
    }
    const client = await this.#parts.connect().catch(() => undefined)
    if (client === undefined) return again()
    client.on('error', () => cut(client))
    client.once('end', again)
    client.on('notification', ({ payload }) => this.#told(payload, tell))
    this.#watch(client)
    try {
      // What it says may be lost, and need not wait for a disk.
      await client.query(`set synchronous_commit = off; listen ${quoted(this.#parts.channel)}`)
      this.#client = client
      this.#failures = 0
    } catch {
      cut(client)
    }
  }

  #watch(client: Client): void {
    const { clock } = this.#parts
    let isAnswered = true
    const ask = (): void => {
      if (!isAnswered) return cut(client)
      isAnswered = false
      client.query('select 1').then(
        () => (isAnswered = true),
        () => cut(client),
      )
      cancel = clock.after(ASKED_EVERY, ask)
    }
    let cancel = clock.after(ASKED_EVERY, ask)
    client.once('end', () => cancel())
  }

  #told(payload: string | undefined, tell: (hint: Hint) => void): void {
    if (payload === undefined || !this.#isOpen) return
    const told = heard(payload)
    if (told === undefined || told.from === this.#self) return
    const { hints } = told
    if (hints.some(({ kind }) => kind === 'watched')) this.#watched()
    for (const hint of hints) tell(hint)
  }
}

/** Whoever may connect to the database may say anything on the channel. */
function heard(payload: string): Told | undefined {
  try {
    const told = JSON.parse(payload) as Told
    return told.hints.every((hint) => typeof hint.kind === 'string') ? told : undefined
  } catch {
    return undefined
  }
}

/** As many messages as it takes. */
function textsOf({ from, hints }: Told): readonly string[] {
  const text = JSON.stringify({ from, hints } satisfies Told)
  if (Buffer.byteLength(text) <= MOST_BYTES) return [text]
  if (hints.length < 2) return []
  const half = Math.ceil(hints.length / 2)
  return [...textsOf({ from, hints: hints.slice(0, half) }), ...textsOf({ from, hints: hints.slice(half) })]
}
