// Tests the stored secrets of endpoints: encrypted, bound to their endpoint and tenant, and re-encrypted by a key
// rotation.
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Signing } from '../../src/deliver/signing.ts'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { github } from '../../src/sources/index.ts'
import { githubHook, SECRET, textOf } from '../receive/scene.ts'
import { delivery, subscriber } from './subscriber.ts'

const [OLD = '', NEW = '', LOST = ''] = [1, 2, 3].map(() => randomBytes(32).toString('base64'))

async function storeOfTest(): Promise<Store> {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  return store
}

function appOn(store: Store, key: string | readonly string[]): Sluice {
  const app = new Sluice({ store, encryptionKey: key, log: false })
  onTestFinished(() => app.stop())
  return app.delivery('versions', { on: 'version.*' }).source('github', github({ secret: SECRET }), { encrypt: true })
}

const added = (app: Sluice, tenant = ''): ReturnType<Sluice['endpoints']['create']> =>
  app.endpoints.create({ url: 'https://hook.example.com/in', tenant })

/** Overwrites the document of an endpoint, as an attacker with access to the store only. */
async function tamper(store: Store, id: string, change: (kept: Kept) => Kept): Promise<Kept> {
  const { docs } = await store.readDocs({ kind: 'endpoint', ids: [id], after: '', n: 1 })
  const [doc] = docs
  if (doc === undefined) throw new Error(`There is no document of ${id}.`)
  const kept = JSON.parse(textOf(doc.body)) as Kept
  const body = Buffer.from(JSON.stringify(change(kept)))
  const writes = [{ kind: 'endpoint', id, ifRev: doc.rev, body }]
  expect((await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind).toBe('written')
  return kept
}

interface Kept {
  readonly tenant: string
  readonly url: string
  readonly signing: Signing
  readonly encrypted64: string
}

const asItIs = (kept: Kept): Kept => kept

async function rotated(app: Sluice): Promise<{ readonly reencrypted: number; readonly unreadable: readonly string[] }> {
  const sum = { reencrypted: 0, unreadable: [] as string[] }
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const page = await app.admin.encryption.rotate(after === undefined ? {} : { after })
    sum.reencrypted += page.reencrypted
    sum.unreadable.push(...page.unreadable)
    after = page.next
  }
  return sum
}

describe('an attacker with the store alone', () => {
  test('cannot give one endpoint the secret of another', async () => {
    const store = await storeOfTest()
    const app = appOn(store, OLD)
    const [one, other] = [await added(app), await added(app)]
    const { encrypted64: ofOne } = await tamper(store, one.id, asItIs)
    const { encrypted64: ofOther } = await tamper(store, other.id, (kept) => ({ ...kept, encrypted64: ofOne }))
    await tamper(store, one.id, (kept) => ({ ...kept, encrypted64: ofOther }))
    for (const { id } of [one, other])
      await expect(app.endpoints.findTarget(id)).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
    // Back in its own document, the ciphertext decrypts again, in an app that has not just read it.
    await tamper(store, one.id, (kept) => ({ ...kept, encrypted64: ofOne }))
    expect((await appOn(store, OLD).endpoints.findTarget(one.id))?.secrets).toEqual([one.secret])
  })

  test('cannot move a secret to another tenant', async () => {
    const store = await storeOfTest()
    const app = appOn(store, OLD)
    const { id } = await added(app, 'acme')
    await tamper(store, id, (kept) => ({ ...kept, tenant: 'evil' }))
    await expect(app.endpoints.findTarget(id)).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
    const { unreadable } = await app.admin.encryption.state()
    expect(unreadable).toEqual([`endpoint ${id}`])
  })
})

describe('an attacker who can write to the store', () => {
  test('cannot redirect the batches and the secret of an endpoint', async () => {
    const [store, theirs, elsewhere] = [await storeOfTest(), await subscriber(), await subscriber()]
    const { app, endpoint, send } = await delivery({ retry: [] }, store, OLD)
    const { id } = await endpoint({ url: theirs.url, signing: { kind: 'bearer' }, secret: 'a-token-of-theirs-1' })
    await tamper(store, id, (kept) => ({ ...kept, url: elsewhere.url }))
    const again = app.once('run.deferred')
    await send(['a'])
    await again
    expect([theirs.got, elsewhere.got]).toEqual([[], []])
    expect(await app.endpoints.deliveries(id)).toMatchObject([
      { attempts: [{ error: "Not the endpoint's fault: ENCRYPTION_KEY_UNKNOWN; the log says more." }] },
    ])
    for (const act of [
      () => app.endpoints.test(id),
      () => app.endpoints.update(id, { name: 'Ada' }),
      () => app.endpoints.rotateSecret(id),
    ])
      await expect(act()).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
  })

  test('cannot make a signing secret be sent as a bearer token', async () => {
    const store = await storeOfTest()
    const app = appOn(store, OLD)
    const { id } = await added(app)
    await tamper(store, id, (kept) => ({ ...kept, signing: { kind: 'bearer' } }))
    await expect(app.endpoints.findTarget(id)).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
  })

  test('an update binds the secrets to the new fields', async () => {
    const [store, before, after] = [await storeOfTest(), await subscriber(), await subscriber()]
    const { app, endpoint, send } = await delivery({}, store, OLD)
    const { id, secret } = await endpoint({ url: before.url })
    await app.endpoints.update(id, { url: after.url, signing: { kind: 'bearer' } })
    await send(['a'])
    await after.reached(1)
    expect(after.got[0]?.headers['authorization']).toBe(`Bearer ${secret}`)
    expect(before.got).toEqual([])
  })
})

