// `ModelStandIn` plays a language model behind OpenAI's chat completions. It takes its time, and notices when the caller hangs up.
import type { Clock } from 'sluice'

export interface Draft {
  readonly asked: number
  /** What the user wrote, as the model got it. */
  readonly text: string
  readonly isAggregated: boolean
  readonly reply: string
  state: 'making' | 'made' | 'aborted' | 'failed'
  /** How much of the reply is made, from 0 to 1. It stops when the caller hangs up. */
  readonly made: number
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
    const [asked, takes] = [this.#clock.monotonic(), this.takes]
    let ended: number | undefined
    const share = (): number => Math.min(1, ((ended ?? this.#clock.monotonic()) - asked) / Math.max(1, takes))
    const draft: Draft = {
      asked,
      text,
      isAggregated: of('system').includes('is_aggregated: true'),
      reply: this.reply(text),
      state: 'making',
      get made() {
        return share()
      },
    }
    this.drafts.push(draft)
    await this.#pass(request.signal)
    ended = this.#clock.monotonic()
    const failure = this.fail()
    draft.state = request.signal.aborted ? 'aborted' : failure === undefined ? 'made' : 'failed'
    if (failure !== undefined) return failure
    return Response.json({ choices: [{ index: 0, message: { role: 'assistant', content: draft.reply } }] })
  }

  /** Resolves when the answer is ready, or when its request was aborted. */
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
