// The rate of an endpoint: a limit like any other, kept over processes and deliveries, and never at the expense of a try.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/sluice.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { delivery, subscriber } from './subscriber.ts'

const KEY = randomBytes(32).toString('base64')

async function underTest(): Promise<{ readonly app: Sluice; readonly t: TestApp }> {
  const app = new Sluice({ store: 'memory:', log: false, key: KEY, delivery: { allowLoopback: true } })
  app.delivery('versions', { on: 'version.*', window: { quiet: 0, maxEvents: 1 }, retry: [] })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  return { app, t }
}

it('a batch whose turn is later is put off until then, and loses no try', async () => {
  const to = await subscriber()
  const { app, t } = await underTest()
  const { id } = await app.endpoints.add({ url: to.url, rate: { rate: 1, per: '1h' } })
  const again = app.events.once('run.again')
  await app.publish(['a', 'b', 'c'].map((name) => ({ id: name, type: 'version.new', data: name })))
  expect(await again).toMatchObject({ why: expect.stringContaining(`sluice.endpoint/${id}`) })
  expect(to.got.flatMap(({ ids }) => ids)).toEqual(['a'])
  for (const [n, name] of ['b', 'c'].entries()) {
    await t.advance('59m')
    expect(to.got).toHaveLength(n + 1)
    const done = app.events.once('run.done')
    // A moment beyond the hour: what is on its way does not outlive its own deadline meanwhile.
    await t.advance('61s')
    await done
    expect(to.got.at(-1)?.ids).toEqual([name])
  }
  expect((await app.deadLetters.list()).items).toEqual([])
})

it('a test that finds the rate used up says so, and is not sent', async () => {
  const to = await subscriber()
  const { app, t } = await underTest()
  const { id } = await app.endpoints.add({ url: to.url, rate: { rate: 1, per: '1h' } })
  expect(await app.endpoints.test(id)).toMatchObject({ delivered: true })
  const second = app.endpoints.test(id).catch((error: unknown) => error)
  let answer: unknown
  void second.then((told) => (answer = told))
  await expect.poll(() => t.advance('31s').then(() => answer)).toMatchObject({ code: 'NOT_POSSIBLE' })
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
])('%o is no rate', async (rate) => {
  const { app } = await delivery()
  const added = app.endpoints.add({ url: 'https://example.com/', rate: rate as never })
  await expect(added).rejects.toMatchObject({ code: 'ENDPOINT_INVALID', message: expect.stringContaining('rate') })
})

it('is changed and taken away', async () => {
  const { app } = await delivery()
  const { id } = await app.endpoints.add({ url: 'https://example.com/', rate: { rate: 10, per: '1s' } })
  expect(await app.endpoints.change(id, { rate: { rate: 2, per: '1m' } })).toMatchObject({
    rate: { rate: 2, per: '1m' },
  })
  expect(await app.endpoints.change(id, { rate: null })).toMatchObject({ rate: null })
})
