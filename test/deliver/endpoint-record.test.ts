// Tests what an app records about its endpoints in virtual time: when one is disabled, the first and the last event of each
// batch, and the counter of POSTs by outcome.
import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'

const URL = 'https://example.com/hook'

/** An app whose receiver answers with these statuses, and then with the last of them. */
async function scene(...statuses: readonly number[]): Promise<{ readonly app: Sluice; readonly t: TestApp }> {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: randomBytes(32).toString('base64') })
  app.delivery('orders', { on: 'order.*', retry: Array.from({ length: 99 }, () => '1h' as const) })
  let posts = 0
  const t = await testApp(app, {
    fetch: () => new Response(null, { status: statuses[Math.min(posts++, statuses.length - 1)] ?? 200 }),
  })
  return { app, t }
}

it.each([
  [{ disableAfter: '12h' as const }, 11, 13],
  [{}, 119, 121],
  [{ disableAfter: null }, 98, undefined],
])('an endpoint that only fails is disabled after its time: %j', async (options, works, disabled) => {
  const { app, t } = await scene(500)
  const { id } = await app.endpoints.create({ url: URL, ...options })
  await t.send({ type: 'order.paid' })
  await t.send({ type: 'order.paid' })
  await t.advance(`${works}h`)
  expect((await app.endpoints.get(id))?.health.breaker).not.toBe('disabled')
  if (disabled === undefined) return
  await t.advance(`${disabled - works}h`)
  expect((await app.endpoints.get(id))?.health.breaker).toBe('disabled')
})

it.each([['0s'], ['soon'], [-1]])('disableAfter must be above 0: %s', async (disableAfter) => {
  const { app } = await scene(200)
  await expect(app.endpoints.create({ url: URL, disableAfter: disableAfter as never })).rejects.toMatchObject({
    code: 'ENDPOINT_INVALID',
    message: expect.stringContaining('disableAfter is invalid') as string,
  })
  expect(() => app.delivery('more', { on: 'x', defaults: { disableAfter: disableAfter as never } })).toThrow(
    'disableAfter',
  )
})

it('the history of an endpoint names the first and the last event of each batch, also of one in progress', async () => {
  const { app, t } = await scene(500, 200)
  const { id } = await app.endpoints.create({ url: URL })
  await t.send(['a', 'b', 'c'].map((name) => ({ id: name, type: 'order.paid' })))
  const range = { events: 3, firstEvent: 'a', lastEvent: 'c' }
  expect(await app.endpoints.deliveries(id)).toMatchObject([{ ...range, status: 'PENDING' }])
  await t.advance('1h')
  expect(await app.endpoints.deliveries(id)).toMatchObject([{ ...range, status: 'SUCCESS' }])
})

it('POSTs are counted by delivery and outcome, without a label for the endpoint', async () => {
  const { app, t } = await scene(500, 200, 410)
  const { id } = await app.endpoints.create({ url: URL })
  await t.send({ type: 'order.paid' })
  await t.advance('1h')
  await t.send({ type: 'order.paid' })
  await t.advance('1s')
  const lines = (await app.admin.metrics()).split('\n').filter((line) => line.startsWith('sluice_deliveries_total{'))
  expect(lines.toSorted()).toEqual([
    'sluice_deliveries_total{flow="orders",outcome="delivered"} 1',
    'sluice_deliveries_total{flow="orders",outcome="failed"} 1',
    'sluice_deliveries_total{flow="orders",outcome="gone"} 1',
  ])
  expect(lines.join()).not.toContain(id)
})
