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

  test.each([
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
