// Tests an endpoint that is paused, disabled, or unreachable through Sluice's own failure: its events wait without
// any attempt, and are due at once afterwards.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import type { DeliveryOptions } from '../../src/app/deliveries.ts'
import { Sluice } from '../../src/app/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { ownFile } from '../temporary-folder.ts'
import { delivery, subscriber } from './subscriber.ts'

const EVENT = { type: 'version.new', data: 1 } as const

/** Creates a paused endpoint with a waiting event. */
async function waitingFor(url: string, app: Sluice): Promise<string> {
  const { id } = await app.endpoints.create({ url })
  await app.endpoints.pause(id)
  const back = app.once('run.deferred')
  await app.publish({ ...EVENT, id: 'a' })
  await back
  return id
}

it('D4 an endpoint that responds with 410 again after enable loses no event', async () => {
  const to = await subscriber({ status: 410 }, { status: 410 })
  const t = await underClock({ retry: [] })
  const { app } = t
  const { id } = await app.endpoints.create({ url: to.url })
  const back = app.once('run.deferred')
  await app.publish({ ...EVENT, id: 'a' })
  await back
  await t.advance('48h')
  const backAgain = app.once('run.deferred')
  await app.endpoints.enable(id, { from: 'backlog' })
  expect(await backAgain).toMatchObject({ why: 'The endpoint returned 410 (gone).' })
  expect((await app.admin.deadLetters.list()).items).toEqual([])
  const done = app.once('run.done')
  await app.endpoints.enable(id, { from: 'backlog' })
  expect(await done).toMatchObject({ attempt: 1 })
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a'], ['a']])
})

it('a lane that an operator unholds while its endpoint is paused is held again, without losing an event', async () => {
  const to = await subscriber()
  const t = await underClock({ retry: [] })
  const { app } = t
  const id = await waitingFor(to.url, app)
  await t.advance('30h')
  const backAgain = app.once('run.deferred')
  await app.admin.lanes.unhold('versions', id)
  await backAgain
  expect((await app.admin.lanes.get('versions', id))?.hold).toMatchObject({ reason: 'The endpoint is paused.' })
  expect((await app.admin.deadLetters.list()).items).toEqual([])
  const done = app.once('run.done')
  await app.endpoints.resume(id)
  await done
  expect(to.got.map(({ ids }) => ids)).toEqual([['a']])
})

it('a late hold does not stay after the endpoint was enabled', async () => {
  const to = await subscriber()
  const store = await openStore('memory:')
  const [holding, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const steer = store.steer.bind(store)
  store.steer = async (call) => {
    if (call.what === 'lanes' && call.act.kind === 'hold' && call.act.by === 'sluice') {
      holding.resolve()
      await resumed.promise
    }
    return steer(call)
  }
  const { app, endpoint, send } = await delivery({}, store)
  const { id } = await endpoint({ url: to.url })
  await app.endpoints.pause(id)
  await send(['a'])
  await holding.promise
  await app.endpoints.resume(id)
  resumed.resolve()
  await to.reached(1)
  await expect.poll(() => app.admin.lanes.get('versions', id)).toBeUndefined()
})

it('a late hold of a pause does not stay after resume', async () => {
  const to = await subscriber()
  const store = await openStore('memory:')
  const { app, endpoint, send } = await delivery({ window: { quiet: '1h' } }, store)
  const { id } = await endpoint({ url: to.url })
  await send(['a'])
  const steer = store.steer.bind(store)
  store.steer = async (call) => {
    store.steer = steer
    await app.endpoints.resume(id)
    return steer(call)
  }
  await app.endpoints.pause(id)
  await to.reached(1)
  await expect.poll(() => app.admin.lanes.get('versions', id)).toBeUndefined()
})

it('resume between the hold and the settlement makes the batch due at once', async () => {
  const to = await subscriber()
  const store = await openStore('memory:')
  const { app, endpoint, send } = await delivery({}, store)
  const { id } = await endpoint({ url: to.url })
  await app.endpoints.pause(id)
  const turn = store.settleAndClaim.bind(store)
  store.settleAndClaim = async (call) => {
    if (call.settle.length > 0) {
      store.settleAndClaim = turn
      await app.endpoints.resume(id)
    }
    return turn(call)
  }
  await send(['a'])
  await to.reached(1)
})

it('enable from a listener of endpoint.disabled makes the batch due at once', async () => {
  const to = await subscriber({ status: 410 })
  const { app, endpoint, send } = await delivery({}, ownFile())
  const { id } = await endpoint({ url: to.url })
  app.on('endpoint.disabled', () => void app.endpoints.enable(id, { from: 'backlog' }))
  await send(['a'])
  await to.reached(2)
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a']])
})

const DAY = { status: 503, headers: { 'retry-after': '86400' } } as const

it('D4 a batch is dead 75 hours after its first failure, despite any Retry-After', async () => {
  const to = await subscriber(DAY, DAY, DAY, DAY, DAY)
  const t = await underClock({})
  const { app } = t
  const { id } = await app.endpoints.create({ url: to.url })
  const dead = app.once('run.dead')
  for (let day = 0; day < 4; day++) {
    const retried = app.once('run.retry')
    if (day === 0) await app.publish(EVENT)
    else await t.advance('24h')
    expect(await retried).toMatchObject({ after: 86_400_000 })
  }
  await t.advance('24h')
  expect(await dead).toMatchObject({ attempt: 5, error: 'The endpoint returned 503.' })
  expect((await app.endpoints.get(id))?.health).toMatchObject({ failedBatches: 1 })
})

it('D4 the 75 hours start with the first failure, not with the arrival', async () => {
  const to = await subscriber({ status: 503 }, { status: 503 })
  const t = await underClock({})
  const { app } = t
  const id = await waitingFor(to.url, app)
  await t.advance('100h')
  const retried = app.once('run.retry')
  await app.endpoints.resume(id)
  await retried
  const retriedAgain = app.once('run.retry')
  await t.advance('6s')
  await retriedAgain
  const done = app.once('run.done')
  await t.advance('36s')
  await done
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a'], ['a']])
})

async function underClock(options: Partial<DeliveryOptions>): Promise<TestApp> {
  const key = randomBytes(32).toString('base64')
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: key, delivery: { allowLoopback: true } })
  app.delivery('versions', { on: 'version.*', ...options })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  return t
}
