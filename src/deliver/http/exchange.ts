// `Exchange` sends one request and collects its response until either side ends it. It works below `request` of
// undici, which notices an abort only once connected and makes a stream of every response.
import type { Dispatcher } from 'undici'

type Controller = Dispatcher.DispatchController
type AnswerHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

export interface ExchangeResponse {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly body: Buffer
  /** False if the response was longer than the limit and was cut. */
  readonly isComplete: boolean
}

/** `MAX_RESPONSE_BYTES` is the default bound of what is read of a response. Reading it here does not load the HTTP client. */
export const MAX_RESPONSE_BYTES: number = 16 * 1024

export class Exchange implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number
  readonly #response = Promise.withResolvers<ExchangeResponse>()
  readonly #chunks: Buffer[] = []
  #length = 0
  #head: Pick<ExchangeResponse, 'status' | 'headers'> | undefined
  #controller: Controller | undefined
  #abortReason: Error | undefined

  /** Keeps at most this many bytes of the response, and closes the connection when there are more. */
  constructor(most: number) {
    this.#maxBytes = most
  }

  /** `send` rejects with the error of undici or of the agent, or with the reason of `abort`. */
  async send(agent: Dispatcher, what: Dispatcher.DispatchOptions): Promise<ExchangeResponse> {
    agent.dispatch(what, this)
    return this.#response.promise
  }

  /** `abort` takes effect in every state, even while the connection is being made. */
  abort(reason: Error): void {
    this.#abortReason ??= reason
    this.#reject(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#abortReason !== undefined) controller.abort(this.#abortReason)
  }

  onResponseStart(_: Controller, status: number, headers: AnswerHeaders): void {
    // A 1xx response is followed by another.
    this.#head = { status, headers }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#chunks.push(chunk.subarray(0, Math.max(0, this.#maxBytes - this.#length)))
    this.#length += chunk.length
    if (this.#length <= this.#maxBytes) return
    this.#resolve(false)
    controller.abort(new Error('The response exceeds the limit.'))
  }

  onResponseEnd(): void {
    this.#resolve(true)
  }

  onResponseError(_: Controller, error: Error): void {
    this.#reject(error)
  }

  #reject(error: Error): void {
    const status = this.#head?.status ?? 0
    // A refusal needs no body. A 2xx may accept a part of the batch, and the missing body may be what says so.
    if (status >= 300) this.#resolve(false)
    else this.#response.reject(error)
  }

  #resolve(isWhole: boolean): void {
    if (this.#head === undefined) this.#response.reject(new Error('The response has no head.'))
    else this.#response.resolve({ ...this.#head, body: Buffer.concat(this.#chunks), isComplete: isWhole })
  }
}
