// What a run publishes for a sealed source is sealed as well, and a mark that cannot be opened waits for who can.
import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { DataKeys } from '../../src/data-keys.ts'
import { identity } from '../../src/model/identity.ts'
import { Seal } from '../../src/seal.ts'
import { sealedStore } from '../../src/sealed-store.ts'
import { github } from '../../src/sources/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { eventsIn, githubHook, KEY, NOW, opened, SECRET, textOf } from './scene.ts'

const BODY = JSON.stringify({ text: 'nobody reads this' })

function sealed(app: Sluice): Sluice {
  return app.source('github', github({ secret: SECRET }), { encrypt: true })
}

describe('what a run publishes', () => {
  it('under the name of a sealed source is unreadable in the store, and as it was to the next run', async () => {
    const store = await openStore('memory:')
    const texts: string[] = []
    const app = sealed(new Sluice({ store, key: KEY, log: false }))
      .flow('first', {
        on: 'app/ping',
        run: (run) => run.publish({ source: 'github', type: 'told', body: BODY, subject: 's' }),
      })
      .flow('second', { on: 'github/told', run: ({ events }) => void texts.push(events[0]?.text ?? '') })
    onTestFinished(async () => {
      await app.stop()
      await store.close()
    })
    await app.start()
    const done = Promise.withResolvers<void>()
    app.events.on('run.done', ({ flow }) => (flow === 'second' ? done.resolve() : undefined))
    await app.publish({ type: 'ping' })
    await done.promise
    const told = (await eventsIn(store)).find(({ type }) => type === 'told')
    expect(textOf(told?.body)).not.toContain('nobody')
    expect(told?.attributes).toContain('sluicesealed')
    expect(texts).toEqual([BODY])
  })
})

const notYet = (): never => {
  throw new Error('not yet')
}

/** An event of a sealed source that could not be routed. */
async function marked(): Promise<{ readonly store: Store; readonly clock: VirtualClock }> {
  const clock = new VirtualClock(NOW)
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  const flow = { on: 'github/**', key: notYet, run: () => {} }
  const { app } = await opened((one) => sealed(one).flow('f', flow), { key: KEY, store })
  expect((await app.fetch(githubHook(BODY))).status).toBe(202)
  return { store, clock }
}

describe('a mark', () => {
  const ask = { n: 10, lease: 1_000, reasons: ['key-failed'], flows: ['f'] } as const

  it('is opened for who has the key, and left for that one by who has not', async () => {
    const { store, clock } = await marked()
    const by = (key: string): Store => sealedStore(store, new Seal([key]), (name) => name === 'github')
    const other = by(randomBytes(32).toString('base64'))
    expect((await other.unrouted(ask)).marks).toEqual([])
    clock.advance(1_001)
    const { marks } = await by(KEY).unrouted(ask)
    expect(marks.map(({ flow, event }) => [flow, textOf(event.body)])).toEqual([['f', BODY]])
    // It is still there, for nothing has been done about it.
    expect((await store.find({ kind: 'marks', filter: {}, cursor: '', n: 10 })).items).toHaveLength(1)
  })
})

async function appended(into: Store, id: string, more: object): Promise<void> {
  const bytes = { body: Buffer.from('body'), request: Buffer.from('request') }
  const event = { id, source: 's', type: 't', time: NOW, tenant: 'acme', subject: '', attributes: '', ...bytes }
  const routed = { identity: identity('s', 'acme', id), dedupeFor: 1_000, places: [], marks: [] }
  const { routes } = await into.readDocs({ kind: 'none', ids: undefined, after: '', n: 1 })
  const reply = await into.append({ routes, events: [{ ...routed, ...event, ...more }] })
  expect(reply.results).toEqual([{ kind: 'stored' }])
}

describe('who has the store alone', () => {
  it('cannot pass the payload of one tenant off as that of another, nor the request of one event as that of another', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const through = sealedStore(store, new Seal([KEY]), () => true)
    await appended(through, 'a', {})
    const read = async (id: string): Promise<string> =>
      textOf((await through.get({ kind: 'events', id })).item?.body ?? Buffer.from('nothing'))
    expect(await read('a')).toBe('body')
    const { item } = await store.get({ kind: 'events', id: 'a' })
    const { body, request, attributes } = item ?? {}
    await appended(store, 'b', { body, request, attributes })
    await appended(store, 'c', { body, request, attributes, tenant: 'evil' })
    for (const id of ['b', 'c']) await expect(read(id)).rejects.toMatchObject({ code: 'SEAL_UNKNOWN' })
    expect((await through.bodies({ events: ['a'] })).bodies.map(textOf)).toEqual(['body'])
    await expect(through.bodies({ events: ['c'] })).rejects.toMatchObject({ code: 'SEAL_UNKNOWN' })
  })
})

describe('bodies that are not sealed', () => {
  it('are read by the one call that was made, and one that only looks sealed is given as it is', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    await appended(store, 'a', {})
    await appended(store, 'b', { body: Buffer.alloc(100, 1) })
    const got: string[] = []
    const counted = new Proxy(store, {
      get: (target, name): unknown => {
        const member = Reflect.get(target, name) as unknown
        if (name !== 'get') return typeof member === 'function' ? member.bind(target) : member
        return (call: Parameters<Store['get']>[0]) => (got.push(call.id), target.get(call))
      },
    })
    const through = sealedStore(counted, new Seal([KEY]), () => true)
    const { bodies } = await through.bodies({ events: ['a', 'b'] })
    expect(bodies.map((body) => body?.length)).toEqual([4, 100])
    expect(got).toEqual(['b'])
  })
})

describe('the key that payloads are sealed under', () => {
  it('is one, also when two processes need it first at the same moment', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const [one, other] = [1, 2].map(() => new DataKeys(store, new Seal([KEY])))
    const seals = await Promise.all([one?.toSeal(), other?.toSeal()])
    const [first, second] = seals.map((seal) => seal?.sealAlike(Buffer.from(BODY), 'p'))
    expect(first).toEqual(second)
    expect((await store.readDocs({ kind: 'data-key', ids: undefined, after: '', n: 9 })).docs).toHaveLength(1)
  })

  it('that another process has made since is found', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const newer = randomBytes(32).toString('base64')
    const both = new DataKeys(store, new Seal([newer, KEY]))
    const own = await both.toSeal()
    // It has not the key that the first one is under, and makes one of its own.
    const theirs = await new DataKeys(store, new Seal([KEY])).toSeal()
    const theirBytes = theirs.seal(Buffer.from(BODY), 'p')
    expect(own.has(theirBytes)).toBe(false)
    expect((await both.open(theirBytes, 'p')).toString()).toBe(BODY)
  })

  it('is not to be had for who has only the key before', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const newer = randomBytes(32).toString('base64')
    const app = new Sluice({ store, key: [newer, KEY], log: false })
    onTestFinished(() => app.stop())
    await new DataKeys(store, new Seal([KEY])).toSeal()
    expect(await app.masterKey.rotate()).toMatchObject({ resealed: 1 })
    await expect(new DataKeys(store, new Seal([KEY])).toSeal()).rejects.toMatchObject({ code: 'SEAL_UNKNOWN' })
  })
})
