// Tests the state of the whole app over the API: the verdict, the counts of lanes by state and flow, and the pulse.
import { describe, expect, test } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import type { StatusView } from '../../src/admin/status.ts'
import type { PulseView } from '../../src/observe/status/pulse.ts'
import { Gate } from '../engine/scene.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { ping, seeded } from './seeded.ts'

const userOf = (event: { readonly data: unknown }): string => (event.data as { user: string }).user
const statusOf = async (r: Rig, key?: string): Promise<StatusView> =>
  (await r.get('/v1/status', key === undefined ? {} : { key })).body

describe.each(STORES)('the status on %s', (store) => {
  test('counts lanes by state and flow, and what needs a person', async () => {
    const r = await seeded(store)
    const status = await statusOf(r, r.read)
    expect(status.lanes).toMatchObject({ total: 11, exact: true, events: 9 })
    expect(status.lanes.byState).toMatchObject({ waiting: 6, held: 1, blocked: 3, running: 1, ready: 0, limited: 0 })
    expect(status.flows.map(({ flow }) => flow)).toEqual([
      'blocks',
      'does',
      'each',
      'fails',
      'keyless',
      'runs',
      'waits',
    ])
    expect(status.flows.find(({ flow }) => flow === 'waits')).toEqual({
      flow: 'waits',
      delivery: false,
      declared: true,
      waiting: 3,
      ready: 0,
      running: 0,
      retrying: 0,
      limited: 0,
      blocked: 0,
      held: 1,
      events: 6,
      window: 'quiet 1 hour, max 10 hours',
    })
    expect(status).toMatchObject({
      verdict: 'keeping-up',
      sentence: 'Keeping up: throughput matches arrivals.',
      deadLetters: 6,
      unrouted: 3,
      endpoints: { up: 2, degraded: 0, down: 0, paused: 0, disabled: 0, unproven: 0 },
      limits: { free: 1, slowed: 0, paused: 2 },
      alerts: { raised: 0, pending: 0 },
      replays: { running: 0 },
      refused: 1,
    })
    expect(status.now).toBe(START + r.t.elapsed)
    expect(status.lastEvent).toBeLessThanOrEqual(status.now)
    expect(status.lastRunBegan).toBe(START + 3_000)
  })

  test('is computed once a second for everybody, with the time of the call', async () => {
    const r = await rig(store, (app) =>
      app.flow('waits', { on: 'late', key: userOf, window: { quiet: '1h' }, run: () => {} }),
    )
    expect((await statusOf(r)).lanes.total).toBe(0)
    await r.t.send({ ...ping('ada'), type: 'late' })
    await r.t.advance('500ms')
    expect(await statusOf(r)).toMatchObject({ now: START + 500, lanes: { total: 0 } })
    await r.t.advance('500ms')
    expect(await statusOf(r)).toMatchObject({ now: START + 1_000, lanes: { total: 1, byState: { waiting: 1 } } })
  })

  test('is idle without events, and after five minutes without one', async () => {
    const r = await rig(store, (app) => app.flow('does', { on: 'ping', key: userOf, run: () => {} }))
    expect(await statusOf(r)).toMatchObject({ verdict: 'idle', sentence: 'Idle: no event has arrived yet.' })
    await r.t.send(ping('ada'))
    await r.t.advance('4m')
    expect(await statusOf(r)).toMatchObject({ verdict: 'keeping-up', lastEvent: START, lastRunBegan: START })
    await r.t.advance('1m')
    expect(await statusOf(r)).toMatchObject({
      verdict: 'idle',
      sentence: 'Idle: nothing is due, and no event has arrived for 5 minutes.',
    })
  })

  test('is stalled by a pause a minute after the first deadline, and says by whom', async () => {
    const r = await rig(store, (app) => app.flow('does', { on: 'ping', key: userOf, run: () => {} }))
    await r.app.admin.flows.pause('does', { reason: 'a bad deploy', by: 'ada' })
    await r.t.send([ping('ada'), ping('bob')])
    await r.t.advance('59s')
    expect(await statusOf(r)).toMatchObject({
      verdict: 'keeping-up',
      oldestDue: START,
      lanes: { byState: { ready: 2 } },
    })
    await r.t.advance('1s')
    expect(await statusOf(r)).toMatchObject({
      verdict: 'stalled',
      reason: 'paused',
      sentence:
        'Stalled: 2 lanes are in line and no run has begun for 1 minute. The flow "does" was paused by "ada": "a bad deploy".',
      flows: [
        { flow: 'does', ready: 2, oldestDue: START, paused: { reason: 'a bad deploy', by: 'ada', since: START } },
      ],
    })
  })

  test('is stalled without slots while the only run of a flow does not end', async () => {
    const gate = new Gate()
    const r = await rig(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, concurrency: 1, run: () => gate.wait() }),
    )
    await r.t.send([ping('ada'), ping('bob')])
    await r.t.advance('90s')
    const status = await statusOf(r)
    expect(status).toMatchObject({
      verdict: 'stalled',
      reason: 'no-slots',
      flows: [{ running: 1, ready: 1, concurrency: 1 }],
    })
    gate.open()
    await r.t.settled()
  })

  test('a lane whose run was deferred by a limit counts as limited', async () => {
    const r = await rig(store, (app) => {
      const limit = app.limit('api', { rate: 1, per: '1h' })
      app.flow('calls', { on: 'ping', key: userOf, run: () => limit.run(() => {}) })
    })
    await r.t.send([ping('ada'), ping('bob')])
    await r.t.advance('1s')
    const { lanes, flows } = await statusOf(r)
    expect(lanes.byState).toMatchObject({ limited: 1, snoozed: 0 })
    expect(flows[0]).toMatchObject({ flow: 'calls', limited: 1, retrying: 0, events: 1 })
  })

  test('counts endpoints by state', async () => {
    const r = await rig(store, (app) => app.delivery('d', { on: '**' }), {
      encryptionKey: Buffer.alloc(32, 7).toString('base64'),
    })
    const { id } = await r.app.endpoints.create({ url: 'https://one.example.com/' })
    await r.app.endpoints.create({ url: 'https://two.example.com/' })
    await r.app.endpoints.pause(id, 'ada')
    expect((await statusOf(r)).endpoints).toMatchObject({ up: 1, paused: 1 })
  })
})

