// Tests an endpoint's own headers, which may contain a password: encrypted in the store, listed by name, sent
// unchanged.
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { openStore, type Store } from '../../src/index.ts'
import { delivery, subscriber } from './subscriber.ts'

const [OLD = '', NEW = ''] = [1, 2].map(() => randomBytes(32).toString('base64'))
const PASSWORD = 'Bearer a-password-of-theirs'

async function storeOfTest(): Promise<Store> {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  return store
}

async function documentOf(store: Store, id: string): Promise<{ readonly rev: number; readonly text: string }> {
  const { docs } = await store.readDocs({ kind: 'endpoint', ids: [id], after: '', n: 1 })
  return { rev: docs[0]?.rev ?? 0, text: Buffer.from(docs[0]?.body ?? '').toString() }
}

test('headers are sent, but neither the API nor the store shows their values', async () => {
  const [store, to] = [await storeOfTest(), await subscriber()]
  const { app, endpoint, send } = await delivery({}, store)
  const added = await endpoint({ url: to.url, headers: { Authorization: PASSWORD, 'x-team': 'a' } })
  const { id } = added
  await send(['a'])
  await to.reached(1)
  expect(to.got[0]?.headers).toMatchObject({ authorization: PASSWORD, 'x-team': 'a' })
  const answers = [
    added,
    await app.endpoints.get(id),
    ...(await app.endpoints.list()),
    await app.endpoints.update(id, { name: 'Ada' }),
    await app.endpoints.pause(id),
    await app.endpoints.resume(id),
    await app.endpoints.rotateSecret(id),
    await app.endpoints.prove(id),
    await app.endpoints.enable(id, { from: 'backlog' }),
  ]
  for (const answer of answers) expect(answer).toMatchObject({ headers: ['authorization', 'x-team'] })
  expect(JSON.stringify(answers)).not.toContain('password')
  expect((await documentOf(store, id)).text).not.toContain('password')
  await send(['b'])
  await to.reached(2)
  expect(to.got[1]?.headers).toMatchObject({ authorization: PASSWORD, 'x-team': 'a' })
})

test('an update changes, adds or removes one header and keeps the others', async () => {
  const to = await subscriber()
  const { app, endpoint, send } = await delivery()
  const { id } = await endpoint({ url: to.url, headers: { authorization: PASSWORD, 'x-team': 'a', 'x-old': '1' } })
  const changed = await app.endpoints.update(id, { headers: { 'X-Team': 'b', 'x-old': null, 'x-new': '2' } })
  expect(changed.headers.toSorted()).toEqual(['authorization', 'x-new', 'x-team'])
  await send(['a'])
  await to.reached(1)
  expect(to.got[0]?.headers).toMatchObject({ authorization: PASSWORD, 'x-team': 'b', 'x-new': '2' })
  expect(to.got[0]?.headers).not.toHaveProperty('x-old')
  for (const headers of [{ host: 'x' }, { 'x-a': '1', 'X-A': '2' }, { 'x-a': 1 }, null, 'x-a', ['x-a']])
    await expect(app.endpoints.update(id, { headers: headers as never })).rejects.toThrow(/headers/)
})

test('headers are re-encrypted by a key rotation', async () => {
  const store = await storeOfTest()
  const before = await delivery({}, store, OLD)
  const { id } = await before.endpoint({ url: 'http://127.0.0.1:1/', headers: { authorization: PASSWORD } })
  await before.app.stop()
  const both = await delivery({}, store, `${NEW},${OLD}`)
  for (let next: string | undefined = '0:'; next !== undefined;)
    ({ next } = await both.app.admin.encryption.rotate({ after: next }))
  await both.app.stop()
  const { app } = await delivery({}, store, NEW)
  expect(await app.endpoints.findTarget(id)).toMatchObject({ headers: { authorization: PASSWORD } })
})

test('an attacker with the store alone cannot change the sent headers', async () => {
  const [store, to] = [await storeOfTest(), await subscriber()]
  const { app, endpoint } = await delivery({}, store)
  const { id } = await endpoint({ url: to.url, headers: { 'x-team': 'a' } })
  const { rev, text } = await documentOf(store, id)
  const body = Buffer.from(JSON.stringify({ ...(JSON.parse(text) as object), headers: { 'x-team': 'evil' } }))
  await store.writeDocs({ writes: [{ kind: 'endpoint', id, ifRev: rev, body }], raiseRoutes: true, audit: undefined })
  expect(await app.endpoints.findTarget(id)).toMatchObject({ headers: { 'x-team': 'a' } })
})
