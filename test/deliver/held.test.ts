// An endpoint that is paused, disabled or not reached through a fault of ours: what waits for it waits at no cost for as long as it
// takes, and goes at once when it may.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import type { DeliveryOptions } from '../../src/delivering.ts'
import { Sluice } from '../../src/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { ownFile } from '../own-folder.ts'
import { delivery, subscriber } from './subscriber.ts'

const EVENT = { type: 'version.new', data: 1 } as const

/** An endpoint that is paused, and for which an event waits. */
async function waitingFor(url: string, app: Sluice): Promise<string> {
  const { id } = await app.endpoints.add({ url })
  await app.endpoints.pause(id)
  const back = app.events.once('run.again')
  await app.publish({ ...EVENT, id: 'a' })
  await back
  return id
}

it('one that is disabled for days and answers 410 again once it is enabled has lost nothing', async () => {
  const to = await subscriber({ status: 410 }, { status: 410 })
  const t = await underClock({ retry: [] })
  const { app } = t
  const { id } = await app.endpoints.add({ url: to.url })
  const back = app.events.once('run.again')
  await app.publish({ ...EVENT, id: 'a' })
  await back
  await t.advance('48h')
  const backAgain = app.events.once('run.again')
  await app.endpoints.enable(id, { from: 'backlog' })
  expect(await backAgain).toMatchObject({ why: 'It answered 410: it is gone.' })
  expect((await app.deadLetters.list()).items).toEqual([])
  const done = app.events.once('run.done')
  await app.endpoints.enable(id, { from: 'backlog' })
  expect(await done).toMatchObject({ attempt: 1 })
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a'], ['a']])
})

it('a lane that somebody unholds while its endpoint is paused is held again, and has lost nothing', async () => {
  const to = await subscriber()
  const t = await underClock({ retry: [] })
  const { app } = t
  const id = await waitingFor(to.url, app)
  await t.advance('30h')
  const backAgain = app.events.once('run.again')
  await app.lanes.unhold('versions', id)
  await backAgain
  expect((await app.lanes.get('versions', id))?.hold).toMatchObject({ reason: 'The endpoint is paused.' })
  expect((await app.deadLetters.list()).items).toEqual([])
  const done = app.events.once('run.done')
  await app.endpoints.resume(id)
  await done
  expect(to.got.map(({ ids }) => ids)).toEqual([['a']])
})

it('a hold of ours that comes after somebody has let the endpoint go does not stay', async () => {
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
  await expect.poll(() => app.lanes.get('versions', id)).toBeUndefined()
})

it('nor does that of a pause, if somebody resumes before it is there', async () => {
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
  await expect.poll(() => app.lanes.get('versions', id)).toBeUndefined()
})

it('who lets it go after it was held, and before its batch is given back, need not wait for it', async () => {
  const to = await subscriber()
  const store = await openStore('memory:')
  const { app, endpoint, send } = await delivery({}, store)
  const { id } = await endpoint({ url: to.url })
  await app.endpoints.pause(id)
  const turn = store.turn.bind(store)
  store.turn = async (call) => {
    if (call.settle.length > 0) {
      store.turn = turn
      await app.endpoints.resume(id)
    }
    return turn(call)
  }
  await send(['a'])
  await to.reached(1)
})

it('so does one that is enabled by whoever hears that it was disabled', async () => {
  const to = await subscriber({ status: 410 })
  const { app, endpoint, send } = await delivery({}, ownFile())
  const { id } = await endpoint({ url: to.url })
  app.events.on('endpoint.disabled', () => void app.endpoints.enable(id, { from: 'backlog' }))
  await send(['a'])
  await to.reached(2)
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a']])
})

const DAY = { status: 503, headers: { 'retry-after': '86400' } } as const

it('75 hours after its first failure a batch is dead, however much patience was asked for', async () => {
  const to = await subscriber(DAY, DAY, DAY, DAY, DAY)
  const t = await underClock({})
  const { app } = t
  const { id } = await app.endpoints.add({ url: to.url })
  const dead = app.events.once('run.dead')
  for (let day = 0; day < 4; day++) {
    const retried = app.events.once('run.retry')
    if (day === 0) await app.publish(EVENT)
    else await t.advance('24h')
    expect(await retried).toMatchObject({ after: 86_400_000 })
  }
  await t.advance('24h')
  expect(await dead).toMatchObject({ attempt: 5, error: 'It answered 503.' })
  expect((await app.endpoints.get(id))?.health).toMatchObject({ failedBatches: 1 })
})

it('what waited for days before its first try has its 75 hours from then on', async () => {
  const to = await subscriber({ status: 503 }, { status: 503 })
  const t = await underClock({})
  const { app } = t
  const id = await waitingFor(to.url, app)
  await t.advance('100h')
  const retried = app.events.once('run.retry')
  await app.endpoints.resume(id)
  await retried
  const retriedAgain = app.events.once('run.retry')
  await t.advance('6s')
  await retriedAgain
  const done = app.events.once('run.done')
  await t.advance('36s')
  await done
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a'], ['a']])
})

async function underClock(options: Partial<DeliveryOptions>): Promise<TestApp> {
  const key = randomBytes(32).toString('base64')
  const app = new Sluice({ store: 'memory:', log: false, key, delivery: { allowLoopback: true } })
  app.delivery('versions', { on: 'version.*', ...options })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  return t
}
