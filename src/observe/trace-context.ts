// Which trace the code that is being called belongs to (W3C Trace Context): brought by a request, kept with its events, handed
// on to what their run calls and publishes.
import { AsyncLocalStorage } from 'node:async_hooks'
import { isObject } from '../model/arguments.ts'

export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

const PARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const STATE_MAX = 512
const STATE = /^[\x20-\x7e]{1,512}$/

export const traceContext: AsyncLocalStorage<TraceContext> = new AsyncLocalStorage()

type Named = Readonly<Record<string, unknown>>

/** Undefined: there is none, or what is there is none. A state without a parent means nothing. */
export function traceIn(names: Named | undefined): TraceContext | undefined {
  const traceparent = names?.['traceparent']
  if (typeof traceparent !== 'string' || !PARENT.test(traceparent)) return undefined
  const tracestate = names?.['tracestate']
  const isGood = typeof tracestate === 'string' && tracestate.length <= STATE_MAX && STATE.test(tracestate)
  return isGood ? { traceparent, tracestate } : { traceparent }
}

/** The names of CloudEvents' extension for it. What an event says itself stands. */
export function withTrace<E extends { readonly attributes?: Named }>(event: E): E {
  const trace = traceContext.getStore()
  // What is no event is refused for what it is, by whoever looks at it next.
  if (trace === undefined || !isObject(event) || !isObject(event.attributes ?? {})) return event
  if (event.attributes?.['traceparent'] !== undefined) return event
  return { ...event, attributes: { ...event.attributes, ...trace } }
}

/** For a request that a run makes; what its caller says stands. */
export function withTraceHeaders(headers: Headers): Headers {
  const trace = traceContext.getStore()
  if (trace === undefined || headers.has('traceparent')) return headers
  for (const [name, value] of Object.entries(trace)) headers.set(name, value)
  return headers
}
