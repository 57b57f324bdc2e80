// What is asked for in one turn of the event loop, or while an earlier call is under way, goes to the store in one call, in
// the order it was asked for. So a process never sends more calls than the store answers, however high a rate is (M2).
import type { Store } from '../store/contract/index.ts'

interface Asking<Ask, Answer> {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** Answers in the order of the asks. */
export type Send<Ask, Answer> = (store: Store, asks: readonly Ask[]) => Promise<readonly Answer[]>

export class Batch<Ask, Answer> {
  readonly #store: () => Promise<Store>
  readonly #send: Send<Ask, Answer>
  #waiting: Asking<Ask, Answer>[] = []
  #underWay: Promise<void> | undefined

  constructor(store: () => Promise<Store>, send: Send<Ask, Answer>) {
    this.#store = store
    this.#send = send
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ask, resolve, reject })
      this.#underWay ??= this.#flushAll()
    })
  }

  /** Everybody who asked has been answered. */
  async allAnswered(): Promise<void> {
    await this.#underWay
  }

  async #flushAll(): Promise<void> {
    // Whoever asks in the same turn goes along.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#flush()
    this.#underWay = undefined
  }

  async #flush(): Promise<void> {
    let sent: readonly Asking<Ask, Answer>[] | undefined
    try {
      // Whoever asks while the store is being opened goes along.
      const store = await this.#store()
      sent = this.#taken()
      const answers = await this.#send(
        store,
        sent.map(({ ask }) => ask),
      )
      for (const [n, one] of sent.entries()) one.resolve(answers[n] as Answer)
    } catch (error) {
      for (const one of sent ?? this.#taken()) one.reject(error)
    }
  }

  #taken(): readonly Asking<Ask, Answer>[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }
}
