// What a run publishes for a sealed source is sealed as well, and a mark that cannot be opened waits for who can.
import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { DataKeys } from '../../src/crypto/data-keys.ts'
import { computeIdentity, laneId } from '../../src/model/identity.ts'
import { Keyring } from '../../src/crypto/keyring.ts'
import { encryptedStore, type EncryptedSources } from '../../src/crypto/encrypted-store.ts'
import { github } from '../../src/sources/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { eventsIn, githubHook, KEY, NOW, opened, SECRET, textOf } from './scene.ts'

const BODY = JSON.stringify({ text: 'nobody reads this' })

function of(...names: readonly string[]): EncryptedSources {
  const isOne = (source: string): boolean => names.includes(source)
  return { encrypts: isOne, requires: isOne, requiresAny: names.length > 0 }
}

function sealed(app: Sluice): Sluice {
  return app.source('github', github({ secret: SECRET }), { encrypt: true })
}

describe('what a run publishes', () => {
  it('under the name of a sealed source is unreadable in the store, and as it was to the next run', async () => {
    const store = await openStore('memory:')
    const texts: string[] = []
    const app = sealed(new Sluice({ store, encryptionKey: KEY, log: false }))
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
    app.on('run.done', ({ flow }) => (flow === 'second' ? done.resolve() : undefined))
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
  const { app } = await opened((one) => sealed(one).flow('f', flow), { encryptionKey: KEY, store })
  expect((await app.fetch(githubHook(BODY))).status).toBe(202)
  return { store, clock }
}

describe('a mark', () => {
  const ask = { n: 10, lease: 1_000, reasons: ['key-failed'], flows: ['f'] } as const

  it('is opened for who has the key, and left for that one by who has not', async () => {
    const { store, clock } = await marked()
    const by = (key: string): Store => encryptedStore(store, new Keyring([key]), of('github'))
    const other = by(randomBytes(32).toString('base64'))
    expect((await other.claimUnrouted(ask)).unrouted).toEqual([])
    clock.advance(1_001)
    const { unrouted: marks } = await by(KEY).claimUnrouted(ask)
    expect(marks.map(({ flow, event }) => [flow, textOf(event.body)])).toEqual([['f', BODY]])
    // It is still there, for nothing has been done about it.
    expect((await store.find({ kind: 'marks', filter: {}, cursor: '', n: 10 })).items).toHaveLength(1)
  })
})

async function appended(into: Store, id: string, more: object): Promise<void> {
  const bytes = { body: Buffer.from('body'), request: Buffer.from('request') }
  const event = { id, source: 's', type: 't', time: NOW, tenant: 'acme', subject: '', attributes: '', ...bytes }
  const routed = { identity: computeIdentity('s', 'acme', id), dedupeFor: 1_000, placements: [], unrouted: [] }
  const { routes } = await into.readDocs({ kind: 'none', ids: undefined, after: '', n: 1 })
  const reply = await into.append({ routes, events: [{ ...routed, ...event, ...more }] })
  expect(reply.results).toEqual([{ kind: 'stored' }])
}

describe('who has the store alone', () => {
  it('cannot pass the payload of one tenant off as that of another, nor the request of one event as that of another', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const through = encryptedStore(store, new Keyring([KEY]), of('s'))
    await appended(through, 'a', {})
    const read = async (id: string): Promise<string> =>
      textOf((await through.get({ kind: 'events', id })).item?.body ?? Buffer.from('nothing'))
    expect(await read('a')).toBe('body')
    const { item } = await store.get({ kind: 'events', id: 'a' })
    const { body, request, attributes } = item ?? {}
    await appended(store, 'b', { body, request, attributes })
    await appended(store, 'c', { body, request, attributes, tenant: 'evil' })
    for (const id of ['b', 'c']) await expect(read(id)).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
    expect((await through.readBodies({ events: ['a'] })).bodies.map(textOf)).toEqual(['body'])
    await expect(through.readBodies({ events: ['c'] })).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
  })
})

describe('a forged event in clear of a source that says encrypt', () => {
  const forged = { source: 's', attributes: '', body: Buffer.from('forged'), request: Buffer.from('forged') }

  it('is opened by no call', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const through = encryptedStore(store, new Keyring([KEY]), of('s'))
    const place = { lane: laneId('f', 'k'), flow: 'f', key: 'k', group: '', cancel: false }
    const window = { quiet: 0, max: 0, maxEvents: 9, maxBytes: 999, jitter: 0, leading: false }
    await appended(store, 'a', { ...forged, placements: [{ ...place, ...window }] })
    await appended(store, 'b', { ...forged, unrouted: [{ flow: 'f', reason: 'fan-out', error: '' }] })
    await appended(store, 'open', { ...forged, source: 'open' })
    for (const id of ['a', 'b']) {
      await expect(through.get({ kind: 'events', id })).rejects.toMatchObject({ code: 'NOT_ENCRYPTED' })
      await expect(through.readBodies({ events: ['open', id] })).rejects.toMatchObject({ code: 'NOT_ENCRYPTED' })
    }
    expect(
      (await through.readBodies({ events: ['open', 'nobody'] })).bodies.map((body) => body && textOf(body)),
    ).toEqual(['forged', undefined])
    const caps = {
      maxEvents: 9,
      maxBytes: 999,
      take: 'all',
      lease: 1_000,
      blockOnCrash: false,
      maxPerGroup: undefined,
    } as const
    const claim = [{ flow: 'f', maxRuns: 1, maxFailing: 1, maxSuspects: 1, ...caps }]
    const { claimed } = await through.settleAndClaim({
      process: 'p',
      request: 1,
      routes: 9,
      settle: [],
      claim,
      budget: 999,
    })
    expect(claimed.map(({ events }) => events.map(({ body }) => body))).toEqual([[undefined]])
    expect((await through.claimUnrouted({ n: 9, lease: 1_000, reasons: ['fan-out'], flows: ['f'] })).unrouted).toEqual(
      [],
    )
  })

  it('that waits for its time is not published', async () => {
    const { app, store, clock } = await opened((one) => sealed(one), { encryptionKey: KEY })
    const plain = new Sluice({ store, clock, encryptionKey: KEY, log: false })
    onTestFinished(() => plain.stop())
    // Written by an app that encrypts nothing, as by somebody who can write to the store.
    for (const source of ['github', 'app'])
      await plain.publish({ id: source, source, type: 'push', data: 'forged' }, { at: NOW + 1 })
    await app.start()
    const dead = app.once('run.retry')
    clock.advance(1)
    expect((await dead).error).toContain('NOT_ENCRYPTED')
    await expect.poll(() => app.admin.events.show('app')).toMatchObject({ source: 'app' })
    expect(await app.admin.events.show('github')).toBeUndefined()
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
    const through = encryptedStore(counted, new Keyring([KEY]), of())
    const { bodies } = await through.readBodies({ events: ['a', 'b'] })
    expect(bodies.map((body) => body?.length)).toEqual([4, 100])
    expect(got).toEqual(['b'])
  })
})

describe('the key that payloads are sealed under', () => {
  it('is one, also when two processes need it first at the same moment', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const [one, other] = [1, 2].map(() => new DataKeys(store, new Keyring([KEY])))
    const seals = await Promise.all([one?.encryptionKeyring(), other?.encryptionKeyring()])
    const [first, second] = seals.map((seal) => seal?.encryptDeterministic(Buffer.from(BODY), 'p'))
    expect(first).toEqual(second)
    expect((await store.readDocs({ kind: 'data-key', ids: undefined, after: '', n: 9 })).docs).toHaveLength(1)
  })

  it('that another process has made since is found', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const newer = randomBytes(32).toString('base64')
    const both = new DataKeys(store, new Keyring([newer, KEY]))
    const own = await both.encryptionKeyring()
    // It has not the key that the first one is under, and makes one of its own.
    const theirs = await new DataKeys(store, new Keyring([KEY])).encryptionKeyring()
    const theirBytes = theirs.encrypt(Buffer.from(BODY), 'p')
    expect(own.canDecrypt(theirBytes)).toBe(false)
    expect((await both.decrypt(theirBytes, 'p')).toString()).toBe(BODY)
  })

  it('is not to be had for who has only the key before', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const newer = randomBytes(32).toString('base64')
    const app = new Sluice({ store, encryptionKey: [newer, KEY], log: false })
    onTestFinished(() => app.stop())
    await new DataKeys(store, new Keyring([KEY])).encryptionKeyring()
    expect(await app.admin.encryption.rotate()).toMatchObject({ resealed: 1 })
    await expect(new DataKeys(store, new Keyring([KEY])).encryptionKeyring()).rejects.toMatchObject({
      code: 'ENCRYPTION_KEY_UNKNOWN',
    })
  })
})
