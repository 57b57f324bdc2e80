// Traces: the context of a request accompanies its events into their runs, and from there to the calls and events of the runs. With
// OpenTelemetry there are spans for requests and runs, recorded here with its own SDK.
import * as otel from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { Sluice, retry, type FlowEvent, type SluiceOptions } from '../../src/index.ts'
import { unverified } from '../../src/sources/index.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`

interface Scene {
  readonly app: Sluice
  readonly ran: FlowEvent[]
  post(headers?: Record<string, string>): Promise<Response>
  over(flow: string): Promise<unknown>
}

async function scene(
  options: Partial<SluiceOptions> = {},
  declare: (app: Sluice) => unknown = () => {},
): Promise<Scene> {
  const app = new Sluice({ store: 'memory:', log: false, ...options })
  onTestFinished(() => app.stop())
  const ran: FlowEvent[] = []
  app.source('shop', unverified({ verify: 'none', type: () => 'order' }))
  app.flow('first', {
    on: 'shop/order',
    run: (run) => {
      ran.push(...run.events)
      run.publish({ type: 'second' })
    },
  })
  app.flow('second', { on: 'second', run: ({ events }) => void ran.push(...events) })
  declare(app)
  await app.start()
  const post = (headers = {}): Promise<Response> =>
    app.fetch(
      new Request('http://localhost/in/shop', {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json', ...headers },
      }),
    )
  const over = (flow: string): Promise<unknown> =>
    new Promise((resolve) =>
      app.onAny((name, what) => {
        if (
          name.startsWith('run.') &&
          name !== 'run.started' &&
          name !== 'run.claimed' &&
          'flow' in what &&
          what.flow === flow
        )
          resolve(what)
      }),
    )
  return { app, ran, post, over }
}

