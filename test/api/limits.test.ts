// Limits over the API: which are paused; paused and let go on, for every process.
import { describe, expect, test } from 'vitest'
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

  test('all that are declared are listed, used or not', async () => {
    const r = await opened()
    expect((await r.get('/v1/limits')).body).toEqual({
      items: [
        { name: 'calls', declared: true, epoch: 0 },
        { name: 'mail', declared: true, epoch: 0 },
      ],
    })
  })

  test('pause holds for as long as is said, and is told', async () => {
    const r = await opened()
    const { body } = await r.post('/v1/limits/calls/pause', { for: '10m', reason: 'they asked us to' })
    expect(body).toMatchObject({ name: 'calls', declared: true, pausedUntil: START + 600_000 })
    expect(await paused(r)).toEqual([
      ['calls', START + 600_000],
      ['mail', undefined],
    ])
    expect(r.t.emitted.map(({ name }) => name)).toContain('limit.paused')
    expect((await r.app.audit.list()).items).toMatchObject([
      { who: 'loopback', what: 'paused the limit calls for 10m: they asked us to' },
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

  test('the limit of a key is paused by itself; slashes of the key are its own', async () => {
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

  test('one that this app did not declare is known by its use, and can be paused', async () => {
    const r = await rig(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))
    await r.t.send([{ type: 'ping' }, { type: 'ping' }, { type: 'ping' }])
    await r.app.replays.start({}, { id: 'slow', rate: 1, per: '10s' })
    await r.t.advance('1s')
    const name = 'sluice.replay%2Fslow'
    expect((await r.post(`/v1/limits/${name}/pause`, { for: '1h', reason: 'not now' })).body).toMatchObject({
      name: 'sluice.replay/slow',
      declared: false,
      pausedUntil: START + 1_000 + 3_600_000,
    })
    await r.t.advance('30m')
    expect(await r.app.replays.show('slow')).toMatchObject({ placed: 1 })
    expect((await r.post(`/v1/limits/${name}/resume`)).body).not.toHaveProperty('pausedUntil')
    await r.t.advance('2h')
    expect(await r.app.replays.show('slow')).toMatchObject({ state: 'done', placed: 3 })
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
