// Tests the rate of an endpoint: it is a limit, shared by processes and deliveries, and waiting for it uses no
// attempt.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { delivery, subscriber } from './subscriber.ts'

const KEY = randomBytes(32).toString('base64')

async function underTest(): Promise<{ readonly app: Sluice; readonly t: TestApp }> {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: KEY, delivery: { allowLoopback: true } })
  app.delivery('versions', { on: 'version.*', window: { quiet: 0, maxEvents: 1 }, retry: [] })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  return { app, t }
}

it('M6 a batch whose slot is later is deferred and uses no attempt', async () => {
  const to = await subscriber()
  const { app, t } = await underTest()
  const { id } = await app.endpoints.create({ url: to.url, rate: { rate: 1, per: '1h' } })
  const again = app.once('run.deferred')
  await app.publish(['a', 'b', 'c'].map((name) => ({ id: name, type: 'version.new', data: name })))
  expect(await again).toMatchObject({ why: expect.stringContaining(`sluice.endpoint/${id}`) })
  expect(to.got.flatMap(({ ids }) => ids)).toEqual(['a'])
  for (const [n, name] of ['b', 'c'].entries()) {
    await t.advance('59m')
    expect(to.got).toHaveLength(n + 1)
    const done = app.once('run.done')
    // Just over an hour. The request in progress must not exceed its own deadline meanwhile.
    await t.advance('61s')
    await done
    expect(to.got.at(-1)?.ids).toEqual([name])
  }
  expect((await app.admin.deadLetters.list()).items).toEqual([])
})

it('a test event is rejected while the rate is used up', async () => {
  const to = await subscriber()
  const { app, t } = await underTest()
  const { id } = await app.endpoints.create({ url: to.url, rate: { rate: 1, per: '1h' } })
  expect(await app.endpoints.test(id)).toMatchObject({ delivered: true })
  const second = app.endpoints.test(id).catch((error: unknown) => error)
  let answer: unknown
  void second.then((told) => (answer = told))
  await expect.poll(() => t.advance('31s').then(() => answer)).toMatchObject({ code: 'CONFLICT' })
  expect(to.got).toHaveLength(1)
})

it.each([
  { rate: 0, per: '1s' },
  { rate: 1.5, per: '1s' },
  { rate: 1, per: '10ms' },
  { rate: 1 },
  { rate: 1, per: '1s', burst: -1 },
  '10/s',
  7,
])('%o is rejected as a rate', async (rate) => {
  const { app } = await delivery()
  const added = app.endpoints.create({ url: 'https://example.com/', rate: rate as never })
  await expect(added).rejects.toMatchObject({ code: 'ENDPOINT_INVALID', message: expect.stringContaining('rate') })
})

it('update changes and removes the rate', async () => {
  const { app } = await delivery()
  const { id } = await app.endpoints.create({ url: 'https://example.com/', rate: { rate: 10, per: '1s' } })
  expect(await app.endpoints.update(id, { rate: { rate: 2, per: '1m' } })).toMatchObject({
    rate: { rate: 2, per: '1m' },
  })
  expect(await app.endpoints.update(id, { rate: null })).toMatchObject({ rate: null })
})
