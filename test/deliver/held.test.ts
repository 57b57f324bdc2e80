// An endpoint that is paused, disabled or not reached through a fault of ours: what waits for it waits at no cost for as long as it
// takes, and goes at once when it may.
import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import type { DeliveryOptions } from '../../src/delivering.ts'
import { Sluice } from '../../src/sluice.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { subscriber } from './subscriber.ts'

const EVENT = { type: 'version.new', data: 1 } as const

it('one that is disabled for days and answers 410 again once it is enabled has lost nothing', async () => {
  const to = await subscriber({ status: 410 }, { status: 410 })
  const { app, advance } = await underClock({ retry: [] })
  const { id } = await app.endpoints.add({ url: to.url })
  const back = app.events.once('run.again')
  await app.publish({ ...EVENT, id: 'a' })
  await back
  await advance('48h')
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
  const { app, advance } = await underClock({ retry: [] })
  const { id } = await app.endpoints.add({ url: to.url })
  await app.endpoints.pause(id)
  const back = app.events.once('run.again')
  await app.publish({ ...EVENT, id: 'a' })
  await back
  await advance('30h')
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

async function underClock(options: Partial<DeliveryOptions>): Promise<TestApp> {
  const key = randomBytes(32).toString('base64')
  const app = new Sluice({ store: 'memory:', log: false, key, delivery: { allowLoopback: true } })
  app.delivery('versions', { on: 'version.*', ...options })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  return t
}
