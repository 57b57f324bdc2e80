// The trace that the current code belongs to (W3C Trace Context). A request brings it, its events keep it, and a run
// passes it on to the calls it makes and the events it publishes.
import { AsyncLocalStorage } from 'node:async_hooks'
import { isObject } from '../../validate/options.ts'

export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

const PARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const STATE_MAX = 512
const STATE = /^[\x20-\x7e]{1,512}$/

export const traceContext: AsyncLocalStorage<TraceContext> = new AsyncLocalStorage()

type TraceNames = Readonly<Record<string, unknown>>

/** `parseTrace` returns undefined if the parent is missing or malformed. A state without a parent has no meaning. */
export function parseTrace(names: TraceNames | undefined): TraceContext | undefined {
  const traceparent = names?.['traceparent']
  if (typeof traceparent !== 'string' || !PARENT.test(traceparent)) return undefined
  const tracestate = names?.['tracestate']
  const isGood = typeof tracestate === 'string' && tracestate.length <= STATE_MAX && STATE.test(tracestate)
  return isGood ? { traceparent, tracestate } : { traceparent }
}

/** `withTrace` adds the trace as attributes of the CloudEvents extension. Attributes that the event has win. */
export function withTrace<E extends { readonly attributes?: TraceNames | undefined }>(event: E): E {
  const trace = traceContext.getStore()
  // An invalid event is returned unchanged: the publisher rejects it with the right error.
  if (trace === undefined || !isObject(event) || !isObject(event.attributes ?? {})) return event
  if (event.attributes?.['traceparent'] !== undefined) return event
  return { ...event, attributes: { ...event.attributes, ...trace } }
}

/** `withTraceHeaders` adds the trace to a request of a run. Headers that the caller set win. */
export function withTraceHeaders(headers: Headers): Headers {
  const trace = traceContext.getStore()
  if (trace === undefined || headers.has('traceparent')) return headers
  for (const [name, value] of Object.entries(trace)) headers.set(name, value)
  return headers
}
