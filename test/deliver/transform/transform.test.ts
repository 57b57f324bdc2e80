// Tests what a transformation does to a delivery, over a virtual network: what it gets and returns, and what its failure costs.
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Sluice } from '../../../src/app/sluice.ts'
import type { DeliveryOptions } from '../../../src/app/deliveries.ts'
import type { NewEndpoint } from '../../../src/deliver/endpoint.ts'
import { testApp, type TestApp } from '../../../src/testing/index.ts'

interface Post {
  readonly at: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Scene {
  readonly app: Sluice
  readonly t: TestApp
  readonly posts: readonly Post[]
  /** The bodies of all posts, parsed. */
  readonly sent: () => readonly unknown[]
  readonly publish: (...names: readonly string[]) => Promise<unknown>
  /** Registers an endpoint with this code and returns its id. */
  readonly subscribe: (code: string, fields?: Partial<NewEndpoint>) => Promise<string>
}

const URL = 'https://example.com/hook'

async function scene(
  options: Partial<DeliveryOptions> = {},
  answer: (count: number) => number = () => 200,
): Promise<Scene> {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: randomBytes(32).toString('base64') })
  app.delivery('orders', { on: 'order.*', ...options })
  const posts: Post[] = []
  const t = await testApp(app, {
    fetch: async (request) => {
      const { headers, url } = request
      posts.push({ at: t.elapsed, url, headers: Object.fromEntries(headers), body: await request.text() })
      return new Response(null, { status: answer(posts.length) })
    },
  })
  onTestFinished(() => t.stop())
  return {
    app,
    t,
    posts,
    sent: () => posts.map(({ body }) => JSON.parse(body) as unknown),
    publish: (...names) => t.send(names.map((name) => ({ id: name, type: 'order.paid', data: { name, card: 4242 } }))),
    subscribe: async (code, fields = {}) => {
      const { id } = await app.endpoints.create({ url: URL, form: 'events', ...fields })
      await app.endpoints.transforms.set(id, { code })
      return id
    },
  }
}

const WITHOUT_CARD = `export default (events) =>
  events.map((event) => ({ ...event, data: { name: event.data.name } }))`

it('a transformation changes the events between the filter and the form, and the result is signed', async () => {
  const { app, t, posts, publish } = await scene({ batch: '1s' })
  const { id, secret } = await app.endpoints.create({ url: URL, where: { 'data.card': { eq: 4_242 } } })
  await app.endpoints.transforms.set(id, { code: WITHOUT_CARD })
  vi.useFakeTimers({ now: t.clock.now(), toFake: ['Date'] })
  await publish('a', 'b')
  await t.advance('1s')
  const [post] = posts
  const verified = new Webhook(secret).verify(post?.body ?? '', post?.headers ?? {})
  vi.useRealTimers()
  expect(verified).toMatchObject({ type: 'orders', data: { events: [{ id: 'a', data: { name: 'a' } }, { id: 'b' }] } })
  expect(post?.body).not.toContain('4242')
})

it('a transformation returns a whole body, with its media type', async () => {
  const { posts, publish, subscribe } = await scene()
  await subscribe(
    `export default ([{ data }]) => ({ body: '<order>' + data.name + '</order>', contentType: 'text/xml' })`,
  )
  await publish('a')
  expect(posts[0]).toMatchObject({ body: '<order>a</order>', headers: { 'content-type': 'text/xml' } })
})

it('an event that a transformation leaves out is done, and is not posted', async () => {
  const { t, sent, publish, subscribe } = await scene({ batch: '1s' })
  await subscribe(`export default (events) => events.filter(({ data }) => !data.name.startsWith('b'))`)
  await publish('a', 'b', 'c')
  await t.advance('1s')
  expect(sent()).toMatchObject([{ events: [{ id: 'a' }, { id: 'c' }] }])
  await publish('b2')
  await t.advance('1s')
  expect(sent()).toHaveLength(1)
  expect(t.runs.map(({ ending }) => ending)).toEqual(['done', 'done'])
})

it('all attempts of a message have the same id and body, although the code asks for the time and for chance', async () => {
  const { t, posts, publish, subscribe } = await scene({ retry: ['1m', '1m'] }, (n) => (n < 3 ? 500 : 200))
  await subscribe(`let calls = 0
    export default () => ({ body: [Date.now(), new Date().getHours(), Math.random(), ++calls] })`)
  await publish('a')
  await t.advance('5m')
  expect(posts).toHaveLength(3)
  expect(new Set(posts.map(({ body }) => body)).size).toBe(1)
  expect(new Set(posts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  await publish('b')
  expect(posts[3]?.body).not.toBe(posts[0]?.body)
})

it.each([
  ['throws', `() => {\n  null.name\n}`, /transform-failed: TypeError: cannot read property 'name' of null \(line 2\)$/],
  [
    'recurses',
    `function again() { return again() + 1 }`,
    /transform-failed: RangeError: Maximum call stack size exceeded/,
  ],
  ['nests without end', `() => JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))`, /Maximum call stack size exceeded/],
  ['allocates too much', `() => new Uint8Array(33 * 2 ** 20)`, /It used more than 32 MB of memory/],
  ['returns nonsense', `() => 42`, /It must return a list of events, \{ body \} or nothing; it returned a number/],
  ['returns a function', `() => () => 1`, /It returned a function/],
  ['names an unknown event', `() => [{ id: 'x' }]`, /events\[0\]\.id must be the id of an event of this batch/],
  ['is asynchronous', `async (events) => events`, /It returned a promise/],
  ['imports', `() => import('node:fs').then()`, /It returned a promise/],
])('a transformation that %s costs one dead letter, and the lane goes on', async (_, hostile, reason) => {
  const { app, sent, publish, subscribe } = await scene()
  const id = await subscribe(`const hostile = ${hostile}
    export default (events) => (events[0].data.name === 'bad' ? hostile(events) : events)`)
  await publish('bad')
  await publish('good')
  expect(sent()).toMatchObject([{ events: [{ id: 'good' }] }])
  const { items } = await app.admin.deadLetters.list()
  expect(items).toMatchObject([{ flow: 'orders', key: id, events: ['bad'] }])
  expect(items[0]?.reason).toMatch(reason)
  expect((await app.endpoints.get(id))?.health).toMatchObject({ breaker: 'closed', consecutiveFailures: 0 })
})

it('a form with one event a POST loses only the event that its transformation fails at', async () => {
  const { app, sent, publish, t, subscribe } = await scene({ batch: '1s' })
  await subscribe(`export default ([event]) => { if (event.data.name === 'b') throw Error('no'); return [event] }`, {
    form: 'flat',
  })
  await publish('a', 'b', 'c')
  await t.advance('1m')
  expect(sent()).toMatchObject([{ name: 'a' }, { name: 'c' }])
  expect((await app.admin.deadLetters.list()).items).toMatchObject([{ events: ['b'] }])
})
