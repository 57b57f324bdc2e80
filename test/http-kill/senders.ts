// 64 kept-alive connections, each of which sends one signed webhook after the other until the server no longer responds.
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { bodyOf, headersOf } from './load.ts'

const CONNECTIONS = 64

/** `undefined` means no response: the webhook may be stored or not. */
export type Heard = (label: string, status: number | undefined) => void

export class Senders {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  readonly #port: number
  readonly #heard: Heard
  /** `all` resolves when every connection has found the server dead. */
  readonly all: Promise<unknown>
  #isOver = false

  /** `labels` is the endless sequence of what to send next. */
  constructor(port: number, labels: () => string, heard: Heard) {
    this.#port = port
    this.#heard = heard
    this.all = Promise.all(Array.from({ length: CONNECTIONS }, () => this.#sendOn(labels)))
  }

  /** The server is dead: webhooks without a response will get none. */
  async over(): Promise<void> {
    this.#isOver = true
    await this.all
    this.#agent.destroy()
  }

  async #sendOn(labels: () => string): Promise<void> {
    while (!this.#isOver) {
      const label = labels()
      this.#heard(label, await this.#answer(label))
    }
  }

  async #answer(label: string): Promise<number | undefined> {
    const body = bodyOf(label)
    const sending = request({
      host: '127.0.0.1',
      port: this.#port,
      path: '/in/github',
      method: 'POST',
      headers: headersOf(label, body),
      agent: this.#agent,
    })
    try {
      const answered = once(sending, 'response')
      sending.end(body)
      const [response] = (await answered) as [IncomingMessage]
      // The status has arrived, so the rest of the response does not matter.
      response.on('error', () => {}).resume()
      return response.statusCode
    } catch {
      this.#isOver = true
      return undefined
    }
  }
}
