// Secrets of endpoints in the store: under the master key, bound to their row and tenant, and under another after its exchange.
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test } from 'vitest'
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
  const app = new Sluice({ store, key, log: false })
  onTestFinished(() => app.stop())
  return app.delivery('versions', { on: 'version.*' }).source('github', github({ secret: SECRET }), { encrypt: true })
}

const added = (app: Sluice, tenant = ''): ReturnType<Sluice['endpoints']['add']> =>
  app.endpoints.add({ url: 'https://hook.example.com/in', tenant })

/** The document of an endpoint, written over by somebody who has the store alone. */
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
  readonly sealed64: string
}

const asItIs = (kept: Kept): Kept => kept

async function rotated(app: Sluice): Promise<{ readonly resealed: number; readonly unreadable: readonly string[] }> {
  const sum = { resealed: 0, unreadable: [] as string[] }
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const page = await app.masterKey.rotate(after === undefined ? {} : { after })
    sum.resealed += page.resealed
    sum.unreadable.push(...page.unreadable)
    after = page.next
  }
  return sum
}

describe('who has the store alone', () => {
  test('cannot give one endpoint the secret of another', async () => {
    const store = await storeOfTest()
    const app = appOn(store, OLD)
    const [one, other] = [await added(app), await added(app)]
    const { sealed64: ofOne } = await tamper(store, one.id, asItIs)
    const { sealed64: ofOther } = await tamper(store, other.id, (kept) => ({ ...kept, sealed64: ofOne }))
    await tamper(store, one.id, (kept) => ({ ...kept, sealed64: ofOther }))
    for (const { id } of [one, other])
      await expect(app.endpoints.addressed(id)).rejects.toMatchObject({ code: 'SEAL_UNKNOWN' })
    // Back in its own row it is what it was, for who has not just looked.
    await tamper(store, one.id, (kept) => ({ ...kept, sealed64: ofOne }))
    expect((await appOn(store, OLD).endpoints.addressed(one.id))?.secrets).toEqual([one.secret])
  })

  test('cannot make it that of another tenant', async () => {
    const store = await storeOfTest()
    const app = appOn(store, OLD)
    const { id } = await added(app, 'acme')
    await tamper(store, id, (kept) => ({ ...kept, tenant: 'evil' }))
    await expect(app.endpoints.addressed(id)).rejects.toMatchObject({ code: 'SEAL_UNKNOWN' })
    const { unreadable } = await app.masterKey.state()
    expect(unreadable).toEqual([`endpoint ${id}`])
  })
})

describe('the master key is exchanged', () => {
  test('everything opens under both while it is under way, and under the new one alone when it is done', async () => {
    const store = await storeOfTest()
    const before = appOn(store, OLD)
    const endpoints = [await added(before), await added(before, 'acme')]
    expect((await before.fetch(githubHook('{"n":1}'))).status).toBe(202)
    expect(await before.masterKey.state()).toMatchObject({ documents: 3, older: 0, unreadable: [] })

    const both = appOn(store, [NEW, OLD])
    expect(await both.masterKey.state()).toMatchObject({ documents: 3, older: 3, unreadable: [] })
    for (const { id, secret } of endpoints) expect((await both.endpoints.addressed(id))?.secrets).toEqual([secret])
    expect(await rotated(both)).toEqual({ resealed: 3, unreadable: [] })
    expect(await rotated(both)).toEqual({ resealed: 0, unreadable: [] })

    const after = appOn(store, NEW)
    for (const { id, secret } of endpoints) expect((await after.endpoints.addressed(id))?.secrets).toEqual([secret])
    await expect(appOn(store, OLD).endpoints.addressed(endpoints[0]?.id ?? '')).rejects.toThrow('SEAL_UNKNOWN')
  })

  test('a payload is read after it, and a re-send is known as the same', async () => {
    const store = await storeOfTest()
    expect((await appOn(store, OLD).fetch(githubHook('{"n":1}'))).status).toBe(202)
    await rotated(appOn(store, [NEW, OLD]))
    const after = appOn(store, NEW)
    const { items } = await after.stored.list({})
    expect((await after.stored.show(items[0]?.id ?? ''))?.body.text).toBe('{"n":1}')
    const kinds: string[] = []
    after.events.onAny((name) => void kinds.push(name))
    for (const body of ['{"n":1}', '{"n":2}']) expect((await after.fetch(githubHook(body))).status).toBe(202)
    expect(kinds).toEqual(['event.duplicate', 'event.conflict'])
  })

  test('deliveries go on meanwhile, and each is signed by the secret that its owner knows', async () => {
    const [store, to] = [await storeOfTest(), await subscriber()]
    const one = { window: { every: 0, maxEvents: 1 } }
    const before = await delivery(one, store, OLD)
    const { secret } = await before.endpoint({ url: to.url })
    await before.app.stop()
    const { app, send } = await delivery(one, store, `${NEW},${OLD}`)
    await send(['a', 'b'])
    const [{ resealed }] = await Promise.all([rotated(app), send(['c', 'd'])])
    expect(resealed).toBe(1)
    await to.reached(4)
    await app.stop()
    const after = await delivery(one, store, NEW)
    await after.send(['e', 'f'])
    await to.reached(6)
    expect(to.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    for (const { body, headers } of to.got) expect(() => new Webhook(secret).verify(body, headers)).not.toThrow()
  })

  test('what was sealed under a key that nobody gave is named, and stays as it is', async () => {
    const store = await storeOfTest()
    const { id } = await added(appOn(store, LOST))
    await added(appOn(store, OLD))
    expect(await rotated(appOn(store, [NEW, OLD]))).toEqual({ resealed: 1, unreadable: [`endpoint ${id}`] })
    expect((await appOn(store, LOST).endpoints.addressed(id))?.secrets).toHaveLength(1)
  })

  test('who rotates an endpoint in the meantime is not undone', async () => {
    const store = await storeOfTest()
    const { id } = await added(appOn(store, OLD))
    let another = ''
    const slow: Store = new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name)
        if (name !== 'readDocs') return typeof member === 'function' ? (member.bind(target) as unknown) : member
        return async (call: Parameters<Store['readDocs']>[0]) => {
          const reply = await target.readDocs(call)
          // Between reading the page and writing it.
          if (call.kind === 'endpoint' && call.ids === undefined && another === '')
            another = (await appOn(store, [NEW, OLD]).endpoints.rotateSecret(id)).secret
          return reply
        }
      },
    })
    expect(await rotated(appOn(slow, [NEW, OLD]))).toEqual({ resealed: 0, unreadable: [] })
    expect((await appOn(store, NEW).endpoints.addressed(id))?.secrets[0]).toBe(another)
  })

  test('needs a key, and a place that a page has named', async () => {
    const store = await storeOfTest()
    const none = new Sluice({ store, log: false })
    onTestFinished(() => none.stop())
    await expect(none.masterKey.rotate()).rejects.toMatchObject({ code: 'NOT_POSSIBLE' })
    for (const after of ['', '9:', 'x', '4:a'])
      await expect(appOn(store, OLD).masterKey.rotate({ after })).rejects.toMatchObject({ code: 'REQUEST_INVALID' })
  })
})
