// `createOutgoing` routes the requests that an app makes to a function of the test. No name is looked up and no connection is made.
import { Dispatcher } from 'undici'
import { ConnectError } from '../deliver/http/guard.ts'
import type { TestHooks } from '../app/test-hooks.ts'

/** A function that throws is a server that cannot be reached. */
export type TestFetch = (request: Request) => Response | Promise<Response>

export async function createOutgoing(respond: TestFetch): Promise<NonNullable<TestHooks['outgoing']>> {
  // An app loads the HTTP client at its first delivery. That takes real time, unless the client is loaded already.
  await import('../deliver/http/post.ts')
  return {
    fetch: (input, init) => exchange(respond, new Request(input, init)),
    agent: new TestAgent(respond),
  }
}

/** Like `fetch`, it rejects as soon as the signal of the request aborts. */
async function exchange(respond: TestFetch, request: Request): Promise<Response> {
  const { signal } = request
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([(async () => respond(request))(), promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** `TestAgent` replaces the guarded agent. URLs are checked before they reach an agent, so forbidden ones never get here. */
class TestAgent extends Dispatcher {
  readonly #respond: TestFetch

  constructor(respond: TestFetch) {
    super()
    this.#respond = respond
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    void this.#exchange(options, handler)
    return true
  }

  override async destroy(): Promise<void> {}

  async #exchange(
    { origin, path, method, headers, body }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): Promise<void> {
    const stop = new AbortController()
    const controller = new TestController(stop)
    try {
      handler.onRequestStart?.(controller, undefined)
      const init = {
        method,
        headers: headers as Record<string, string>,
        body: (body ?? null) as Uint8Array<ArrayBuffer>,
      }
      const request = new Request(`${String(origin)}${path}`, { ...init, signal: stop.signal })
      const response = await exchange(this.#respond, request).catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error)
        throw stop.signal.aborted ? error : new ConnectError('connect', message, { cause: error })
      })
      handler.onResponseStart?.(controller, response.status, Object.fromEntries(response.headers))
      for await (const chunk of response.body ?? []) {
        stop.signal.throwIfAborted()
        handler.onResponseData?.(controller, Buffer.from(chunk))
      }
      handler.onResponseEnd?.(controller, {})
    } catch (error) {
      handler.onResponseError?.(controller, error as Error)
    }
  }
}

class TestController implements Dispatcher.DispatchController {
  readonly paused = false
  readonly #stop: AbortController

  constructor(stop: AbortController) {
    this.#stop = stop
  }

  get aborted(): boolean {
    return this.#stop.signal.aborted
  }

  get reason(): Error | null {
    return this.aborted ? (this.#stop.signal.reason as Error) : null
  }

  abort(reason: Error): void {
    this.#stop.abort(reason)
  }

  pause(): void {}

  resume(): void {}
}