const declare = (app: Sluice): Sluice =>
  app
    .flow('does', { on: 'ping', key: userOf, run: () => {} })
    .flow('waits', { on: 'ping', key: userOf, window: { quiet: '20s' }, run: () => {} })
    .flow('fails', {
      on: 'bad',
      key: userOf,
      retry: { delays: ['30s'], jitter: 0 },
      run: () => {
        throw new Error('no luck')
      },
    })
const pulseOf = async (r: Rig): Promise<PulseView> => (await r.get('/v1/pulse')).body
const marks = (list: readonly number[]): readonly (readonly [number, number])[] =>
  list.flatMap((n, at) => (n === 0 ? [] : [[at, n] as const]))

describe.each(STORES)('the pulse on %s', (store) => {
  test('has the ends of the last minute and the deadlines of the next', async () => {
    const r = await rig(store, declare)
    await r.t.send([ping('ada'), ping('bob'), { ...ping('ada'), type: 'bad' }])
    await r.t.advance('10s')
    const pulse = await pulseOf(r)
    expect(pulse).toMatchObject({
      now: START + 10_000,
      step: 1_000,
      past: { from: START - 50_000 },
      ahead: { from: START + 10_000 },
    })
    expect(marks(pulse.past.ended)).toEqual([[50, 3]])
    expect(marks(pulse.past.failed)).toEqual([[50, 1]])
    expect(marks(pulse.ahead.due)).toEqual([
      [10, 2],
      [20, 1],
    ])
    expect(marks(pulse.flows['does']?.ended ?? [])).toEqual([[50, 2]])
    expect(marks(pulse.flows['fails']?.failed ?? [])).toEqual([[50, 1]])
    expect(marks(pulse.flows['waits']?.due ?? [])).toEqual([[10, 2]])
  })

  test('follows what happens from call to call, and forgets after a minute', async () => {
    const r = await rig(store, declare)
    await r.t.send(ping('ada'))
    await r.t.advance('1s')
    expect(marks((await pulseOf(r)).past.ended)).toEqual([[59, 1]])
    await r.t.advance('29s')
    expect(marks((await pulseOf(r)).past.ended)).toEqual([
      [30, 1],
      [50, 1],
    ])
    await r.t.advance('40s')
    expect(marks((await pulseOf(r)).past.ended)).toEqual([[10, 1]])
  })

  test('a dead letter is one failed end', async () => {
    const r = await rig(store, declare)
    await r.t.send({ ...ping('ada'), type: 'bad' })
    await r.t.advance('31s')
    const { past } = await pulseOf(r)
    expect(marks(past.ended)).toEqual([
      [29, 1],
      [59, 1],
    ])
    expect(past.failed).toEqual(past.ended)
  })
})
