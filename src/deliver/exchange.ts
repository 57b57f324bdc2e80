// One request on the wire and what is heard of its answer, until the other side ends it, or we do.
// Below `request` of undici: that one hears of an abort only when there is a connection, and makes a stream of every answer.
import type { Dispatcher } from 'undici'

type Controller = Dispatcher.DispatchController
type AnswerHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

export interface Heard {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly body: Buffer
  /** Otherwise it went on, and was not listened to. */
  readonly isWhole: boolean
}

export class Exchange implements Dispatcher.DispatchHandler {
  readonly #most: number
  readonly #heard = Promise.withResolvers<Heard>()
  readonly #chunks: Buffer[] = []
  #length = 0
  #head: Pick<Heard, 'status' | 'headers'> | undefined
  #controller: Controller | undefined
  #ended: Error | undefined

  /** So many bytes of the answer are kept. When there are more the connection is given up. */
  constructor(most: number) {
    this.#most = most
  }

  /** Rejects with what undici or the agent has to say, or with the reason for which it was ended. */
  async with(agent: Dispatcher, what: Dispatcher.DispatchOptions): Promise<Heard> {
    agent.dispatch(what, this)
    return this.#heard.promise
  }

  /** At once, whatever state it is in: a connection that is still being made is of no use any more. */
  end(reason: Error): void {
    this.#ended ??= reason
    this.#fail(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#ended !== undefined) controller.abort(this.#ended)
  }

  onResponseStart(_: Controller, status: number, headers: AnswerHeaders): void {
    // One below 200 is followed by another.
    this.#head = { status, headers }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#chunks.push(chunk.subarray(0, Math.max(0, this.#most - this.#length)))
    this.#length += chunk.length
    if (this.#length <= this.#most) return
    this.#tell(false)
    controller.abort(new Error('That was enough.'))
  }

  onResponseEnd(): void {
    this.#tell(true)
  }

  onResponseError(_: Controller, error: Error): void {
    this.#fail(error)
  }

  #fail(error: Error): void {
    const status = this.#head?.status ?? 0
    // What was refused is refused. What was accepted may have been so in part, and that part is what is missing.
    if (status >= 300) this.#tell(false)
    else this.#heard.reject(error)
  }

  #tell(isWhole: boolean): void {
    if (this.#head === undefined) this.#heard.reject(new Error('There was an answer without a head.'))
    else this.#heard.resolve({ ...this.#head, body: Buffer.concat(this.#chunks), isWhole })
  }
}
