// Spans of OpenTelemetry for requests and runs, where an app has it; without it, the context is handed on all the same.
import type * as OpenTelemetry from '@opentelemetry/api'
import { SluiceError } from '../errors.ts'
import { isEnding } from '../run/endings.ts'
import type { Run } from '../run/run.ts'
import { scrubbed } from './log-secrets.ts'
import { traceContext, traceIn, withTrace, type TraceContext } from './trace-context.ts'

/** The module `@opentelemetry/api`, as the app imports it. */
export type TraceApi = Pick<typeof OpenTelemetry, 'context' | 'trace' | 'ROOT_CONTEXT' | 'SpanKind' | 'SpanStatusCode'>

type Span = OpenTelemetry.Span

interface Arrived {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** To which it came; undefined: there is none at the path. */
  readonly source: string | undefined
}

const LINKS_MAX = 100
const NAMES: readonly (keyof TraceApi)[] = ['context', 'trace', 'ROOT_CONTEXT', 'SpanKind', 'SpanStatusCode']

/** A module is an object, however it came. */
function isApi(api: unknown): boolean {
  return typeof api === 'object' && api !== null && NAMES.every((name) => name in api)
}

export class Traces {
  readonly #api: TraceApi | undefined

  constructor(api: TraceApi | undefined) {
    if (api !== undefined && !isApi(api)) {
      throw new SluiceError(
        'CONFIG_INVALID',
        'new Sluice: traces is the module @opentelemetry/api: import * as traces from it.',
      )
    }
    this.#api = api
  }

  /** A request: its events belong to its trace. */
  received<T extends { readonly status: number }>(request: Arrived, work: () => Promise<T>): Promise<T> {
    const { path, headers, source } = request
    const parent = traceIn(headers)
    if (this.#api === undefined) return parent === undefined ? work() : traceContext.run(parent, work)
    const { SpanKind, SpanStatusCode } = this.#api
    const options = { kind: SpanKind.SERVER, attributes: { 'url.path': path } }
    // Whoever reaches the server may make up paths: no name is made of one.
    const name = source === undefined ? 'receive' : `receive ${source}`
    return this.#within({ name, options, parent }, work, (span, { status }) => {
      span.setAttribute('http.response.status_code', status)
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
    })
  }

  /** A run: it belongs to the trace of its first event, and is linked with those of the others. */
  run(run: Run, handler: (run: Run) => unknown): unknown {
    if (this.#api === undefined) {
      const parent = firstTrace(run.events)
      return parent === undefined ? handler(run) : traceContext.run(parent, () => handler(handingOn(run)))
    }
    const { SpanKind, SpanStatusCode } = this.#api
    const [parent, ...others] = run.events.flatMap(({ attributes: of }) => traceIn(of) ?? [])
    const attributes = {
      'messaging.system': 'sluice',
      'messaging.operation.type': 'process',
      'messaging.destination.name': run.flow,
      'messaging.batch.message_count': run.events.length,
      'sluice.run': run.id,
      'sluice.attempt': run.attempt,
    }
    const links = others.slice(0, LINKS_MAX).map((trace) => ({ context: spanContextOf(trace) }))
    const span = { name: `run ${run.flow}`, options: { kind: SpanKind.CONSUMER, attributes, links }, parent }
    return this.#within(
      span,
      async () => handler(handingOn(run)),
      (of, ending) => {
        if (!isEnding(ending)) return
        of.setAttribute('sluice.ending', ending.kind)
        if (ending.kind === 'retry') of.setStatus({ code: SpanStatusCode.ERROR, message: scrubbed(ending.reason) })
      },
    )
  }

  async #within<T>(begun: Begun, work: () => Promise<T>, ended: (span: Span, result: T) => void): Promise<T> {
    const { context, trace, ROOT_CONTEXT, SpanStatusCode } = this.#api as TraceApi
    const { name, options, parent } = begun
    const outer = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent))
    const span = trace.getTracer('sluice').startSpan(name, options, outer)
    const inner = () => traceContext.run(traceOf(span, parent), () => context.with(trace.setSpan(outer, span), work))
    try {
      const result = await inner()
      ended(span, result)
      return result
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      span.setStatus({ code: SpanStatusCode.ERROR, message: scrubbed(message) })
      throw error
    } finally {
      span.end()
    }
  }
}

function firstTrace(events: Run['events']): TraceContext | undefined {
  for (const { attributes } of events) {
    const trace = traceIn(attributes)
    if (trace !== undefined) return trace
  }
  return undefined
}

/** What it publishes belongs to its trace. */
function handingOn(run: Run): Run {
  return { ...run, publish: (event) => run.publish([event].flat().map(withTrace)) }
}

interface Begun {
  readonly name: string
  readonly options: OpenTelemetry.SpanOptions
  readonly parent: TraceContext | undefined
}

function spanContextOf({ traceparent }: TraceContext): OpenTelemetry.SpanContext {
  const [, traceId = '', spanId = '', flags = '00'] = traceparent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

function traceOf(span: Span, parent: TraceContext | undefined): TraceContext {
  const { traceId, spanId, traceFlags } = span.spanContext()
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  return parent?.tracestate === undefined ? { traceparent } : { traceparent, tracestate: parent.tracestate }
}
