// `ModelStandIn` plays a language model behind OpenAI's chat completions. It takes its time, and notices when the caller hangs up.
import type { Clock } from 'sluice'

export interface Draft {
  readonly asked: number
  /** What the user wrote, as the model got it. */
  readonly text: string
  readonly isAggregated: boolean
  readonly reply: string
  state: 'making' | 'made' | 'aborted' | 'failed'
}

export class ModelStandIn {
  readonly drafts: Draft[] = []
  /** How long an answer takes, in milliseconds. */
  takes: number
  reply: (text: string) => string = (text) => `You wrote: ${text}`
  /** Responds in place of the stand-in, e.g. with an error. Undefined: not this time. */
  fail: () => Response | undefined = () => undefined
  readonly #clock: Clock

  constructor(clock: Clock, takes: number) {
    this.#clock = clock
    this.takes = takes
  }

  readonly handle = async (request: Request): Promise<Response> => {
    const { messages } = (await request.json()) as { messages: readonly { role: string; content: string }[] }
    const of = (role: string): string => messages.find((message) => message.role === role)?.content ?? ''
    const text = of('user')
    const draft: Draft = {
      asked: this.#clock.monotonic(),
      text,
      isAggregated: of('system').includes('is_aggregated: true'),
      reply: this.reply(text),
      state: 'making',
    }
    this.drafts.push(draft)
    await this.#pass(request.signal)
    const failure = this.fail()
    draft.state = request.signal.aborted ? 'aborted' : failure === undefined ? 'made' : 'failed'
    if (failure !== undefined) return failure
    return Response.json({ choices: [{ index: 0, message: { role: 'assistant', content: draft.reply } }] })
  }

  /** Resolves when the answer is made, or when nobody waits for it any more. */
  #pass(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(this.takes, resolve)
      signal.addEventListener('abort', () => {
        cancel()
        resolve()
      })
    })
  }
}
