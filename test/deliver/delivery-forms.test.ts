// Tests what a delivery sends in each form, over a virtual network: one POST for each event where a body holds one, the
// user's own bodies, and the defaults of a delivery.
import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, it, vi } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import type { DeliveryOptions } from '../../src/app/deliveries.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'

interface Post {
  readonly at: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Scene {
  readonly app: Sluice
  readonly t: TestApp
  readonly posts: readonly Post[]
  /** The data of the flat posts, in order. */
  readonly sent: () => readonly string[]
  readonly publish: (names: readonly string[]) => Promise<unknown>
}

const URL = 'https://example.com/hook'

type Answering = (post: Post, count: number) => Response | Promise<Response>

/** An app with the delivery `orders`, and what its only receiver gets. */
async function scene(options: Partial<DeliveryOptions> = {}, answer: Answering = () => new Response()): Promise<Scene> {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: randomBytes(32).toString('base64') })
  app.delivery('orders', { on: 'order.*', ...options })
  const posts: Post[] = []
  const t = await testApp(app, {
    fetch: async (request) => {
      const post = { at: t.elapsed, headers: Object.fromEntries(request.headers), body: await request.text() }
      posts.push(post)
      return answer(post, posts.length)
    },
  })
  return {
    app,
    t,
    posts,
    sent: () => posts.map(({ body }) => JSON.parse(body) as string),
    publish: (names) => t.send(names.map((name) => ({ id: name, type: 'order.paid', data: name }))),
  }
}

const status = (code: number, headers = {}): Response => new Response(null, { status: code, headers })