describe('a rotation of the encryption key', () => {
  test('decrypts everything with both keys meanwhile, and with the new key alone afterwards', async () => {
    const store = await storeOfTest()
    const before = appOn(store, OLD)
    const endpoints = [await added(before), await added(before, 'acme')]
    expect((await before.fetch(githubHook('{"n":1}'))).status).toBe(202)
    expect(await before.admin.encryption.state()).toMatchObject({ documents: 3, older: 0, unreadable: [] })

    const both = appOn(store, [NEW, OLD])
    expect(await both.admin.encryption.state()).toMatchObject({ documents: 3, older: 3, unreadable: [] })
    for (const { id, secret } of endpoints) expect((await both.endpoints.findTarget(id))?.secrets).toEqual([secret])
    expect(await rotated(both)).toEqual({ reencrypted: 3, unreadable: [] })
    expect(await rotated(both)).toEqual({ reencrypted: 0, unreadable: [] })

    const after = appOn(store, NEW)
    for (const { id, secret } of endpoints) expect((await after.endpoints.findTarget(id))?.secrets).toEqual([secret])
    await expect(appOn(store, OLD).endpoints.findTarget(endpoints[0]?.id ?? '')).rejects.toThrow(
      'ENCRYPTION_KEY_UNKNOWN',
    )
  })

  test('keeps payloads readable and duplicates recognised', async () => {
    const store = await storeOfTest()
    expect((await appOn(store, OLD).fetch(githubHook('{"n":1}'))).status).toBe(202)
    await rotated(appOn(store, [NEW, OLD]))
    const after = appOn(store, NEW)
    const { items } = await after.admin.events.list({})
    expect((await after.admin.events.show(items[0]?.id ?? ''))?.body.text).toBe('{"n":1}')
    const kinds: string[] = []
    after.onAny((name) => void kinds.push(name))
    for (const body of ['{"n":1}', '{"n":2}']) expect((await after.fetch(githubHook(body))).status).toBe(202)
    expect(kinds).toEqual(['event.duplicate', 'event.conflict'])
  })

  test('does not interrupt deliveries, which keep their secrets', async () => {
    const [store, to] = [await storeOfTest(), await subscriber()]
    const one = { window: { every: 0, maxEvents: 1 } }
    const before = await delivery(one, store, OLD)
    const { secret } = await before.endpoint({ url: to.url })
    await before.app.stop()
    const { app, send } = await delivery(one, store, `${NEW},${OLD}`)
    await send(['a', 'b'])
    const [{ reencrypted }] = await Promise.all([rotated(app), send(['c', 'd'])])
    expect(reencrypted).toBe(1)
    await to.reached(4)
    await app.stop()
    const after = await delivery(one, store, NEW)
    await after.send(['e', 'f'])
    await to.reached(6)
    expect(to.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    for (const { body, headers } of to.got) expect(() => new Webhook(secret).verify(body, headers)).not.toThrow()
  })

  test('names and keeps values under an unknown key', async () => {
    const store = await storeOfTest()
    const { id } = await added(appOn(store, LOST))
    await added(appOn(store, OLD))
    expect(await rotated(appOn(store, [NEW, OLD]))).toEqual({ reencrypted: 1, unreadable: [`endpoint ${id}`] })
    expect((await appOn(store, LOST).endpoints.findTarget(id))?.secrets).toHaveLength(1)
  })

  test("does not undo a concurrent rotation of an endpoint's secret", async () => {
    const store = await storeOfTest()
    const { id } = await added(appOn(store, OLD))
    let another = ''
    const slow: Store = new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name)
        if (name !== 'readDocs') return typeof member === 'function' ? (member.bind(target) as unknown) : member
        return async (call: Parameters<Store['readDocs']>[0]) => {
          const reply = await target.readDocs(call)
          // Runs between reading the page and writing it.
          if (call.kind === 'endpoint' && call.ids === undefined && another === '')
            another = (await appOn(store, [NEW, OLD]).endpoints.rotateSecret(id)).secret
          return reply
        }
      },
    })
    expect(await rotated(appOn(slow, [NEW, OLD]))).toEqual({ reencrypted: 0, unreadable: [] })
    expect((await appOn(store, NEW).endpoints.findTarget(id))?.secrets[0]).toBe(another)
  })

  test('requires a key and a valid cursor', async () => {
    const store = await storeOfTest()
    const none = new Sluice({ store, log: false })
    onTestFinished(() => none.stop())
    await expect(none.admin.encryption.rotate()).rejects.toMatchObject({ code: 'CONFLICT' })
    for (const after of ['', '9:', 'x', '4:a'])
      await expect(appOn(store, OLD).admin.encryption.rotate({ after })).rejects.toMatchObject({
        code: 'REQUEST_INVALID',
      })
  })
})
