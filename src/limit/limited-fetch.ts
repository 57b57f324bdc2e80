// A fetch that any SDK can be handed: each request waits for its slot, and a refusal pauses the limit for all (M3, M4).
import type { Millis } from '../clock.ts'
import { traceContext, withTraceHeaders } from '../observe/trace-context.ts'
import { liveScope } from './caller.ts'
import { pauseLimit, type RegulateParts } from './regulate.ts'
import { refusedFor, TOO_MANY } from './retry-after.ts'

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

export interface FetchParts extends RegulateParts {
  readonly fetch: Fetch
}

export function limitedFetch(limit: FetchLimit, parts: FetchParts): Fetch {
  const { fetch, clock } = parts
  return async (input: Input, init?: Init): Promise<Response> => {
    const own = signalOf(input, init)
    const traced = withTraceOf(input, init)
    const request = (signal: AbortSignal | undefined): Promise<Response> =>
      fetch(input, signal === own ? traced : { ...traced, signal: signal ?? null })
    for (let left = isRepeatable(input, init) ? limit.retries : 0; ; left--) {
      const response = await limit.run(request, own === undefined ? {} : { signal: own })
      const refused = refusedFor(response, clock.now())
      if (refused === undefined) return response
      await noteRefusal(parts, limit.name, response.status, refused)
      if (left <= 0) return response
      // Nobody will read it, and until somebody does its connection is taken.
      await response.body?.cancel().catch(() => undefined)
    }
  }
}

/** The response is what the caller asked for: a store that cannot be told of it now must not take it away. */
async function noteRefusal(parts: FetchParts, name: string, status: number, refused: Millis): Promise<void> {
  const scope = liveScope()
  const raised = async (): Promise<void> => {
    if (scope === undefined || status !== TOO_MANY) return
    const store = await parts.store()
    await store.pressure({ flows: [{ flow: scope.flow, raise: true }] })
  }
  await Promise.allSettled([pauseLimit(parts, name, refused, true), raised()])
}

function isRequest(input: Input): input is Request {
  return typeof input === 'object' && 'headers' in input
}

/** Nothing is touched where there is no trace to hand on. */
function withTraceOf(input: Input, init: Init): Init {
  if (traceContext.getStore() === undefined) return init
  const headers = withTraceHeaders(new Headers(init?.headers ?? (isRequest(input) ? input.headers : undefined)))
  return { ...init, headers }
}

/** As fetch does it: `null` in the init takes the request's own signal away. */
function signalOf(input: Input, init: Init): AbortSignal | undefined {
  if (init?.signal !== undefined) return init.signal ?? undefined
  return isRequest(input) ? input.signal : undefined
}

/** A stream is gone once it was sent. */
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
