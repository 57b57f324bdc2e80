// `Outbox` is what providers have accepted for people, and what they have shown to them.
import { randomUUID } from 'node:crypto'

export interface Sent {
  /** On the clock that only goes forward. */
  readonly at: number
  /** Of the provider. */
  readonly id: string
  readonly line: string
  readonly to: string
  readonly text: string
  /** The run that sent it, where the provider takes such a mark. */
  readonly run: string
}

export class Outbox {
  readonly sent: Sent[] = []
  readonly typing: { readonly at: number; readonly id: string }[] = []
  /** A provider never gives an id twice, also if it is started again. */
  readonly #began = randomUUID().slice(0, 8)

  /** Takes the message, and gives it an id. */
  accept(prefix: string, sent: Omit<Sent, 'id'>): Sent {
    const accepted = { ...sent, id: `${prefix}${this.#began}.${this.sent.length}` }
    this.sent.push(accepted)
    return accepted
  }
}
