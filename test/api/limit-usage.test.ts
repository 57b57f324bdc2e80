// Tests who spends a limit, why it was paused, and who waits for it.
import { describe, expect, test } from 'vitest'
import type { LimitUsage, LimitView } from '../../src/admin/limits.ts'
import type { Limit } from '../../src/index.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { ping } from './seeded.ts'

const userOf = (event: { readonly data: unknown }): string => (event.data as { user: string }).user
const usage = async (r: Rig, name = 'api'): Promise<LimitUsage> => (await r.get(`/v1/limits/${name}/usage`)).body
const show = async (r: Rig, name = 'api'): Promise<LimitView> => (await r.get(`/v1/limits/${name}`)).body
const response = (status: number): Response =>
  Object.defineProperty(new Response('', { status, headers: { 'retry-after': '30' } }), 'url', {
    value: 'https://api.example.com/v1/pages?token=secret',
  })

describe.each(STORES)('the usage of a limit on %s', (store) => {
  test('counts the calls of each flow in steps of 15 seconds', async () => {
    let limit: Limit | undefined
    const r = await rig(store, (app) => {
      const api = (limit = app.limit('api', { rate: 60, per: '1m', burst: 60 }))
      app.flow('rank', { on: 'ping', key: userOf, run: () => api.run(() => {}) })
      app.flow('sync', { on: 'ping', key: userOf, run: () => api.run(() => {}, { cost: 3 }) })
    })
    await r.t.send([ping('ada'), ping('bob')])
    await r.t.advance('20s')
    await limit?.run(() => {})
    await r.t.advance('10s')
    const { step, from, spenders } = await usage(r)
    expect([step, from]).toEqual([15_000, START + 30_000 - 59 * 15_000])
    expect(spenders.map(({ flow, total, calls }) => [flow, total, calls.slice(-3)])).toEqual([
      ['sync', 6, [6, 0, 0]],
      ['rank', 2, [2, 0, 0]],
      ['', 1, [0, 1, 0]],
    ])
    expect((await show(r)).used).toBeCloseTo(9 / 60)
    expect((await show(r)).flows).toEqual(['sync', 'rank'])
    await r.t.advance('16m')
    expect(await usage(r)).toMatchObject({ spenders: [] })
    expect((await show(r)).used).toBe(0)
  })

  test('names the response that paused it, without the query of its address, or the operator', async () => {
    const r = await rig(store, (app) => {
      const api = app.limit('api', { rate: 10, per: '1s' })
      app.flow('rank', { on: 'ping', key: userOf, run: () => api.pause(response(429)) })
    })
    await r.t.send(ping('ada'))
    const refused = {
      at: START,
      ms: 30_000,
      cause: 'response',
      status: 429,
      url: 'https://api.example.com/v1/pages',
      flow: 'rank',
    }
    expect(await show(r)).toMatchObject({ paused: refused, pausedUntil: START + 30_000 })
    await r.t.advance('40s')
    expect(await show(r)).not.toHaveProperty('paused')
    await r.post('/v1/limits/api/pause', { for: '10m', reason: 'they asked us to' })
    const { pauses } = await usage(r)
    expect(pauses).toEqual([{ at: START + 40_000, ms: 600_000, cause: 'operator', by: 'loopback' }, refused])
    expect(JSON.stringify(pauses)).not.toContain('secret')
  })

  test('lists who gets the next slots: live runs that wait, and deferred ones', async () => {
    const r = await rig(store, (app) => {
      const api = app.limit('api', { rate: 1, per: '8s' })
      app.flow('calls', { on: 'ping', key: userOf, run: () => api.run(() => {}) })
    })
    await r.t.send([ping('ada'), ping('bob'), ping('eve'), ping('zoe')])
    await r.t.advance('1s')
    const { slots } = await usage(r)
    expect(slots.map(({ flow, key }) => [flow, key])).toEqual([
      ['calls', 'bob'],
      ['calls', 'eve'],
      ['calls', 'zoe'],
    ])
    expect((await show(r)).waiting).toBe(3)
    expect((await r.get('/v1/limits/nothing/usage')).status).toBe(404)
  })
})
