// Tests that `endpoint.*` events are published for flows and deliveries, and never circulate forever.
import { expect, it, onTestFinished } from 'vitest'
import { randomBytes } from 'node:crypto'
import { Sluice } from '../../src/app/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber, type Answer } from './subscriber.ts'

const QUICK = ['20ms', '20ms', '20ms', '20ms', '20ms', '20ms', '20ms', '20ms', '20ms', '20ms'] as const
const failing = (times: number): readonly Answer[] => Array.from({ length: times }, () => ({ status: 503 }))

async function withFlow(): Promise<{ readonly app: Sluice; readonly heard: readonly unknown[][] }> {
  const heard: unknown[][] = []
  const app = new Sluice({
    store: 'memory:',
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true },
  })
  app.delivery('all', { on: '**', retry: QUICK })
  app.flow('hears', {
    on: 'sluice/endpoint.*',
    run: ({ events }) =>
      void heard.push(...events.map(({ type, tenant, subject, data }) => [type, tenant, subject, data])),
  })
  await app.start()
  onTestFinished(() => app.stop())
  return { app, heard }
}

it('a flow receives endpoint.opened, recovered and disabled, with the tenant and the reason', async () => {
  const to = await subscriber(...failing(5), { status: 200 }, { status: 410 })
  const { app, heard } = await withFlow()
  const { id } = await app.endpoints.create({ url: to.url, name: 'Ada', tenant: 't' })
  const data = (reason: string): object => ({ endpoint: id, name: 'Ada', reason })
  await app.publish({ type: 'version.new', tenant: 't' })
  await expect.poll(() => heard).toHaveLength(2)
  await app.publish({ type: 'version.new', tenant: 't' })
  await expect.poll(() => heard).toHaveLength(3)
  expect(heard).toEqual([
    ['endpoint.opened', 't', id, data('The endpoint returned 503.')],
    ['endpoint.recovered', 't', id, data('')],
    ['endpoint.disabled', 't', id, data('The endpoint returned 410 (gone).')],
  ])
})

it('a delivery posts them to endpoints whose filter names them, never to their subject', async () => {
  const to = await subscriber({ status: 410 })
  const [asked, everything] = [await subscriber(), await subscriber()]
  const { app } = await withFlow()
  const { id } = await app.endpoints.create({ url: to.url, eventFilter: ['version.*', 'endpoint.*'] })
  await app.endpoints.create({ url: asked.url, eventFilter: ['endpoint.*'] })
  await app.endpoints.create({ url: everything.url })
  await app.publish({ id: 'a', type: 'version.new' })
  await asked.reached(1)
  expect(JSON.parse(asked.got[0]?.body ?? '')).toMatchObject({
    data: { events: [{ type: 'endpoint.disabled', source: 'sluice', subject: id, data: { endpoint: id } }] },
  })
  await app.publish({ id: 'b', type: 'order.new' })
  await expect.poll(() => everything.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
  await expect.poll(async () => (await app.admin.lanes.list({ flow: 'all' })).items.map(({ key }) => key)).toEqual([id])
  const [lane] = (await app.admin.lanes.list({ flow: 'all' })).items
  expect([lane?.waiting, lane?.run?.events]).toEqual([0, 1])
})

it("two endpoints that receive each other's events do not loop", async () => {
  const both = [await subscriber({ status: 410 }), await subscriber({ status: 410 })]
  const { app, heard } = await withFlow()
  const emitted: unknown[] = []
  app.on('endpoint.disabled', ({ endpoint }) => emitted.push(endpoint))
  const [one, other] = [
    (await app.endpoints.create({ url: both[0]?.url ?? '', eventFilter: ['version.*', 'endpoint.*'] })).id,
    (await app.endpoints.create({ url: both[1]?.url ?? '', eventFilter: ['endpoint.*'] })).id,
  ]
  await app.publish({ type: 'version.new' })
  // The event about the first endpoint disables the second one, which publishes no further event.
  await expect.poll(() => emitted).toEqual([one, other])
  await app.publish({ type: 'last' }, { to: 'hears' })
  await expect.poll(() => heard.at(-1)?.[0]).toBe('last')
  expect(heard.map(([type, , subject]) => [type, subject])).toEqual([
    ['endpoint.disabled', one],
    ['last', undefined],
  ])
})

it('a failed publish of an endpoint event fails no delivery', async () => {
  const store = await openStore('memory:')
  const append = store.append.bind(store)
  store.append = (call) =>
    call.events.some(({ source }) => source === 'sluice') ? Promise.reject(new Error('no disk')) : append(call)
  const to = await subscriber(...failing(5))
  const { app, endpoint, send } = await delivery({ retry: QUICK }, store)
  const { id } = await endpoint({ url: to.url })
  const done = app.once('run.done')
  await send(['a'])
  await done
  expect(to.got).toHaveLength(6)
  expect((await app.endpoints.get(id))?.health).toMatchObject({ status: 'up', attempts: 6 })
})
