// `HintChannel` sends hints between processes by pub/sub: a lane is due, a run must stop, something changed. A hint may get lost;
// polling finds everything that it announced.
import { randomUUID } from 'node:crypto'
import { systemClock, type Millis } from '../../clock.ts'
import type { Hint } from '../contract/index.ts'
import type { RedisConnection } from './client.ts'

interface HintMessage {
  readonly from: string
  readonly hints: readonly Hint[]
}

/** Hints of this period are sent together. */
const SEND_DELAY: Millis = 2
/** The most queued hints. Polling finds what further hints would announce. */
const MAX_QUEUED = 10_000

export class HintChannel {
  readonly #connection: RedisConnection
  readonly #channel: string
  readonly #processId = randomUUID()
  #waiting = new Map<string, Hint>()
  #isOpen = true
  #isListening = false
  #cancelSend: (() => void) | undefined

  constructor(connection: RedisConnection, channel: string) {
    this.#connection = connection
    this.#channel = channel
  }

  listen(onHint: (hint: Hint) => void): void {
    if (this.#isListening || !this.#isOpen) return
    this.#isListening = true
    // Without a subscription, polling finds what the hints announce.
    this.#connection.subscribe(this.#channel, (message) => this.#receive(message, onHint)).catch(() => {})
  }

  /** `send` queues hints for other processes and returns at once. */
  send(hints: readonly Hint[]): void {
    if (!this.#isOpen) return
    // `opened` hints only concern this process.
    for (const hint of hints) {
      if (hint.kind !== 'opened' && this.#waiting.size < MAX_QUEUED) this.#waiting.set(JSON.stringify(hint), hint)
    }
    if (this.#waiting.size > 0) this.#cancelSend ??= systemClock.after(SEND_DELAY, () => this.#flush())
  }

  #flush(): void {
    const message: HintMessage = { from: this.#processId, hints: [...this.#waiting.values()] }
    this.#waiting = new Map()
    this.#cancelSend = undefined
    this.#connection.send(['PUBLISH', this.#channel, JSON.stringify(message)]).catch(() => {})
  }

  #receive(text: string, onHint: (hint: Hint) => void): void {
    const message = parseMessage(text)
    if (message === undefined || !this.#isOpen || message.from === this.#processId) return
    for (const hint of message.hints) onHint(hint)
  }

  async close(): Promise<void> {
    this.#isOpen = false
    this.#cancelSend?.()
  }
}

/** Anyone who may publish on the server can send anything on the channel, so the message is checked. */
function parseMessage(text: string): HintMessage | undefined {
  try {
    const message = JSON.parse(text) as HintMessage
    return message.hints.every((hint) => typeof hint.kind === 'string') ? message : undefined
  } catch {
    return undefined
  }
}
