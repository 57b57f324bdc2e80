// Tests deliveries through the app: which endpoint gets which events, in what order, under which id, and when not.
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/app/sluice.ts'
import { openStore } from '../../src/store/open.ts'
import { testApp } from '../../src/testing/index.ts'
import { delivery, subscriber } from './subscriber.ts'
import { ownFile } from '../temporary-folder.ts'

const QUICK = ['30ms', '30ms', '30ms', '30ms', '30ms', '30ms', '30ms'] as const

describe.each(['memory:', 'sqlite:'])('on %s', (store) => {
  it('D1 D2 posts signed batches in the order of arrival', async () => {
    const to = await subscriber()
    const { endpoint, send } = await delivery({ window: { every: '50ms', maxEvents: 3 } }, fresh(store))
    const { secret } = await endpoint({ url: to.url })
    await send(['a', 'b', 'c', 'd', 'e'])
    await expect.poll(() => to.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(to.got.length).toBeGreaterThan(1)
    expect(to.got.every(({ ids }) => ids.length <= 3)).toBe(true)
    for (const { headers, body } of to.got) {
      expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'versions' })
      expect(() => new Webhook(secret).verify(body.replace('version.new', 'version.old'), headers)).toThrow()
    }
    expect(new Set(to.got.map(({ headers }) => headers['webhook-id'])).size).toBe(to.got.length)
  })

  it('D2 keeps the order in which events were published, despite their ids and times', async () => {
    const to = await subscriber({ status: 500 })
    const { app, endpoint } = await delivery({ retry: QUICK, window: { every: '50ms', maxEvents: 30 } }, fresh(store))
    await endpoint({ url: to.url })
    const ids = Array.from({ length: 60 }, (_, n) => `${99 - n}`)
    // Some events share a millisecond, and the time of others goes back.
    for (const [n, id] of ids.entries())
      await app.publish({ id, type: 'version.new', time: 1_000 - Math.floor(n / 20) })
    await expect.poll(() => to.got.slice(1).flatMap((one) => one.ids).length).toBe(60)
    expect(to.got.slice(1).flatMap((one) => one.ids)).toEqual(ids)
    expect(to.got[1]?.headers['webhook-id']).toBe(to.got[0]?.headers['webhook-id'])
  })

  it('posts an event to the endpoints that match it, within its tenant', async () => {
    const [all, some, other] = [await subscriber(), await subscriber(), await subscriber()]
    const { endpoint, send } = await delivery({}, fresh(store))
    await endpoint({ url: all.url })
    await endpoint({ url: some.url, eventFilter: ['version.old'] })
    await endpoint({ url: other.url, tenant: 't' })
    await send(['a'])
    await send(['b'], { type: 'version.old' })
    await send(['c'], { tenant: 't' })
    await send(['d'], { tenant: 'nobody' })
    await Promise.all([some.reached(1), other.reached(1)])
    await expect.poll(() => all.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
    expect(some.got.flatMap(({ ids }) => ids)).toEqual(['b'])
    expect(other.got.flatMap(({ ids }) => ids)).toEqual(['c'])
  })

  it('retries under the same id before later events', async () => {
    const to = await subscriber({ status: 500 }, { status: 302, headers: { location: 'http://127.0.0.1/' } })
    const { app, endpoint, send } = await delivery({ retry: QUICK }, fresh(store))
    const { id } = await endpoint({ url: to.url })
    await send(['a'])
    await to.reached(1)
    const [first] = await app.endpoints.deliveries(id)
    expect(['PENDING', 'DELIVERING']).toContain(first?.status)
    await send(['b'])
    await to.reached(4)
    expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a'], ['a'], ['b']])
    const [name, second, third, fourth] = to.got.map(({ headers }) => headers['webhook-id'])
    expect([second, third]).toEqual([name, name])
    expect(fourth).not.toBe(name)
  })

  it('sends events that were not accepted again, under another id', async () => {
    const to = await subscriber({ status: 200, body: JSON.stringify({ accepted: ['a', 'c'] }) })
    const { endpoint, send } = await delivery({ retry: QUICK, window: { every: '50ms' } }, fresh(store))
    await endpoint({ url: to.url })
    await send(['a', 'b', 'c'])
    await to.reached(2)
    expect(to.got.map(({ ids }) => ids)).toEqual([['a', 'b', 'c'], ['b']])
    expect(to.got[1]?.headers['webhook-id']).not.toBe(to.got[0]?.headers['webhook-id'])
  })

  it('makes a batch a dead letter after its last attempt, with the reason, and continues', async () => {
    const to = await subscriber({ status: 500 }, { status: 400 })
    const { app, endpoint, send } = await delivery({ retry: ['30ms'] }, fresh(store))
    const dead = app.once('run.dead')
    const { id } = await endpoint({ url: to.url })
    await send(['a'])
    expect((await dead).error).toContain('400')
    await send(['b'])
    await to.reached(3)
    expect(to.got.map(({ ids }) => ids)).toEqual([['a'], ['a'], ['b']])
    expect((await app.admin.deadLetters.list()).items).toHaveLength(1)
    await expect
      .poll(() => app.endpoints.deliveries(id))
      .toMatchObject([
        { delivery: 'versions', status: 'SUCCESS', events: 1, attemptCount: 1, lastError: '' },
        { delivery: 'versions', status: 'FAILED', events: 1, attemptCount: 2, attempts: [{}, {}] },
      ])
    expect((await app.endpoints.deliveries(id, 1)).map(({ status }) => status)).toEqual(['SUCCESS'])
  })

  it('waits while the endpoint is paused, even after a restart', async () => {
    const to = await subscriber()
    const { app, endpoint, send } = await delivery({}, fresh(store))
    const { id } = await endpoint({ url: to.url })
    await app.endpoints.pause(id)
    const held = app.once('lane.held')
    await send(['a'])
    await held
    await send(['b'])
    expect(to.got).toEqual([])
    expect(await app.endpoints.get(id)).toMatchObject({ active: false })
    await app.endpoints.resume(id)
    await to.reached(1)
    await expect.poll(() => to.got.flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
  })

  it('D4 a 410 disables the endpoint; its waiting events stay until it is enabled from backlog', async () => {
    const to = await subscriber({ status: 410 })
    const { app, endpoint, send } = await delivery({ retry: QUICK }, fresh(store))
    const { id } = await endpoint({ url: to.url })
    const disabled = app.once('endpoint.disabled')
    const held = app.once('lane.held')
    await send(['a'])
    expect(await disabled).toMatchObject({ endpoint: id })
    await held
    await send(['b'])
    expect(to.got).toHaveLength(1)
    await expect(app.endpoints.resume(id)).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(app.endpoints.update(id, { active: true })).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await app.endpoints.enable(id, { from: 'backlog' })).toMatchObject({ id, dropped: 0 })
    await expect.poll(() => to.got.slice(1).flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
  })

  it('enable from now drops the waiting events and returns their number', async () => {
    const to = await subscriber({ status: 410 })
    const { app, endpoint, send } = await delivery({}, fresh(store))
    const { id } = await endpoint({ url: to.url })
    const held = app.once('lane.held')
    const again = app.once('run.deferred')
    await send(['a'])
    await held
    await again
    await send(['b', 'c'])
    expect(await app.endpoints.enable(id, { from: 'now' })).toMatchObject({ id, dropped: 3 })
    expect((await app.endpoints.get(id))?.health).toMatchObject({ breaker: 'closed' })
    await send(['d'])
    await to.reached(2)
    expect(to.got.slice(1).flatMap(({ ids }) => ids)).toEqual(['d'])
  })

  it('enable rejects an endpoint that is not disabled, and requires from', async () => {
    const { app, endpoint } = await delivery({}, fresh(store))
    const { id } = await endpoint({ url: 'http://127.0.0.1:1/' })
    await expect(app.endpoints.enable(id, { from: 'now' })).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await app.endpoints.enable(id, { from: 'backlog' })).toMatchObject({ id, dropped: 0 })
    await expect(app.endpoints.enable(id, {} as never)).rejects.toThrow("must be 'backlog'")
    await expect(app.endpoints.enable('ep_nothing', { from: 'now' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('emits endpoint.opened and endpoint.recovered', async () => {
    const to = await subscriber(...Array.from({ length: 6 }, () => ({ status: 503 })))
    const { app, endpoint, send } = await delivery({ retry: QUICK }, fresh(store))
    const { id } = await endpoint({ url: to.url })
    const opened = app.once('endpoint.opened')
    const recovered = app.once('endpoint.recovered')
    await send(['a'])
    expect(await opened).toMatchObject({ endpoint: id, reason: 'The endpoint returned 503.' })
    expect(to.got).toHaveLength(5)
    expect(await recovered).toMatchObject({ endpoint: id })
    expect(to.got).toHaveLength(7)
  })

  it('delete drops the waiting events and returns their number', async () => {
    const to = await subscriber()
    const { app, endpoint, send } = await delivery({ window: { quiet: '1h' } }, fresh(store))
    const { id } = await endpoint({ url: to.url })
    await send(['a', 'b'])
    expect(await app.endpoints.delete(id)).toEqual({ dropped: 2 })
    await send(['c'])
    expect((await app.admin.lanes.list()).items).toEqual([])
    expect(await app.endpoints.list()).toEqual([])
  })

  it('D1 signs with both secrets for a day after a rotation', async () => {
    const to = await subscriber()
    const { app, endpoint, send } = await delivery({}, fresh(store))
    const { id, secret: old } = await endpoint({ url: to.url })
    const { secret } = await app.endpoints.rotateSecret(id)
    await send(['a'])
    await to.reached(1)
    const [{ headers, body } = { headers: {}, body: '' }] = to.got
    for (const known of [old, secret]) expect(new Webhook(known).verify(body, headers)).toBeDefined()
    await expect(app.endpoints.rotateSecret(id)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(JSON.stringify(await app.endpoints.list())).not.toContain('whsec')
  })

  it('D1 sends the previous bearer token for a day, or with force the new one at once', async () => {
    const to = await subscriber()
    const { app, endpoint, send } = await delivery({ window: { every: 0, maxEvents: 1 } }, fresh(store))
    const [before, leaked, next] = ['the-token-of-before', 'the-one-that-leaked', 'the-token-to-come']
    const { id } = await endpoint({ url: to.url, secret: before, signing: { kind: 'bearer' } })
    await app.endpoints.rotateSecret(id, { secret: leaked })
    await send(['a'])
    await to.reached(1)
    await app.endpoints.rotateSecret(id, { secret: next, force: true })
    await send(['b'])
    await to.reached(2)
    expect(to.got.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${before}`, `Bearer ${next}`])
  })

  it('accepts another signing only if every active secret fits it', async () => {
    const { app, endpoint } = await delivery({}, fresh(store))
    const { id } = await endpoint({ url: 'http://127.0.0.1:1/', secret: 'a phrase with spaces' })
    await app.endpoints.rotateSecret(id)
    const changed = app.endpoints.update(id, { signing: { kind: 'bearer' } })
    await expect(changed).rejects.toThrow('the previous secret')
    expect(await app.endpoints.get(id)).toMatchObject({ signing: { kind: 'standard' } })
  })

  it('update pauses, resumes and rotates the secret', async () => {
    const to = await subscriber()
    const { app, endpoint, send } = await delivery({}, fresh(store))
    const { id, secret: old } = await endpoint({ url: to.url, active: false })
    const held = app.once('lane.held')
    await send(['a'])
    await held
    const secret = 'another-secret-of-theirs'
    expect(await app.endpoints.update(id, { secret, name: 'Ada' })).toMatchObject({ name: 'Ada', active: false })
    // The same call again, as after a lost response.
    await app.endpoints.update(id, { secret })
    expect((await app.endpoints.findTarget(id))?.secrets).toEqual([secret, old])
    await expect(app.endpoints.update(id, { secret: 'and-yet-another-one' })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    await expect(app.endpoints.update(id, { secret: 'short', name: 'Bob' })).rejects.toThrow('secret')
    const done = app.once('run.done')
    expect(await app.endpoints.update(id, { active: true })).toMatchObject({ name: 'Ada', active: true })
    await done
    expect(to.got.flatMap(({ ids }) => ids)).toEqual(['a'])
    expect(await app.endpoints.update(id, { active: false })).toMatchObject({ active: false })
    const [last] = (await app.admin.audit.list()).items
    expect(last).toMatchObject({ what: `changed active of endpoint ${id}` })
    const again = app.once('lane.held')
    await send(['b'])
    await again
    expect(to.got).toHaveLength(1)
  })

  it('an updated filter applies from then on', async () => {
    const [before, after] = [await subscriber(), await subscriber()]
    const { app, endpoint, send } = await delivery({}, fresh(store))
    const { id } = await endpoint({ url: before.url, eventFilter: ['version.old'] })
    await send(['a'])
    await app.endpoints.update(id, { url: after.url, eventFilter: ['version.new'], form: 'events' })
    await send(['b'])
    await after.reached(1)
    expect(before.got).toEqual([])
    expect(JSON.parse(after.got[0]?.body ?? '')).toMatchObject({ events: [{ id: 'b', eventType: 'version.new' }] })
  })
})

it('L18 changes of another process apply to the next event', async () => {
  const store = await openStore('memory:')
  const [to, later] = [await subscriber(), await subscriber()]
  const [one, other] = [await delivery({}, store), await delivery({}, store)]
  const { id } = await one.endpoint({ url: to.url, eventFilter: ['version.new'] })
  // Reading the flows gives this process the newest epoch, but its list of endpoints is still the old one.
  await other.app.admin.flows.retire('nothing', 'ada')
  await other.send(['a'])
  await to.reached(1)
  await one.app.endpoints.update(id, { url: later.url, eventFilter: ['version.old'] })
  await other.send(['b'])
  await other.send(['c'], { type: 'version.old' })
  await later.reached(1)
  await expect.poll(async () => (await other.app.admin.lanes.list()).items).toEqual([])
  await one.app.endpoints.delete(id)
  await other.send(['d'], { type: 'version.old' })
  expect((await other.app.admin.lanes.list()).items).toEqual([])
  expect([to, later].map(({ got }) => got.flatMap(({ ids }) => ids))).toEqual([['a'], ['c']])
})

it('L18 run.publish reaches an endpoint that another process has just registered', async () => {
  const store = await openStore('memory:')
  const to = await subscriber()
  const works = new Sluice({
    store,
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true },
  })
  works.flow('work', { on: 'work', run: (run) => run.publish({ id: 'a', type: 'version.new' }) })
  works.delivery('versions', { on: 'version.*' })
  await works.start()
  onTestFinished(() => works.stop())
  const key = randomBytes(32).toString('base64')
  const registers = await delivery({}, store, key)
  await registers.endpoint({ url: to.url })
  // Reading the flows gives this process the newest epoch, but its list of endpoints is still the old one.
  await works.admin.flows.retire('nothing', 'ada')
  await registers.app.publish({ type: 'work' })
  await to.reached(1)
  expect(to.got.map(({ ids }) => ids)).toEqual([['a']])
})

it('the backlog of a disabled endpoint is dropped after keep.events, and not earlier', async () => {
  const to = await subscriber({ status: 410 })
  const app = new Sluice({
    store: 'memory:',
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true },
    keep: { events: '10d' },
  })
  app.delivery('versions', { on: 'version.*' })
  const t = await testApp(app)
  onTestFinished(() => t.stop())
  const { id } = await app.endpoints.create({ url: to.url })
  const disabled = app.once('endpoint.disabled')
  await app.publish({ type: 'version.new', data: 1 })
  await disabled
  await expect.poll(async () => (await app.admin.lanes.list()).items[0]?.hold).toBeDefined()
  await app.publish({ type: 'version.new', data: 2 })
  await t.advance('10d')
  expect((await app.admin.lanes.list()).items).toMatchObject([{ key: id, waiting: 1 }])
  await t.advance('2h')
  expect((await app.admin.lanes.list()).items.map(({ waiting, run }) => [waiting, run])).toEqual([[0, undefined]])
  expect((await app.endpoints.get(id))?.health).toMatchObject({ breaker: 'disabled' })
})

it('an event without a matching endpoint is not counted as skipped', async () => {
  const { app, send } = await delivery()
  const skipped: unknown[] = []
  app.on('event.skipped', (what) => skipped.push(what))
  await send(['a'])
  expect(skipped).toEqual([])
})

it('an unknown option is rejected', () => {
  const wrong = { allowLoopBack: true }
  expect(() => new Sluice({ store: 'memory:', delivery: wrong as never })).toThrow('allowLoopBack')
  for (const userAgent of ['M\u00fcller/1', 'a\nb', '\u4f60', 7 as never]) {
    expect(() => new Sluice({ store: 'memory:', delivery: { userAgent } })).toThrow('delivery.userAgent')
  }
  const app = new Sluice({ store: 'memory:' })
  expect(() => app.delivery('versions', { on: '**', run: () => {} } as never)).toThrow('run')
})

describe('an invalid endpoint', () => {
  it.each([
    [{ url: 'http://example.com/' }, 'url'],
    [{ url: 'https://10.0.0.1/' }, 'url'],
    [{ url: 'no url' }, 'url'],
    [{ url: 'https://example.com/', secret: 'short' }, 'secret'],
    [{ url: 'https://example.com/', eventFilter: '' }, 'eventFilter'],
    [{ url: 'https://example.com/', active: 'no' }, 'active'],
    [{ url: 'https://example.com/', headers: { host: 'x' } }, 'headers'],
    [{ url: 'https://example.com/', headers: 'x-a' }, 'headers'],
    [{ url: 'https://example.com/', secret: 12 }, 'secret'],
    [{ url: 'https://example.com/', signing: { kind: 'none' } }, 'signing'],
    [{ url: 'https://example.com/', signing: { kind: 'hmac', header: 'x-sig', encoding: 'latin1' } }, 'signing'],
    [{ url: 'https://example.com/', signing: { kind: 'hmac', header: 'host', encoding: 'hex' } }, 'signing'],
    [{ url: 'https://example.com/', nonsense: 1 }, 'nonsense'],
  ])('%o is rejected with the field %s', async (given, field) => {
    const { app } = await delivery()
    await expect(app.endpoints.create(given as never)).rejects.toThrow(field)
    expect(await app.endpoints.list()).toEqual([])
  })
})

function fresh(store: string): string {
  return store === 'memory:' ? store : ownFile()
}