describe('without OpenTelemetry', () => {
  test('the context of a request accompanies its event, and the events that its run publishes', async () => {
    const t = await scene()
    const over = t.over('second')
    expect((await t.post({ traceparent: PARENT, tracestate: 'vendor=1' })).ok).toBe(true)
    await over
    expect(t.ran.map(({ type, attributes }) => [type, attributes])).toEqual([
      ['order', { traceparent: PARENT, tracestate: 'vendor=1' }],
      ['second', { traceparent: PARENT, tracestate: 'vendor=1' }],
    ])
  })

  test.each([
    ['nothing', {}],
    ['nonsense', { traceparent: 'hello' }],
    ['a trace of zeros', { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` }],
    ['another version', { traceparent: `ff-${TRACE}-b7ad6b7169203331-01` }],
    ['a state alone', { tracestate: 'vendor=1' }],
  ])('%s is no context: nothing is kept', async (_name, headers) => {
    const t = await scene()
    const over = t.over('second')
    await t.post(headers)
    await over
    expect(t.ran.map(({ attributes }) => attributes)).toEqual([{}, {}])
  })

  test('a limited fetch inside the run passes it on, unless the caller sets another one', async () => {
    const seen: (string | undefined)[] = []
    const server = createServer((request, response) => {
      seen.push(request.headers['traceparent'] as string | undefined)
      response.end('ok')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const t = await scene({}, (app) => {
      const limit = app.limit('api', { rate: 100, per: '1s' })
      app.flow('calls', {
        on: 'shop/order',
        run: async () => {
          await limit.fetch(url())
          await limit.fetch(new Request(url(), { headers: { 'x-own': '1' } }))
          await limit.fetch(url(), { headers: { traceparent: 'mine' } })
        },
      })
    })
    const over = t.over('calls')
    await t.post({ traceparent: PARENT })
    await over
    expect(seen).toEqual([PARENT, PARENT, 'mine'])
  })

  test('app.publish inside a run passes it on too', async () => {
    const t = await scene({}, (app) =>
      app.flow('publishes', {
        on: 'shop/order',
        run: async () => void (await app.publish({ type: 'second', id: 'by app' })),
      }),
    )
    const over = t.over('publishes')
    await t.post({ traceparent: PARENT })
    await over
    const stored = await t.app.admin.events.show('by app')
    expect(stored?.attributes).toEqual({ traceparent: PARENT })
  })

  test('an invalid event is rejected inside a run as well, with the name of the field', async () => {
    const errors: string[] = []
    const t = await scene({}, (app) =>
      app.flow('publishes', {
        on: 'shop/order',
        run: async () => {
          for (const wrong of [undefined, { type: 'second', attributes: [] }])
            await app.publish(wrong as never).catch((error: unknown) => errors.push(String(error)))
        },
      }),
    )
    const over = t.over('publishes')
    await t.post({ traceparent: PARENT })
    await over
    expect(errors).toEqual([
      expect.stringContaining('event must be an object'),
      expect.stringContaining('attributes must be an object'),
    ])
  })
})

describe('with OpenTelemetry', () => {
  const exporter = new InMemorySpanExporter()
  otel.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  otel.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  // After the app of the previous test has stopped, which ends spans until then.
  beforeEach(() => exporter.reset())
  const spans = (): unknown[] =>
    exporter.getFinishedSpans().map(({ name, kind, parentSpanContext, status, attributes }) => ({
      name,
      kind,
      parent:
        exporter.getFinishedSpans().find((span) => span.spanContext().spanId === parentSpanContext?.spanId)?.name ??
        parentSpanContext?.spanId,
      status: status.code,
      attributes,
    }))

  test("there is a span of the request under the sender's, and one of each run under it", async () => {
    const inside: (string | undefined)[] = []
    const t = await scene({ traces: otel }, (app) =>
      app.flow('looks', {
        on: 'shop/order',
        run: () => void inside.push(otel.trace.getActiveSpan()?.spanContext().traceId),
      }),
    )
    const over = Promise.all([t.over('second'), t.over('looks')])
    await t.post({ traceparent: PARENT })
    await over
    expect(exporter.getFinishedSpans().map((span) => span.spanContext().traceId)).toEqual([TRACE, TRACE, TRACE, TRACE])
    expect(spans()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          name: 'receive shop',
          kind: otel.SpanKind.SERVER,
          parent: 'b7ad6b7169203331',
          attributes: expect.objectContaining({ 'http.response.status_code': 202 }),
        }),
        expect.objectContaining({
          name: 'run first',
          kind: otel.SpanKind.CONSUMER,
          parent: 'receive shop',
          attributes: expect.objectContaining({
            'messaging.destination.name': 'first',
            'messaging.batch.message_count': 1,
          }),
        }),
        expect.objectContaining({ name: 'run second', parent: 'run first' }),
      ]),
    )
    expect(inside).toEqual([TRACE])
  })

  test('a failed or retried run is an error', async () => {
    const t = await scene({ traces: otel }, (app) => {
      app.flow('throws', { on: 'shop/order', retry: [], run: () => Promise.reject(new Error('no')) })
      app.flow('asks', { on: 'shop/order', retry: [], run: () => retry({ reason: 'later' }) })
    })
    const over = Promise.all([t.over('throws'), t.over('asks')])
    await t.post()
    await over
    expect(spans()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'run throws', status: otel.SpanStatusCode.ERROR }),
        expect.objectContaining({ name: 'run asks', status: otel.SpanStatusCode.ERROR }),
        expect.objectContaining({ name: 'run first', status: otel.SpanStatusCode.UNSET }),
      ]),
    )
  })

  test('the path of an unknown source is no span name, because senders could invent any number of them', async () => {
    const t = await scene({ traces: otel })
    for (const guess of ['a', 'b']) await t.app.fetch(new Request(`http://localhost/in/${guess}`, { method: 'POST' }))
    expect(spans()).toEqual(
      ['/in/a', '/in/b'].map((path) =>
        expect.objectContaining({
          name: 'receive',
          attributes: { 'url.path': path, 'http.response.status_code': 404 },
        }),
      ),
    )
  })

  test('error texts are redacted, as in the log', async () => {
    const text = 'no: token=abc123 at postgres://ada:pw@db.test'
    const t = await scene({ traces: otel }, (app) => {
      app.flow('throws', { on: 'shop/order', retry: [], run: () => Promise.reject(new Error(text)) })
      app.flow('asks', { on: 'shop/order', retry: [], run: () => retry({ reason: text }) })
    })
    const over = Promise.all([t.over('throws'), t.over('asks')])
    await t.post()
    await over
    const said = exporter.getFinishedSpans().flatMap(({ status }) => status.message ?? [])
    expect(said).toEqual(Array(2).fill('no: token=[redacted] at postgres://[redacted]@db.test'))
  })

  test('a run of several events links to the traces of the others', async () => {
    const t = await scene({ traces: otel }, (app) =>
      app.flow('batch', { on: 'shop/order', key: () => 'k', window: { quiet: '1h', maxEvents: 2 }, run: () => {} }),
    )
    const over = t.over('batch')
    await t.post({ traceparent: PARENT })
    await t.post({ traceparent: `00-${'1'.repeat(32)}-b7ad6b7169203331-01` })
    await over
    const batch = exporter.getFinishedSpans().find(({ name }) => name === 'run batch')
    expect(batch?.spanContext().traceId).toBe(TRACE)
    expect(batch?.links.map(({ context }) => context.traceId)).toEqual(['1'.repeat(32)])
  })

  test('an invalid OpenTelemetry module is rejected when the app is built', () => {
    expect(() => new Sluice({ store: 'memory:', traces: {} as never })).toThrow('@opentelemetry/api')
  })
})
