// D4: Sluice's own failures cost the endpoint nothing: no wrong POST and no attempt, and operators are notified.
import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber } from './subscriber.ts'

it("Sluice's own failure uses no attempt, and is listed among the attempts", async () => {
  const store = await openStore('memory:')
  const to = await subscriber()
  const one = await delivery({ retry: [] }, store)
  const { id } = await one.endpoint({ url: to.url })
  await one.app.stop()
  // This app cannot decrypt the secrets.
  const other = await delivery({ retry: [] }, store, randomBytes(32).toString('base64'))
  const again = other.app.once('run.deferred')
  await other.send(['a'])
  expect(await again).toMatchObject({ after: 5_000 })
  expect(to.got).toEqual([])
  expect((await other.app.admin.deadLetters.list()).items).toEqual([])
  const error = "Not the endpoint's fault: ENCRYPTION_KEY_UNKNOWN; the log says more."
  await expect
    .poll(() => other.app.endpoints.deliveries(id))
    .toMatchObject([{ status: 'PENDING', attemptCount: 0, lastError: error, attempts: [{ error }] }])
  expect((await other.app.endpoints.get(id))?.health).toMatchObject({
    status: 'degraded',
    why: error,
    consecutiveFailures: 0,
    attempts: 0,
    failedBatches: 0,
  })
})

it('a batch that cannot be signed is not sent, and uses no attempt', async () => {
  const store = await openStore('memory:')
  const to = await subscriber()
  const { app, endpoint, send } = await delivery({ retry: [] }, store)
  const { id } = await endpoint({ url: to.url })
  // Written as another version might have.
  const [doc] = (await store.readDocs({ kind: 'endpoint', ids: [id], after: '', n: 1 })).docs
  const kept = JSON.parse(Buffer.from(doc?.body ?? '').toString()) as object
  const body = Buffer.from(JSON.stringify({ ...kept, signing: { kind: 'none' } }))
  const writes = [{ kind: 'endpoint', id, ifRev: doc?.rev ?? 0, body }]
  await store.writeDocs({ writes, raiseRoutes: true, audit: undefined })
  const again = app.once('run.deferred')
  await send(['a'])
  expect(await again).toMatchObject({ after: 5_000 })
  expect(to.got).toEqual([])
  expect((await app.admin.deadLetters.list()).items).toEqual([])
})

it('a delivered batch is not sent again when its bookkeeping fails', async () => {
  const store = await openStore('memory:')
  const to = await subscriber()
  const isFaring = ({ writes }: Parameters<typeof store.writeDocs>[0]): boolean =>
    writes.some(({ kind }) => kind === 'endpoint-fared')
  const writeDocs = store.writeDocs.bind(store)
  store.writeDocs = (call) => (isFaring(call) ? Promise.reject(new Error('no disk')) : writeDocs(call))
  const { app, endpoint, send } = await delivery({ retry: ['30ms', '30ms'] }, store)
  await endpoint({ url: to.url })
  to.answers.push({ status: 500 })
  const done = app.once('run.done')
  await send(['a'])
  await done
  expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a']])
})

it('a 410 is retried soon if the store cannot record it', async () => {
  const store = await openStore('memory:')
  const to = await subscriber({ status: 410 })
  const writeDocs = store.writeDocs.bind(store)
  store.writeDocs = (call) =>
    call.writes.some(({ kind }) => kind === 'endpoint-fared') ? Promise.reject(new Error('no disk')) : writeDocs(call)
  const { app, endpoint, send } = await delivery({}, store)
  const { id } = await endpoint({ url: to.url })
  const again = app.once('run.deferred')
  await send(['a'])
  expect(await again).toMatchObject({ after: 5_000 })
  await expect.poll(async () => (await app.admin.lanes.get('versions', id))?.run?.state).toBe('snoozed')
  expect((await app.admin.lanes.get('versions', id))?.hold).toBeUndefined()
  expect(to.got).toHaveLength(1)
})