it('the form flat posts each event alone, in order, under an id of its own that verifies', async () => {
  const { app, t, posts, sent, publish } = await scene()
  const { secret } = await app.endpoints.create({ url: URL, form: 'flat' })
  vi.useFakeTimers({ now: t.clock.now(), toFake: ['Date'] })
  await publish(['a', 'b', 'c'])
  await t.advance('1s')
  expect(sent()).toEqual(['a', 'b', 'c'])
  expect(new Set(posts.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
  for (const { headers, body } of posts) expect(new Webhook(secret).verify(body, headers)).toBeDefined()
  vi.useRealTimers()
  expect(t.runs).toMatchObject([{ ending: 'done' }])
})

it('a failure between two events repeats only the events from there on, with the same id', async () => {
  const { app, t, posts, sent, publish } = await scene({ retry: ['10s', '10s'] }, (_, count) =>
    status(count === 2 ? 500 : 200),
  )
  const { id } = await app.endpoints.create({ url: URL, form: 'flat' })
  await publish(['a', 'b', 'c'])
  await t.advance('1m')
  expect(sent()).toEqual(['a', 'b', 'b', 'c'])
  expect(posts[1]?.headers['webhook-id']).toBe(posts[2]?.headers['webhook-id'])
  expect(posts[2]?.at).toBe(10_000)
  expect((await app.endpoints.deliveries(id)).map((one) => [one.status, one.events])).toEqual([
    ['SUCCESS', 2],
    ['SUCCESS', 1],
  ])
})

it('Retry-After of a response between two events is respected', async () => {
  const { app, t, posts, sent, publish } = await scene({ retry: ['10s'] }, (_, count) =>
    count === 2 ? status(429, { 'retry-after': '40' }) : status(200),
  )
  await app.endpoints.create({ url: URL, form: 'flat' })
  await publish(['a', 'b', 'c'])
  await t.advance('2m')
  expect(sent()).toEqual(['a', 'b', 'b', 'c'])
  expect(posts[2]?.at).toBeGreaterThanOrEqual(40_000)
})

it.each([['b'], ['a']])(
  'only the failing event %s becomes a dead letter, and the others are delivered',
  async (bad) => {
    const { app, t, sent, publish } = await scene({ retry: ['10s'] }, ({ body }) =>
      status(body === `"${bad}"` ? 500 : 200),
    )
    await app.endpoints.create({ url: URL, form: 'flat' })
    await publish(['a', 'b', 'c'])
    await t.advance('10m')
    expect(sent().filter((name) => name === bad)).toHaveLength(2)
    expect(sent().filter((name) => name !== bad)).toEqual(['a', 'b', 'c'].filter((name) => name !== bad))
    expect((await app.admin.deadLetters.list()).items).toMatchObject([
      { events: [bad], reason: 'The endpoint returned 500.' },
    ])
  },
)

it('a rate between two events delays the rest and repeats nothing', async () => {
  const { app, t, posts, sent, publish } = await scene()
  await app.endpoints.create({ url: URL, form: 'flat', rate: { rate: 1, per: '20s' } })
  await publish(['a', 'b', 'c', 'd'])
  await t.advance('5m')
  expect(sent()).toEqual(['a', 'b', 'c', 'd'])
  for (const [n, { at }] of posts.entries()) expect(at).toBeGreaterThanOrEqual(n * 20_000)
  expect((await app.admin.deadLetters.list()).items).toEqual([])
})

it('a pause between two events keeps the rest, and repeats nothing after it', async () => {
  const { app, t, sent, publish } = await scene({}, async () => {
    if (sent().length === 1) await app.endpoints.pause(id)
    return status(200)
  })
  const { id } = await app.endpoints.create({ url: URL, form: 'flat' })
  await publish(['a', 'b', 'c'])
  await t.advance('1m')
  expect(sent()).toEqual(['a'])
  await app.endpoints.resume(id)
  await t.advance('1m')
  expect(sent()).toEqual(['a', 'b', 'c'])
})

it('slow events take turns with other lanes, and no attempt times out', async () => {
  const { app, t, sent, publish } = await scene({}, async () => {
    await new Promise<void>((resolve) => void t.clock.after(20_000, resolve))
    return status(200)
  })
  await app.endpoints.create({ url: URL, form: 'flat' })
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  await publish(names)
  await t.advance('5m')
  expect(sent()).toEqual(names)
  expect(t.runs.map(({ ending }) => ending)).toEqual(['deferred', 'deferred', 'done'])
})

const withBody = (body: object, type = 'application/json'): unknown => expect.objectContaining({ type, body })

it('cards and CloudEvents have the media type and the body of their receivers', async () => {
  const { app, t, posts, publish } = await scene()
  const key = 'R0123456789abcdefghijklmnopqrstu'
  await app.endpoints.create({ url: URL, form: 'slack' })
  await app.endpoints.create({ url: URL, form: 'discord' })
  await app.endpoints.create({ url: URL, form: 'pagerduty', secret: key })
  await app.endpoints.create({ url: URL, form: { kind: 'cloudevents', mode: 'batch' } })
  await app.endpoints.create({ url: URL, form: { kind: 'cloudevents', mode: 'binary' } })
  await publish(['a', 'b'])
  await t.advance('1s')
  const bodies = posts.map(({ headers, body }) => ({
    type: headers['content-type'],
    ce: headers['ce-id'],
    body: JSON.parse(body) as unknown,
  }))
  expect(bodies).toHaveLength(6)
  expect(bodies).toEqual(
    expect.arrayContaining([
      withBody(expect.objectContaining({ text: '2 × order.paid' }) as object),
      withBody(expect.objectContaining({ content: '2 × order.paid' }) as object),
      withBody(expect.objectContaining({ routing_key: key, event_action: 'trigger' }) as object),
      withBody(
        [expect.objectContaining({ id: 'a' }), expect.objectContaining({ id: 'b' })],
        'application/cloudevents-batch+json',
      ),
      { type: 'application/json', ce: 'a', body: 'a' },
      { type: 'application/json', ce: 'b', body: 'b' },
    ]),
  )
})

it('PagerDuty needs its integration key as the secret', async () => {
  const { app } = await scene()
  const rejection = { code: 'ENDPOINT_INVALID', message: expect.stringContaining('integration key') as string }
  await expect(app.endpoints.create({ url: URL, form: 'pagerduty' })).rejects.toMatchObject(rejection)
  const { id } = await app.endpoints.create({ url: URL })
  await expect(app.endpoints.update(id, { form: 'pagerduty' })).rejects.toMatchObject(rejection)
  await app.endpoints.update(id, { form: 'pagerduty', secret: 'R0123456789abcdefghijklmnopqrstu' })
})

it('a test event has the form of the endpoint', async () => {
  const { app, posts } = await scene()
  const { id } = await app.endpoints.create({ url: URL, form: 'flat' })
  expect(await app.endpoints.test(id)).toMatchObject({ delivered: true })
  expect(JSON.parse(posts[0]?.body ?? '')).toMatchObject({ endpoint: id })
})

it('a body function builds the body of a batch, and gets its events and the endpoint', async () => {
  const { app, t, posts, publish } = await scene({
    body: (events, { name }) => ({ to: name, names: events.map(({ data }) => data) }),
  })
  await app.endpoints.create({ url: URL, name: 'Ada', form: 'flat' })
  await publish(['a', 'b'])
  await t.advance('1s')
  expect(posts.map(({ body }) => body)).toEqual(['{"to":"Ada","names":["a","b"]}'])
})

it.each([
  ['a text', () => '{"n":12345678901234567890}', '{"n":12345678901234567890}'],
  ['bytes', () => Buffer.from('[1]'), '[1]'],
])('a body function may return %s, which is sent as it is', async (_, body, expected) => {
  const { app, t, posts, publish } = await scene({ body })
  await app.endpoints.create({ url: URL })
  await publish(['a'])
  await t.advance('1s')
  expect(posts.map((post) => post.body)).toEqual([expected])
})

const cyclic: { self?: object } = {}
cyclic.self = cyclic

it.each([
  [
    'body threw: no version',
    () => {
      throw new Error('no version')
    },
  ],
  ['it returned a promise', async () => ({})],
  ['it returned nothing', () => undefined],
  ['it returned null', () => null],
  ['it returned 7', () => 7],
  ['body must return what JSON can represent', () => ({ n: 1n })],
  ['body must return what JSON can represent', () => cyclic],
  ['its toJSON returned nothing', () => ({ toJSON: () => undefined })],
])('a body function fails the attempt, and at the end its batch is a dead letter: %s', async (reason, body) => {
  let isBroken = true
  const build = () => (isBroken ? body() : { fine: true })
  const { app, t, posts, publish } = await scene({ retry: ['10s'], body: build as never })
  const { id } = await app.endpoints.create({ url: URL })
  await publish(['a'])
  await t.advance('1m')
  expect(posts).toEqual([])
  expect(t.runs.map(({ ending }) => ending)).toEqual(['retry', 'dead'])
  expect(t.runs[0]?.error).toContain(reason)
  expect((await app.admin.deadLetters.list()).items).toMatchObject([
    { reason: expect.stringContaining(reason) as string },
  ])
  // The endpoint did nothing wrong.
  expect(await app.endpoints.get(id)).toMatchObject({ health: { status: 'up', consecutiveFailures: 0 } })
  isBroken = false
  await publish(['b'])
  await t.advance('1s')
  expect(posts.map((post) => post.body)).toEqual(['{"fine":true}'])
})

it('the defaults of a delivery make a URL enough for a registration, and the fields of an endpoint win', async () => {
  const { app, t, posts, publish } = await scene({
    defaults: {
      signing: { kind: 'hmac', header: 'X-Webhook-Signature', encoding: 'hex' },
      form: { kind: 'events', fields: { name: 'data' } },
      rate: { rate: 5, per: '1s' },
    },
  })
  const { secret, ...made } = await app.endpoints.create({ url: URL })
  expect(made).toMatchObject({
    form: { kind: 'events' },
    rate: { rate: 5 },
    signing: { header: 'X-Webhook-Signature' },
  })
  const own = await app.endpoints.create({ url: URL, form: 'flat', signing: { kind: 'standard' }, rate: null })
  expect(own).toMatchObject({ form: 'flat', signing: { kind: 'standard' }, rate: null })
  await app.endpoints.delete(own.id)
  await publish(['a'])
  await t.advance('1s')
  const [{ headers, body } = { headers: {} as Post['headers'], body: '{}' }] = posts
  expect(JSON.parse(body)).toMatchObject({ events: [{ id: 'a', eventType: 'order.paid', name: 'a', data: 'a' }] })
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  expect(headers['x-webhook-signature']).toBe(createHmac('sha256', key).update(body).digest('hex'))
})

it.each([
  [{ form: 'xml' }, 'delivery("more").defaults.form must be'],
  [{ signing: { kind: 'none' } }, 'delivery("more").defaults.signing is invalid'],
  [{ rate: { rate: 0, per: '1s' } }, 'defaults.rate'],
  [{ url: URL }, 'delivery("more").defaults.url is not an option'],
])('faulty defaults are rejected when the app is built: %j', (defaults, message) => {
  const app = new Sluice({ store: 'memory:', log: false })
  expect(() => app.delivery('more', { on: '**', defaults: defaults as never })).toThrow(message)
})

it('only one delivery may have defaults, because an endpoint gets the events of each', () => {
  const app = new Sluice({ store: 'memory:', log: false })
  app.delivery('one', { on: 'a', defaults: { form: 'flat' } })
  app.delivery('two', { on: 'b' })
  expect(() => app.delivery('three', { on: 'c', defaults: { form: 'flat' } })).toThrow(
    'on one delivery only; got another on "one"',
  )
})

it.each(['standard', 'slack'] as const)(
  'with maxEvents: 1 each event of the form %s is posted alone, in order',
  async (form) => {
    const { app, posts, publish, t } = await scene({ maxEvents: 1 })
    await app.endpoints.create({ url: URL, form })
    await publish(['a', 'b', 'c'])
    await t.advance('1s')
    expect(posts.map(({ body }) => /order\.paid.*?"?\b([abc])\b/.exec(body)?.[1])).toEqual(['a', 'b', 'c'])
    expect(t.runs.map(({ events }) => events)).toEqual([['a'], ['b'], ['c']])
  },
)
