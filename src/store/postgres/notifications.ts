// `Notifications` sends hints between processes: a lane is due, a run must stop, something changed. Hints travel beside the
// commits, which they would slow down by half, on a connection of their own. Polling finds everything that a lost hint
// announced.
import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type { Hint } from '../contract/index.ts'
import { destroyClient } from './connections.ts'
import { quoteIdentifier } from './schema.ts'

export interface NotificationsDependencies {
  readonly channel: string
  readonly connect: () => Promise<Client>
  readonly clock: Clock
}

interface NotificationMessage {
  readonly from: string
  readonly hints: readonly Hint[]
}

/** Hints of this period are sent together. */
const SEND_DELAY: Millis = 5
const RECONNECT_DELAYS: readonly Millis[] = [100, 500, 1_000, 5_000]
/**
 * A connection that only listens does not notice that its server has vanished. A server that has not replied by the next ping
 * counts as gone.
 */
const PING_INTERVAL: Millis = 5_000
/** The maximum number of queued hints while the server is away. Polling finds what further hints would announce. */
const MAX_QUEUED = 10_000
/** The server's limit for one message, with some reserve. */
const MAX_MESSAGE_BYTES = 7_500

export class Notifications {
  readonly #dependencies: NotificationsDependencies
  readonly #processId = randomUUID()
  #client: Client | undefined
  #waiting = new Map<string, Hint>()
  #isOpen = true
  #isListening = false
  #failures = 0
  #sending: Promise<void> | undefined
  #connecting: Promise<void> | undefined
  #cancelSend: () => void = () => {}
  #cancelReconnect: () => void = () => {}
  #onWatched: () => void = () => {}

  constructor(dependencies: NotificationsDependencies) {
    this.#dependencies = dependencies
  }

  /** `listen` starts listening and passes on the hints of other processes. */
  listen(onHint: (hint: Hint) => void): void {
    if (this.#isListening || !this.#isOpen) return
    this.#isListening = true
    this.#connecting = this.#connect(onHint)
  }

  /** `onWatched` registers a callback that runs when another process announces a watcher. */
  onWatched(watched: () => void): void {
    this.#onWatched = watched
  }

  /** `send` queues hints for other processes and returns at once. */
  send(hints: readonly Hint[]): void {
    if (!this.#isListening || !this.#isOpen) return
    // `opened` hints only concern this process.
    for (const hint of hints) {
      if (hint.kind !== 'opened' && this.#waiting.size < MAX_QUEUED) this.#waiting.set(JSON.stringify(hint), hint)
    }
    if (this.#waiting.size > 0 && this.#sending === undefined) {
      this.#sending = new Promise((resolve) => {
        this.#cancelSend = this.#dependencies.clock.after(SEND_DELAY, () => void this.#flush().then(resolve, resolve))
      })
    }
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#cancelSend()
    this.#cancelReconnect()
    await this.#connecting
    await this.#client?.end().catch(() => {})
  }

  async #flush(): Promise<void> {
    const hints = [...this.#waiting.values()]
    this.#waiting = new Map()
    try {
      for (const text of splitMessage({ from: this.#processId, hints })) {
        await this.#client?.query('select pg_notify($1, $2)', [this.#dependencies.channel, text])
      }
    } catch {
      // The connection is replaced; polling finds what the lost hints announced.
    }
    this.#sending = undefined
    this.send([])
  }

  async #connect(onHint: (hint: Hint) => void): Promise<void> {
    const reconnect = (): void => {
      if (!this.#isOpen) return
      this.#client = undefined
      const delay = RECONNECT_DELAYS[Math.min(this.#failures++, RECONNECT_DELAYS.length - 1)] ?? 0
      this.#cancelReconnect = this.#dependencies.clock.after(delay, () => {
        this.#connecting = this.#connect(onHint)
      })
    }
    const client = await this.#dependencies.connect().catch(() => undefined)
    if (client === undefined) return reconnect()
    client.on('error', () => destroyClient(client))
    client.once('end', reconnect)
    client.on('notification', ({ payload }) => this.#receive(payload, onHint))
    this.#startPing(client)
    try {
      // Hints may be lost, so their commits need not wait for the disk.
      await client.query(`set synchronous_commit = off; listen ${quoteIdentifier(this.#dependencies.channel)}`)
      this.#client = client
      this.#failures = 0
    } catch {
      destroyClient(client)
    }
  }

  #startPing(client: Client): void {
    const { clock } = this.#dependencies
    let isAnswered = true
    const ping = (): void => {
      if (!isAnswered) return destroyClient(client)
      isAnswered = false
      client.query('select 1').then(
        () => (isAnswered = true),
        () => destroyClient(client),
      )
      cancel = clock.after(PING_INTERVAL, ping)
    }
    let cancel = clock.after(PING_INTERVAL, ping)
    client.once('end', () => cancel())
  }

  #receive(payload: string | undefined, onHint: (hint: Hint) => void): void {
    if (payload === undefined || !this.#isOpen) return
    const message = parseMessage(payload)
    if (message === undefined || message.from === this.#processId) return
    const { hints } = message
    if (hints.some(({ kind }) => kind === 'watched')) this.#onWatched()
    for (const hint of hints) onHint(hint)
  }
}

/** Any role that may connect to the database may send anything on the channel, so the message is checked. */
function parseMessage(payload: string): NotificationMessage | undefined {
  try {
    const message = JSON.parse(payload) as NotificationMessage
    return message.hints.every((hint) => typeof hint.kind === 'string') ? message : undefined
  } catch {
    return undefined
  }
}

/** `splitMessage` splits the hints into as many messages as they need. */
function splitMessage({ from, hints }: NotificationMessage): readonly string[] {
  const text = JSON.stringify({ from, hints } satisfies NotificationMessage)
  if (Buffer.byteLength(text) <= MAX_MESSAGE_BYTES) return [text]
  if (hints.length < 2) return []
  const half = Math.ceil(hints.length / 2)
  return [...splitMessage({ from, hints: hints.slice(0, half) }), ...splitMessage({ from, hints: hints.slice(half) })]
}
