// Tests the health of endpoints as operators see it: from real POSTs, across processes, and after a restart.
import { describe, expect, it } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber } from './subscriber.ts'
import { ownFile } from '../temporary-folder.ts'

const QUICK = ['20ms', '20ms', '20ms', '20ms', '20ms', '20ms'] as const

describe.each(['memory:', 'sqlite:'])('on %s', (kind) => {
  const address = (): string => (kind === 'memory:' ? kind : ownFile())

  it('every attempt has its status, duration, response and error', async () => {
    const to = await subscriber(
      { status: 500, body: 'our\u0007 disk is full'.padEnd(5_000, '!') },
      { status: 202, body: 'thanks' },
    )
    const { app, endpoint, send } = await delivery({ retry: QUICK }, address())
    const { id } = await endpoint({ url: to.url })
    const done = app.once('run.done')
    await send(['a'])
    await done
    const [record, ...others] = await app.endpoints.deliveries(id)
    expect(others).toEqual([])
    expect(record).toMatchObject({
      status: 'SUCCESS',
      subscriber: id,
      attemptCount: 2,
      maxAttempts: QUICK.length + 1,
      attempts: [
        { status: 500, error: 'The endpoint returned 500.', ms: expect.any(Number), at: expect.any(Number) },
        { status: 202, answer: 'thanks', error: '' },
      ],
    })
    expect(record?.attempts[0]?.answer).toBe('our  disk is full'.padEnd(1_000, '!'))
  })

  it('an attempt without a response has an error and no status', async () => {
    const { app, endpoint, send } = await delivery({ retry: [] }, address())
    const { id } = await endpoint({ url: 'http://127.0.0.1:1/hook' })
    const dead = app.once('run.dead')
    await send(['a'])
    await dead
    const [record] = await app.endpoints.deliveries(id)
    expect(record).toMatchObject({
      status: 'FAILED',
      attemptCount: 1,
      attempts: [{ error: expect.stringContaining('connect') }],
    })
    expect(record?.attempts[0]).not.toHaveProperty('status')
    expect((await app.endpoints.get(id))?.health).toMatchObject({
      status: 'degraded',
      failedBatches: 1,
      attempts: 1,
      successRate: 0,
    })
  })

  it('health goes from up to degraded to down and back, with failingSince', async () => {
    const to = await subscriber(...Array.from({ length: 5 }, () => ({ status: 503 })))
    const { app, endpoint, send } = await delivery({ retry: [...QUICK.slice(0, 4), '1h'] }, address())
    const { id } = await endpoint({ url: to.url })
    const fresh = await app.endpoints.get(id)
    expect(fresh?.health).toMatchObject({ status: 'up', attempts: 0 })
    expect(fresh).not.toHaveProperty('lastSuccessfulDeliveryAt')
    const opened = app.once('endpoint.opened')
    await send(['a'])
    await opened
    const down = await app.endpoints.get(id)
    expect(down?.health).toMatchObject({
      status: 'down',
      breaker: 'open',
      consecutiveFailures: 5,
      attempts: 5,
      successRate: 0,
    })
    expect(down?.health.failingSince).toBeGreaterThan(0)
    const done = app.once('run.done')
    await app.endpoints.resume(id)
    await done
    const [up] = await app.endpoints.list()
    expect(up?.health).toMatchObject({
      status: 'up',
      breaker: 'closed',
      consecutiveFailures: 0,
      attempts: 6,
      successRate: 1 / 6,
    })
    expect(up?.lastSuccessfulDeliveryAt).toBeGreaterThanOrEqual(down?.health.failingSince ?? Infinity)
  })

  it('the health of an endpoint is removed even if it is deleted during a POST', async () => {
    const store = await openStore(address())
    const [asked, removed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const to = await subscriber(async () => {
      asked.resolve()
      await removed.promise
      return { status: 410 }
    })
    const { app, endpoint, send } = await delivery({}, store)
    const { id } = await endpoint({ url: to.url })
    const disabled = app.once('endpoint.disabled')
    const dropped = app.once('run.dropped')
    await send(['a'])
    await asked.promise
    await app.endpoints.delete(id)
    removed.resolve()
    await disabled
    await dropped
    await app.stop()
    const docs = ['endpoint', 'endpoint-fared', 'endpoint-history'] as const
    const left = docs.map(async (one) => (await store.readDocs({ kind: one, ids: undefined, after: '', n: 9 })).docs)
    expect((await Promise.all(left)).flat()).toEqual([])
    expect((await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 9 })).items).toEqual([])
  })

  it('deleting a paused endpoint ends the hold of its lane', async () => {
    const { app, endpoint, send } = await delivery({}, address())
    const { id } = await endpoint({ url: 'http://127.0.0.1:1/hook' })
    await app.endpoints.pause(id)
    const back = app.once('run.deferred')
    await send(['a'])
    await back
    expect(await app.endpoints.delete(id)).toEqual({ dropped: 1 })
    expect((await app.admin.lanes.list()).items).toEqual([])
  })

  it('delete removes the health of the endpoint', async () => {
    const to = await subscriber()
    const store = await openStore(address())
    const { app, endpoint, send } = await delivery({}, store)
    const { id } = await endpoint({ url: to.url })
    const done = app.once('run.done')
    await send(['a'])
    await done
    await app.endpoints.list()
    const written = async (): Promise<number> =>
      (await store.readDocs({ kind: 'endpoint-history', ids: undefined, after: '', n: 9 })).docs.length
    expect(await written()).toBe(1)
    await app.endpoints.delete(id)
    expect(await written()).toBe(0)
  })
})

it('stats are written when the app stops, and add up over processes', async () => {
  const address = ownFile()
  const to = await subscriber()
  for (const n of [1, 2, 3]) {
    const { app, endpoint, send } = await delivery({}, address)
    if (n === 1) await endpoint({ url: to.url })
    const done = app.once('run.done')
    await send([`event-${n}`])
    await done
    await app.stop()
  }
  const { app } = await delivery({}, address)
  expect((await app.endpoints.list()).map(({ health }) => health.attempts)).toEqual([3])
})

it('a batch between two attempts counts as dropped when its endpoint is deleted', async () => {
  const to = await subscriber({ status: 500 })
  const { app, endpoint, send } = await delivery({ retry: ['1h'] })
  const { id } = await endpoint({ url: to.url })
  const retried = app.once('run.retry')
  await send(['a', 'b'])
  await retried
  await expect.poll(async () => (await app.admin.lanes.list()).items[0]?.run?.state).toBe('retrying')
  await send(['c'])
  expect(await app.endpoints.delete(id)).toEqual({ dropped: 3 })
})
