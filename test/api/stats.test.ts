// Tests stats over the API: their numbers, who may read them, and wrong parameters.
import { describe, expect, test } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { rig, START, STORES, type Rig } from './rig.ts'

const declare = (app: Sluice): Sluice =>
  app.flow('ok', { on: 'ping', run: () => {} }).flow('waits', { on: 'ping', window: { quiet: '1h' }, run: () => {} })

describe.each(STORES)('stats on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, declare)

  test('stats are grouped by source and type or by flow, or are only a sum', async () => {
    const r = await opened()
    await r.t.send([
      { type: 'ping', source: 'shop' },
      { type: 'pong', source: 'shop' },
    ])
    await r.t.advance('1m')
    const { status, body } = await r.get('/v1/stats?window=5m&by=source,type')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      now: START + 60_000,
      from: START - 240_000,
      total: { received: 2, receivedPerMinute: 0.4, done: 1, dead: 0, deadPerDay: 0, failureRate: 0, depth: 1 },
      depthIsWhole: true,
      groups: [
        { source: 'shop', type: 'ping', received: 1, done: 1, meanMs: 0 },
        { source: 'shop', type: 'pong', received: 1, done: 0 },
      ],
    })
    expect((await r.get('/v1/stats?by=flow')).body).toMatchObject({
      groups: [
        { flow: 'ok', received: 1, done: 1, depth: 0 },
        { flow: 'waits', received: 1, done: 0, depth: 1 },
      ],
    })
    expect((await r.get('/v1/stats')).body).toMatchObject({ groups: [] })
  })

  test('a series has one point for each step, the current one last', async () => {
    const r = await rig(store, (app) =>
      app
        .flow('slow', { on: 'ping', concurrency: 1, window: { quiet: '90s' }, key: () => 'k', run: () => {} })
        .flow('fails', {
          on: 'ping',
          retry: { delays: ['2m'], jitter: 0 },
          run: () => {
            throw new Error('no')
          },
        }),
    )
    await r.t.send([
      { type: 'ping', source: 'shop' },
      { type: 'ping', source: 'shop' },
    ])
    await r.t.advance('150s')
    const { series, groups, total } = (await r.get('/v1/stats?window=3m&step=1m&by=flow')).body as unknown as {
      series: { step: number; from: number; points: object[] }
      groups: { flow: string; series: { waiting: number }[] }[]
      total: { depth: number }
    }
    expect(total.depth).toBe(0)
    const none = { received: 0, done: 0, dropped: 0, dead: 0, failing: 0, runs: 0, failedRuns: 0, waiting: 0 }
    const minute = 60_000
    expect(series).toEqual({
      step: minute,
      from: START - minute,
      points: [
        { ...none, at: START - minute },
        { ...none, at: START, received: 2, failing: 2, runs: 2, failedRuns: 2, lateMs: 0, waiting: 4 },
        {
          ...none,
          at: START + minute,
          done: 2,
          runs: 1,
          lateMs: 0,
          meanMs: 90_000,
          p95Ms: expect.any(Number),
          waiting: 2,
        },
        { ...none, at: START + 2 * minute, dead: 2, runs: 2, failedRuns: 2, lateMs: 0 },
      ],
    })
    expect(groups.map(({ flow, series: points }) => [flow, points.map(({ waiting }) => waiting)])).toEqual([
      ['fails', [0, 2, 2, 0]],
      ['slow', [0, 2, 0, 0]],
    ])
  })

  test('a series by source and type counts events, without runs and what waits', async () => {
    const r = await opened()
    await r.t.send({ type: 'ping', source: 'shop' })
    const { groups } = (await r.get('/v1/stats?window=1m&step=1m&by=source')).body as unknown as {
      groups: { series: object[] }[]
    }
    expect(groups[0]?.series).toEqual([
      { at: START - 60_000, received: 0, done: 0, dropped: 0, dead: 0, failing: 0 },
      { at: START, received: 1, done: 1, dropped: 0, dead: 0, failing: 0, meanMs: 0, p95Ms: expect.any(Number) },
    ])
  })

  test('old counts are in longer steps, and sum up to the same', async () => {
    const r = await opened()
    for (let hour = 0; hour < 5; hour++) {
      await r.t.send({ type: 'ping', source: 'shop' })
      await r.t.advance('1h')
    }
    const { series, total } = (await r.get('/v1/stats?window=6h&step=1h')).body as unknown as {
      series: { points: { received: number }[] }
      total: { received: number }
    }
    expect(total.received).toBe(5)
    expect(series.points.map(({ received }) => received)).toEqual([0, 1, 1, 1, 1, 1, 0])
  })

  test.each([
    ['window=2h&step=30s'],
    ['window=2h&step=90s'],
    ['window=3h&step=1m'],
    ['window=25h&step=10m'],
    ['window=1h&step=2h'],
    ['step=soon'],
    ['window=0m'],
    ['window=59s'],
    ['window=7.1d'],
    ['window=day'],
    ['window=1e3m'],
    ['window='],
    ['by=key'],
    ['by=type,source'],
    ['by='],
    ['colour=red'],
    ['window=1h&window=2h'],
  ])('refuses ?%s', async (query) => {
    const r = await opened()
    const { status, body } = await r.get(`/v1/stats?${query}`)
    expect([status, (body as { code: string }).code]).toEqual([400, 'REQUEST_INVALID'])
  })

  test('a key with the role read may read them, and nobody without a key', async () => {
    const r = await opened()
    const { secret } = await r.app.admin.keys.create({ name: 'bob', role: 'operate' })
    expect((await r.get('/v1/stats')).status).toBe(401)
    expect((await r.get('/v1/stats', { key: secret })).status).toBe(200)
  })
})
