// Tests `where`: content filters of endpoints, deliveries and flows decide who gets an event.
import { expect, it } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { testApp } from '../../src/testing/index.ts'
import { delivery, subscriber } from './subscriber.ts'

const url = 'https://example.com/'

it('D5 an endpoint receives the events whose content matches its filter, and a changed filter applies to later events', async () => {
  const [some, all] = [await subscriber(), await subscriber()]
  const { app, endpoint } = await delivery()
  const publish = (id: string, data: object): Promise<unknown> => app.publish({ id, type: 'version.new', data })
  const { id } = await endpoint({ url: some.url, where: { 'data.component': { in: ['NEOFORGE'] } } })
  await endpoint({ url: all.url })
  await publish('a', { component: 'NEOFORGE' })
  await publish('b', { component: 'MINECRAFT' })
  await app.endpoints.update(id, { where: { 'data.component': 'MINECRAFT' } })
  await publish('c', { component: 'NEOFORGE' })
  await publish('d', { component: 'MINECRAFT' })
  await app.endpoints.update(id, { where: null })
  await publish('e', {})
  await expect.poll(() => all.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b', 'c', 'd', 'e'])
  await expect.poll(() => some.got.flatMap(({ ids }) => ids)).toEqual(['a', 'd', 'e'])
  expect(await app.endpoints.get(id)).toMatchObject({ where: null })
})

it('D5 an event published to one endpoint reaches it whatever its filter says', async () => {
  const to = await subscriber()
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: to.url, where: { 'data.n': 1 } })
  await app.publish({ id: 'a', type: 'version.new', data: { n: 2 } }, { to: id })
  await to.reached(1)
  expect(to.got[0]?.ids).toEqual(['a'])
})

it('D5 a delivery with a filter takes only the events whose content matches, also for one endpoint', async () => {
  const to = await subscriber()
  const { app, endpoint } = await delivery({ where: { 'data.n': { gte: 2 } } })
  const { id } = await endpoint({ url: to.url })
  await app.publish([1, 2, 3].map((n) => ({ id: `${n}`, type: 'version.new', data: { n } })))
  await expect.poll(() => to.got.flatMap(({ ids }) => ids)).toEqual(['2', '3'])
  await expect(app.publish({ type: 'version.new', data: { n: 1 } }, { to: id })).rejects.toMatchObject({
    code: 'EVENT_INVALID',
  })
})

it('D5 a faulty filter is rejected with the path of the fault, and nothing is stored', async () => {
  const { app, endpoint } = await delivery()
  const where = { any: [{ 'data.n': { gt: true } }] } as never
  const rejection = {
    code: 'ENDPOINT_INVALID',
    message: expect.stringContaining(
      'endpoint: where is invalid: where.any[0]["data.n"].gt must be a text or a finite number; got true.',
    ) as string,
  }
  await expect(endpoint({ url, where })).rejects.toMatchObject(rejection)
  const { id } = await endpoint({ url, where: { 'data.n': 1 } })
  await expect(app.endpoints.update(id, { where })).rejects.toMatchObject(rejection)
  expect(await app.endpoints.list()).toMatchObject([{ where: { 'data.n': 1 } }])
})

it('a flow takes the events that match both its names and its content filter', async () => {
  const app = new Sluice({ store: 'memory:', log: false })
  app.flow('large', { on: 'order.*', where: { 'data.total': { gte: 100 } }, run: () => {} })
  app.flow('own', { on: ({ type }) => type === 'order.paid', where: { not: { subject: 's' } }, run: () => {} })
  const t = await testApp(app)
  await app.publish({ id: 'a', type: 'order.paid', data: { total: 100 }, subject: 's' })
  await app.publish({ id: 'b', type: 'order.paid', data: { total: 99 } })
  await app.publish({ id: 'c', type: 'other', data: { total: 100 } })
  await t.advance('1s')
  expect(t.runs.map(({ flow, events }) => [flow, ...events.map((data) => (data as { total: number }).total)])).toEqual([
    ['large', 100],
    ['own', 99],
  ])
})

it('a flow with a faulty filter is rejected', () => {
  const app = new Sluice({ store: 'memory:', log: false })
  expect(() => app.flow('f', { on: '**', where: { nope: 1 } as never, run: () => {} })).toThrow(
    'f.where["nope"] must be a path such as type',
  )
})
