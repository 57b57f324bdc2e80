// Tests limits over the API: listing them, and pausing and resuming them for every process.
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore, type Limit } from '../../src/index.ts'
import { rig, START, STORES, type Rig } from './rig.ts'

interface Found {
  readonly items: readonly { readonly name: string; readonly pausedUntil?: number }[]
}

const paused = async (r: Rig): Promise<readonly unknown[]> =>
  ((await r.get('/v1/limits')).body as Found).items.map(({ name, pausedUntil }) => [name, pausedUntil])

describe.each(STORES)('limits on %s', (store) => {
  const opened = (): Promise<Rig> =>
    rig(store, (app) => {
      app.limit('mail', { rate: 5, per: '1s' })
      app.limit('calls', { rate: 5, per: '1s' })
    })

  test('all declared limits are listed, used or not', async () => {
    const r = await opened()
    expect((await r.get('/v1/limits')).body).toEqual({
      items: [
        { name: 'calls', declared: true, epoch: 0, rate: 5, per: 1_000, burst: 0, used: 0, flows: [], waiting: 0 },
        { name: 'mail', declared: true, epoch: 0, rate: 5, per: 1_000, burst: 0, used: 0, flows: [], waiting: 0 },
      ],
    })
  })

  test('a limit is shown with its numbers, its reduced rate, and the time until which callers wait', async () => {
    let limit: Limit | undefined
    const r = await rig(store, (app) => {
      const slow = app.limit('slow', { rate: 1, per: '1m' })
      limit = slow
      app.flow('f', { on: 'ping', key: ({ id }) => id, run: () => slow.run(() => {}) })
    })
    const show = async (name: string): Promise<unknown> => (await r.get(`/v1/limits/${name}`)).body
    const numbers = { declared: true, rate: 1, per: 60_000, burst: 0 }
    expect(await show('slow')).toEqual({ name: 'slow', epoch: 0, ...numbers, used: 0, flows: [], waiting: 0 })
    expect(await show('slow%2Fada')).toEqual({ name: 'slow/ada', epoch: 0, ...numbers, used: 0, flows: [], waiting: 0 })
    expect((await r.get('/v1/limits/nothing')).status).toBe(404)
    await r.t.send([{ type: 'ping' }, { type: 'ping' }, { type: 'ping' }])
    await r.t.advance('1s')
    expect(((await show('slow')) as { busyUntil: number }).busyUntil).toBeGreaterThan(START + 110_000)
    await r.t.advance('5m')
    const calm = { used: expect.any(Number), flows: ['f'], waiting: 0, lastSlot: expect.any(Number) }
    expect(await show('slow')).toEqual({ name: 'slow', epoch: 1, ...numbers, ...calm })
    await limit?.pause(new Response(null, { status: 429, headers: { 'retry-after': '1' } }))
    await r.t.advance('1s')
    expect(((await show('slow')) as { stretch: number }).stretch).toBeCloseTo(2, 1)
    await r.t.advance('15m')
    expect(await show('slow')).not.toHaveProperty('stretch')
  })

  test('of very many limits of keys, the list contains those that stay relevant longest, including paused ones', async () => {
    const bare = await openStore(store)
    onTestFinished(() => bare.close())
    const pause = (name: string, ms: number): Promise<unknown> =>
      bare.regulate({ name, act: { kind: 'pause', for: ms, slow: false } })
    await pause('calls/paused', 3_600_000)
    for (let n = 0; n < 1_200; n++) await pause(`calls/${n}`, 1_000)
    const { limits } = await bare.stats()
    expect(limits).toHaveLength(1_000)
    expect(limits.map(({ name }) => name)).toContain('calls/paused')
  })

  test('a pause lasts for the given time and emits an event', async () => {
    const r = await opened()
    const { body } = await r.post('/v1/limits/calls/pause', { for: '10m', reason: 'they asked us to' })
    expect(body).toMatchObject({ name: 'calls', declared: true, pausedUntil: START + 600_000 })
    expect(await paused(r)).toEqual([
      ['calls', START + 600_000],
      ['mail', undefined],
    ])
    expect(r.t.emitted.map(({ name }) => name)).toContain('limit.paused')
    expect((await r.app.admin.audit.list()).items).toMatchObject([
      { who: 'loopback', what: 'done: pause the limit calls for 10m: they asked us to' },
      { who: 'loopback', what: 'requested: pause the limit calls for 10m: they asked us to' },
    ])
    await r.t.advance('11m')
    expect(await paused(r)).toEqual([
      ['calls', undefined],
      ['mail', undefined],
    ])
  })

  test('resume ends the pause', async () => {
    const r = await opened()
    await r.post('/v1/limits/calls/pause', { for: '10m', reason: 'x' })
    expect((await r.post('/v1/limits/calls/resume')).body).toMatchObject({ name: 'calls' })
    expect((await r.post('/v1/limits/calls/resume')).body).not.toHaveProperty('pausedUntil')
    expect(r.t.emitted.map(({ name }) => name)).toContain('limit.resumed')
  })

  test('the limit of a single key can be paused; slashes in the key belong to the key', async () => {
    const r = await opened()
    const name = 'calls/a/b ü%'
    const { body } = await r.post(`/v1/limits/${encodeURIComponent(name)}/pause`, { for: '1m', reason: 'x' })
    expect(body).toMatchObject({ name, declared: true, pausedUntil: START + 60_000 })
    expect(await paused(r)).toEqual([
      ['calls', undefined],
      [name, START + 60_000],
      ['mail', undefined],
    ])
  })

  test('the cursor after a limit with a long key fits into a URL', async () => {
    const r = await opened()
    const names = ['a', 'b', 'c'].map((last) => `mail/${'\u{1F600}'.repeat(4_000)}${last}`)
    for (const name of names) await r.app.admin.limits.pause(name, { for: '1h' })
    const found: string[] = []
    for (let path: string | undefined = '/v1/limits?limit=1'; path !== undefined;) {
      expect(path.length).toBeLessThan(2_000)
      const { items, next } = (await r.get(path)).body as Found & { readonly next?: string }
      found.push(...items.map(({ name }) => name))
      path =
        next === undefined ? undefined : `/v1/limits?${new URLSearchParams({ limit: '1', cursor: next }).toString()}`
    }
    expect(found.slice(0, 2)).toEqual(['calls', 'mail'])
    expect(found.slice(2).toSorted()).toEqual(names)
  })

  test('a limit that this app did not declare is known by its use, and can be paused', async () => {
    const r = await rig(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))
    await r.t.send([{ type: 'ping' }, { type: 'ping' }, { type: 'ping' }])
    await r.app.admin.replays.start({}, { id: 'slow', rate: 1, per: '10s' })
    await r.t.advance('1s')
    const name = 'sluice.replay%2Fslow'
    expect((await r.post(`/v1/limits/${name}/pause`, { for: '1h', reason: 'not now' })).body).toMatchObject({
      name: 'sluice.replay/slow',
      declared: false,
      pausedUntil: START + 1_000 + 3_600_000,
    })
    await r.t.advance('30m')
    expect(await r.app.admin.replays.show('slow')).toMatchObject({ placed: 1 })
    expect((await r.post(`/v1/limits/${name}/resume`)).body).not.toHaveProperty('pausedUntil')
    await r.t.advance('2h')
    expect(await r.app.admin.replays.show('slow')).toMatchObject({ state: 'done', placed: 3 })
    expect(r.t.emitted.map(({ name: told }) => told)).toEqual(expect.arrayContaining(['limit.paused', 'limit.resumed']))
  })

  test.each([
    ['/v1/limits/nothing/pause', { for: '1m', reason: 'x' }, 404],
    ['/v1/limits/nothing/resume', {}, 404],
    ['/v1/limits/nothing%2Fa/resume', {}, 404],
    ['/v1/limits/calls%2F/resume', {}, 404],
    ['/v1/limits/calls/pause', { for: '1m' }, 400],
    ['/v1/limits/calls/pause', { reason: 'x' }, 400],
    ['/v1/limits/calls/pause', { for: 'ever', reason: 'x' }, 400],
    ['/v1/limits/calls/pause', { for: 60_000, reason: 'x' }, 400],
    ['/v1/limits/calls/pause', { for: '1m', reason: 'x'.repeat(1_001) }, 400],
  ])('%s with %j is %i', async (path, body, status) => {
    const r = await opened()
    expect((await r.post(path, body)).status).toBe(status)
    expect(await paused(r)).toEqual([
      ['calls', undefined],
      ['mail', undefined],
    ])
  })
})
