// `limitedFetch` returns a fetch for any SDK: each request waits for its slot, and a rejection pauses the limit for all (M3, M4).
import type { Millis } from '../clock.ts'
import { traceContext, withTraceHeaders } from '../observe/trace/context.ts'
import { liveRunContext } from './caller.ts'
import { pauseLimit, type RegulateDependencies } from './regulate.ts'
import { refusalDelay, TOO_MANY_REQUESTS } from './retry-after.ts'

type Fetch = typeof globalThis.fetch
type Input = Parameters<Fetch>[0]
type Init = Parameters<Fetch>[1]

export interface FetchLimit {
  readonly name: string
  readonly retries: number
  run(
    call: (signal: AbortSignal | undefined) => Promise<Response>,
    options: { signal?: AbortSignal },
  ): Promise<Response>
}

export interface LimitedFetchDependencies extends RegulateDependencies {
  readonly fetch: Fetch
}

export function limitedFetch(limit: FetchLimit, deps: LimitedFetchDependencies): Fetch {
  const { fetch, clock } = deps
  return async (input: Input, init?: Init): Promise<Response> => {
    const own = findSignal(input, init)
    const traced = withTraceInit(input, init)
    const request = (signal: AbortSignal | undefined): Promise<Response> =>
      fetch(input, signal === own ? traced : { ...traced, signal: signal ?? null })
    for (let left = isRepeatable(input, init) ? limit.retries : 0; ; left--) {
      const response = await limit.run(request, own === undefined ? {} : { signal: own })
      const refused = refusalDelay(response, clock.now())
      if (refused === undefined) return response
      await recordRefusal(deps, limit.name, response, refused)
      if (left <= 0) return response
      // The unread body would keep its connection busy.
      await response.body?.cancel().catch(() => undefined)
    }
  }
}

/** `recordRefusal` never throws: a failing store must not cost the caller the response. */
async function recordRefusal(
  deps: LimitedFetchDependencies,
  name: string,
  { status, url }: Pick<Response, 'status' | 'url'>,
  refused: Millis,
): Promise<void> {
  const context = liveRunContext()
  const raised = async (): Promise<void> => {
    if (context === undefined || status !== TOO_MANY_REQUESTS) return
    const store = await deps.store()
    await store.updatePressure({ flows: [{ flow: context.flow, raise: true }] })
  }
  await Promise.allSettled([pauseLimit(deps, { name, for: refused, cause: 'response', status, url }), raised()])
}

function isRequest(input: Input): input is Request {
  return typeof input === 'object' && 'headers' in input
}

/** Without a trace, `withTraceInit` returns the init unchanged. */
function withTraceInit(input: Input, init: Init): Init {
  if (traceContext.getStore() === undefined) return init
  const headers = withTraceHeaders(new Headers(init?.headers ?? (isRequest(input) ? input.headers : undefined)))
  return { ...init, headers }
}

/** As in fetch, `null` in the init removes the signal of the request. */
function findSignal(input: Input, init: Init): AbortSignal | undefined {
  if (init?.signal !== undefined) return init.signal ?? undefined
  return isRequest(input) ? input.signal : undefined
}

/** A stream can be sent only once. */
function isRepeatable(input: Input, init: Init): boolean {
  const body: unknown = init?.body ?? (isRequest(input) ? input.body : undefined) ?? ''
  return (
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams
  )
}
