// `CallBatcher` collects the requests of one event-loop turn, and those that arrive during an earlier call, into one call to the
// store, in order. A process therefore never sends more calls than the store answers, however high a rate is (M2).
import type { Store } from '../store/contract/index.ts'

interface PendingCall<Ask, Answer> {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** `SendBatch` returns the answers in the order of the asks. */
export type SendBatch<Ask, Answer> = (store: Store, asks: readonly Ask[]) => Promise<readonly Answer[]>

export class CallBatcher<Ask, Answer> {
  readonly #store: () => Promise<Store>
  readonly #send: SendBatch<Ask, Answer>
  #waiting: PendingCall<Ask, Answer>[] = []
  #underWay: Promise<void> | undefined

  constructor(store: () => Promise<Store>, send: SendBatch<Ask, Answer>) {
    this.#store = store
    this.#send = send
  }

  call(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ask, resolve, reject })
      this.#underWay ??= this.#flushAll()
    })
  }

  /** `drained` resolves when every request has its answer. */
  async drained(): Promise<void> {
    await this.#underWay
  }

  async #flushAll(): Promise<void> {
    // Requests of the same turn join the batch.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#flush()
    this.#underWay = undefined
  }

  async #flush(): Promise<void> {
    let sent: readonly PendingCall<Ask, Answer>[] | undefined
    try {
      // Requests that arrive while the store opens join the batch.
      const store = await this.#store()
      sent = this.#takeWaiting()
      const answers = await this.#send(
        store,
        sent.map(({ ask }) => ask),
      )
      for (const [n, one] of sent.entries()) one.resolve(answers[n] as Answer)
    } catch (error) {
      for (const one of sent ?? this.#takeWaiting()) one.reject(error)
    }
  }

  #takeWaiting(): readonly PendingCall<Ask, Answer>[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }
}
