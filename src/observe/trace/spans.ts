// `Traces` creates OpenTelemetry spans for requests and runs. Without OpenTelemetry it still passes the context on.
import type * as OpenTelemetry from '@opentelemetry/api'
import { SluiceError } from '../../errors.ts'
import { isEnding } from '../../model/endings.ts'
import { redact } from '../log/redact.ts'
import { traceContext, parseTrace, type TraceContext } from './context.ts'

/** `TraceApi` is the module `@opentelemetry/api`, as the app imports it. */
export type TraceApi = Pick<typeof OpenTelemetry, 'context' | 'trace' | 'ROOT_CONTEXT' | 'SpanKind' | 'SpanStatusCode'>

type Span = OpenTelemetry.Span

/** `TracedRun` is what a span needs to know about a run. */
interface TracedRun {
  readonly flow: string
  readonly id: string
  readonly attempt: number
  readonly events: readonly { readonly attributes: Readonly<Record<string, unknown>> }[]
}

interface TracedRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The source that received the request; undefined if the path has no source. */
  readonly source: string | undefined
}

const LINKS_MAX = 100
const NAMES: readonly (keyof TraceApi)[] = ['context', 'trace', 'ROOT_CONTEXT', 'SpanKind', 'SpanStatusCode']

/** Checks for the members only: a module may be a namespace object or a plain one. */
function isTraceApi(api: unknown): boolean {
  return typeof api === 'object' && api !== null && NAMES.every((name) => name in api)
}

export class Traces {
  readonly #api: TraceApi | undefined

  constructor(api: TraceApi | undefined) {
    if (api !== undefined && !isTraceApi(api)) {
      throw new SluiceError(
        'CONFIG_INVALID',
        "new Sluice: traces must be the module @opentelemetry/api. Use: import * as traces from '@opentelemetry/api'.",
      )
    }
    this.#api = api
  }

  /** `traceRequest` runs `work` in a span. The events of the request belong to its trace. */
  traceRequest<T extends { readonly status: number }>(request: TracedRequest, work: () => Promise<T>): Promise<T> {
    const { path, headers, source } = request
    const parent = parseTrace(headers)
    if (this.#api === undefined) return parent === undefined ? work() : traceContext.run(parent, work)
    const { SpanKind, SpanStatusCode } = this.#api
    const options = { kind: SpanKind.SERVER, attributes: { 'url.path': path } }
    // Anyone who reaches the server can invent paths, so span names contain only names of sources.
    const name = source === undefined ? 'receive' : `receive ${source}`
    return this.#inSpan({ name, options, parent }, work, (span, { status }) => {
      span.setAttribute('http.response.status_code', status)
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
    })
  }

  /** `traceRun` calls the handler in a span of the first event's trace, with links to the traces of the others. */
  traceRun<Run extends TracedRun>(run: Run, handler: (run: Run) => unknown): unknown {
    if (this.#api === undefined) {
      const parent = firstTrace(run.events)
      return parent === undefined ? handler(run) : traceContext.run(parent, () => handler(run))
    }
    const { SpanKind, SpanStatusCode } = this.#api
    const [parent, ...others] = run.events.flatMap(({ attributes: of }) => parseTrace(of) ?? [])
    const attributes = {
      'messaging.system': 'sluice',
      'messaging.operation.type': 'process',
      'messaging.destination.name': run.flow,
      'messaging.batch.message_count': run.events.length,
      'sluice.run': run.id,
      'sluice.attempt': run.attempt,
    }
    const links = others.slice(0, LINKS_MAX).map((trace) => ({ context: toSpanContext(trace) }))
    const span = { name: `run ${run.flow}`, options: { kind: SpanKind.CONSUMER, attributes, links }, parent }
    return this.#inSpan(
      span,
      async () => handler(run),
      (of, ending) => {
        if (!isEnding(ending)) return
        of.setAttribute('sluice.ending', ending.kind)
        if (ending.kind === 'retry') of.setStatus({ code: SpanStatusCode.ERROR, message: redact(ending.reason) })
      },
    )
  }

  async #inSpan<T>(begun: SpanStart, work: () => Promise<T>, ended: (span: Span, result: T) => void): Promise<T> {
    const { context, trace, ROOT_CONTEXT, SpanStatusCode } = this.#api as TraceApi
    const { name, options, parent } = begun
    const outer = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, toSpanContext(parent))
    const span = trace.getTracer('sluice').startSpan(name, options, outer)
    const inner = () =>
      traceContext.run(toTraceContext(span, parent), () => context.with(trace.setSpan(outer, span), work))
    try {
      const result = await inner()
      ended(span, result)
      return result
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      span.setStatus({ code: SpanStatusCode.ERROR, message: redact(message) })
      throw error
    } finally {
      span.end()
    }
  }
}

function firstTrace(events: TracedRun['events']): TraceContext | undefined {
  for (const { attributes } of events) {
    const trace = parseTrace(attributes)
    if (trace !== undefined) return trace
  }
  return undefined
}

interface SpanStart {
  readonly name: string
  readonly options: OpenTelemetry.SpanOptions
  readonly parent: TraceContext | undefined
}

function toSpanContext({ traceparent }: TraceContext): OpenTelemetry.SpanContext {
  const [, traceId = '', spanId = '', flags = '00'] = traceparent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

function toTraceContext(span: Span, parent: TraceContext | undefined): TraceContext {
  const { traceId, spanId, traceFlags } = span.spanContext()
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  return parent?.tracestate === undefined ? { traceparent } : { traceparent, tracestate: parent.tracestate }
}
