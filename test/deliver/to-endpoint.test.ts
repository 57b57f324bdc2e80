// Tests `publish(event, { to })` with an endpoint: only this endpoint gets the event, even if its filter does not
// match, and never one of another tenant.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { testApp } from '../../src/testing/index.ts'
import { delivery, subscriber, type Subscriber } from './subscriber.ts'

const START = Date.UTC(2026, 0, 1)
const EVENT = { type: 'version.new', data: 1 } as const

describe.each(['memory:', 'sqlite::memory:'])('on %s', (store) => {
  it('reaches this endpoint, and neither others nor flows', async () => {
    const [to, other] = [await subscriber(), await subscriber()]
    const { app, endpoint, send } = await delivery({}, store)
    const { id } = await endpoint({ url: to.url, eventFilter: ['nothing'] })
    await endpoint({ url: other.url })
    await app.publish({ ...EVENT, id: 'for-one' }, { to: id })
    await to.reached(1)
    await send(['for-all'])
    await other.reached(1)
    expect([to, other].map(({ got }) => got.flatMap(({ ids }) => ids))).toEqual([['for-one'], ['for-all']])
  })

  it.each([
    ['ep_nothing', EVENT, 'neither a flow nor an endpoint'],
    ['of-tenant', EVENT, 'tenant'],
    ['of-tenant', { ...EVENT, tenant: 'other' }, 'tenant'],
    ['of-nobody', { ...EVENT, tenant: 't' }, 'tenant'],
    ['of-nobody', { ...EVENT, type: 'order.new' }, 'no delivery'],
  ])('to %s: %o is rejected with %s', async (which, event, text) => {
    const { app, endpoint } = await delivery({}, store)
    const ids: Record<string, string> = {
      'of-tenant': (await endpoint({ url: 'http://127.0.0.1:1/', tenant: 't' })).id,
      'of-nobody': (await endpoint({ url: 'http://127.0.0.1:1/' })).id,
    }
    const published = app.publish([event, EVENT], { to: ids[which] ?? which })
    await expect(published).rejects.toMatchObject({ code: 'EVENT_INVALID', message: expect.stringContaining(text) })
    expect((await app.admin.events.list()).items).toEqual([])
  })

  it('reaches an endpoint of its own tenant', async () => {
    const to = await subscriber()
    const { app, endpoint } = await delivery({}, store)
    const { id } = await endpoint({ url: to.url, tenant: 't' })
    await app.publish({ ...EVENT, id: 'a', tenant: 't' }, { to: id })
    await to.reached(1)
    expect(to.got.map(({ ids }) => ids)).toEqual([['a']])
  })

  it('run.publish reaches this endpoint, at once or with `at` later, and fails the attempt for an unknown one', async () => {
    const app = new Sluice({ store: 'memory:', log: false, encryptionKey: Buffer.alloc(32, 1).toString('base64') })
    let id = ''
    app.delivery('versions', { on: 'version.*' })
    app.flow('publisher', {
      on: 'ping',
      retry: ['1s'],
      run: (run) => {
        run.publish({ ...EVENT, id: 'now' }, { to: run.attempt === 1 ? 'ep_nothing' : id })
        run.publish({ ...EVENT, id: 'later' }, { to: id, at: START + 60_000 })
      },
    })
    const posted: string[] = []
    const t = await testApp(app, {
      store,
      now: START,
      fetch: async (request) => {
        posted.push(`${request.url} ${/"id":"(\w+)"/.exec(await request.text())?.[1]}`)
        return new Response()
      },
    })
    onTestFinished(() => t.stop())
    id = (await app.endpoints.create({ url: 'https://one.example/', eventFilter: ['nothing'] })).id
    await app.endpoints.create({ url: 'https://other.example/', eventFilter: ['version.old'] })
    await t.send({ type: 'ping' })
    await t.advance('500ms')
    expect(
      t.runs.map(({ flow, ending, error }) => [flow, ending, error?.includes('neither a flow nor an endpoint')]),
    ).toEqual([['publisher', 'retry', true]])
    await t.advance('5s')
    expect(posted).toEqual(['https://one.example/ now'])
    await t.advance('60s')
    expect(posted).toEqual(['https://one.example/ now', 'https://one.example/ later'])
  })

  it('is posted by the delivery that takes its type, and with `at` later', async () => {
    const app = new Sluice({ store: 'memory:', log: false, encryptionKey: Buffer.alloc(32, 1).toString('base64') })
    const ran: string[] = []
    app.delivery('versions', { on: 'version.*', window: { quiet: '1h' } })
    app.delivery('orders', { on: 'order.*', window: { quiet: '1h' } })
    app.flow('all', { on: '**', run: ({ id }) => void ran.push(id) })
    const t = await testApp(app, { store, now: START })
    const { id } = await app.endpoints.create({ url: 'https://example.com/' })
    await app.publish({ type: 'order.new', data: 1 }, { to: id, at: START + 60_000 })
    await t.advance('59s')
    expect((await app.admin.lanes.list({ flow: 'orders' })).items).toEqual([])
    await t.advance('2s')
    expect((await app.admin.lanes.list()).items).toMatchObject([{ flow: 'orders', key: id, waiting: 1 }])
    expect(ran).toEqual([])
    await t.stop()
  })
})

it('is posted by the first of several matching deliveries', async () => {
  const { app, to } = await twoDeliveries()
  const { id } = await app.endpoints.create({ url: to.url })
  await app.publish(
    [
      { ...EVENT, id: 'a' },
      { ...EVENT, id: 'b', type: 'order.new' },
    ],
    { to: id },
  )
  const lanesLeft = async (): Promise<number> => (await app.admin.lanes.list()).items.length
  await to.reached(2)
  await expect.poll(lanesLeft).toBe(0)
  const came = to.got.map(({ body, ids }) => [typeIn(body), ids] as const)
  expect(came).toHaveLength(2)
  expect(Object.fromEntries(came)).toEqual({ versions: ['a'], all: ['b'] })
})

it('an event of two deliveries is two messages with different ids', async () => {
  const { app, to } = await twoDeliveries()
  await app.endpoints.create({ url: to.url })
  await app.publish({ ...EVENT, id: 'a' })
  await to.reached(2)
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a']])
  expect(new Set(to.got.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
})

async function twoDeliveries(): Promise<{ readonly app: Sluice; readonly to: Subscriber }> {
  const key = Buffer.alloc(32, 1).toString('base64')
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: key, delivery: { allowLoopback: true } })
  app.delivery('versions', { on: 'version.*' })
  app.delivery('all', { on: '**' })
  await app.start()
  onTestFinished(() => app.stop())
  return { app, to: await subscriber() }
}

function typeIn(body: string): string {
  return (JSON.parse(body) as { type: string }).type
}

it('reaches an endpoint that another process has just registered', async () => {
  const store = await openStore('memory:')
  const to = await subscriber()
  const [one, other] = [await delivery({}, store), await delivery({}, store)]
  const { id } = await one.endpoint({ url: to.url })
  await other.app.publish({ ...EVENT, id: 'a' }, { to: id })
  await to.reached(1)
  expect(to.got.map(({ ids }) => ids)).toEqual([['a']])
})

it('an attribute of the sender reaches no other tenant', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  const { id } = await endpoint({ url: to.url, tenant: 't' })
  await app.publish({ ...EVENT, attributes: { 'sluice-to': id } })
  await send(['b'], { tenant: 't' })
  await to.reached(1)
  expect(to.got.map(({ ids }) => ids)).toEqual([['b']])
})
