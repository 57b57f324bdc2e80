// Events that a run publishes for an encrypted source are encrypted too. An unrouted event waits for a process with its key.
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
  it('under the name of an encrypted source is encrypted in the store, and clear for the next run', async () => {
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

/** An event of an encrypted source that could not be routed. */
async function marked(): Promise<{ readonly store: Store; readonly clock: VirtualClock }> {
  const clock = new VirtualClock(NOW)
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  const flow = { on: 'github/**', key: notYet, run: () => {} }
  const { app } = await opened((one) => sealed(one).flow('f', flow), { encryptionKey: KEY, store })
  expect((await app.fetch(githubHook(BODY))).status).toBe(202)
  return { store, clock }
}

describe('an unrouted event', () => {
  const ask = { n: 10, lease: 1_000, reasons: ['key-failed'], flows: ['f'] } as const

  it('is decrypted by a process with the key, and left for it by a process without', async () => {
    const { store, clock } = await marked()
    const by = (key: string): Store => encryptedStore(store, new Keyring([key]), of('github'))
    const other = by(randomBytes(32).toString('base64'))
    expect((await other.claimUnrouted(ask)).unrouted).toEqual([])
    clock.advance(1_001)
    const { unrouted } = await by(KEY).claimUnrouted(ask)
    expect(unrouted.map(({ flow, event }) => [flow, textOf(event.body)])).toEqual([['f', BODY]])
    // It is still there, because nothing was done with it.
    expect((await store.find({ kind: 'unrouted', filter: {}, cursor: '', n: 10 })).items).toHaveLength(1)
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

describe('somebody who has only the store', () => {
  it('cannot move the payload of one tenant to another, nor the request of one event to another', async () => {
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

describe('a forged clear event of a source with encrypt', () => {
  const forged = { source: 's', attributes: '', body: Buffer.from('forged'), request: Buffer.from('forged') }

  it('is returned by no call', async () => {
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

  it('is not published if it is delayed', async () => {
    const { app, store, clock } = await opened((one) => sealed(one), { encryptionKey: KEY })
    const plain = new Sluice({ store, clock, encryptionKey: KEY, log: false })
    onTestFinished(() => plain.stop())
    // It is written by an app that encrypts nothing, as by somebody with access to the store.
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

describe('bodies that are not encrypted', () => {
  it('are read with one call, and one that only looks encrypted is returned unchanged', async () => {
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

describe('the data key of payloads', () => {
  it('is one key, even if two processes first need it at the same moment', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const [one, other] = [1, 2].map(() => new DataKeys(store, new Keyring([KEY])))
    const seals = await Promise.all([one?.encryptionKeyring(), other?.encryptionKeyring()])
    const [first, second] = seals.map((seal) => seal?.encryptDeterministic(Buffer.from(BODY), 'p'))
    expect(first).toEqual(second)
    expect((await store.readDocs({ kind: 'data-key', ids: undefined, after: '', n: 9 })).docs).toHaveLength(1)
  })

  it('that another process has created since is found', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const newer = randomBytes(32).toString('base64')
    const both = new DataKeys(store, new Keyring([newer, KEY]))
    const own = await both.encryptionKeyring()
    // This process does not have the key of the first one, and creates another data key.
    const theirs = await new DataKeys(store, new Keyring([KEY])).encryptionKeyring()
    const theirBytes = theirs.encrypt(Buffer.from(BODY), 'p')
    expect(own.canDecrypt(theirBytes)).toBe(false)
    expect((await both.decrypt(theirBytes, 'p')).toString()).toBe(BODY)
  })

  it('is not available to a process that has only the previous key', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const newer = randomBytes(32).toString('base64')
    const app = new Sluice({ store, encryptionKey: [newer, KEY], log: false })
    onTestFinished(() => app.stop())
    await new DataKeys(store, new Keyring([KEY])).encryptionKeyring()
    expect(await app.admin.encryption.rotate()).toMatchObject({ reencrypted: 1 })
    await expect(new DataKeys(store, new Keyring([KEY])).encryptionKeyring()).rejects.toMatchObject({
      code: 'ENCRYPTION_KEY_UNKNOWN',
    })
  })
})
