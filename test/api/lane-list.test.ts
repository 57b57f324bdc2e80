// Tests the lists of lanes that the dashboard shows, and the page of one lane.
import { describe, expect, test } from 'vitest'
import type { ListedLane } from '../../src/admin/lanes.ts'
import type { LaneDetails } from '../../src/admin/lane-details.ts'
import type { Sluice } from '../../src/index.ts'
import { laneId } from '../../src/model/identity.ts'
import { Gate } from '../engine/scene.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { ping, seeded, untilAborted } from './seeded.ts'

interface Listed {
  readonly items: readonly ListedLane[]
  readonly next?: string
  readonly counts?: Readonly<Record<string, number>>
  readonly exact?: boolean
}

const HOUR = 3_600_000
const userOf = (event: { readonly data: unknown }): string => (event.data as { user: string }).user
const list = async (r: Rig, query: string, key?: string): Promise<Listed> =>
  (await r.get(`/v1/lanes?${query}`, key === undefined ? {} : { key })).body
const names = ({ items }: Listed): readonly string[] => items.map(({ flow, key, state }) => `${flow}/${key} ${state}`)

const total = (counts: Listed['counts'] = {}): number => Object.values(counts).reduce((sum, n) => sum + n, 0)

describe.each(STORES)('the list of lanes on %s', (store) => {
  test('filters by states, flow, tenant and a text in the key, and counts each state', async () => {
    const r = await seeded(store)
    const some = await list(r, 'state=held,blocked&order=due', r.read)
    expect(names(some)).toEqual([
      'blocks/bad-0 blocked',
      'waits/late-1 held',
      'blocks/bad-1 blocked',
      'blocks/bad-2 blocked',
    ])
    expect(some).toMatchObject({ counts: { held: 1, blocked: 3, running: 1, waiting: 6 }, exact: true })
    expect(names(await list(r, 'q=LATE-2', r.read))).toEqual(['waits/late-2 waiting'])
    expect(await list(r, 'q=late&state=held', r.read)).toMatchObject({ counts: { held: 1, waiting: 2 } })
    expect(names(await list(r, 'flow=waits&tenant=acme&order=newest', r.read))).toEqual(['waits/ada waiting'])
    expect(names(await list(r, 'q=nobody', r.read))).toEqual([])
  })

  test('leaves out the lanes of replays, as the status does, unless they are asked for', async () => {
    const r = await seeded(store)
    const before = (await list(r, 'order=due', r.read)).counts
    await r.app.admin.replays.start({}, { id: 'slow', rate: 1, per: '1h' })
    await r.t.advance('2s')
    const all = await list(r, 'order=due', r.read)
    expect(names(all).filter((name) => name.startsWith('sluice.'))).toEqual([])
    const status = (await r.get('/v1/status', { key: r.read })).body as { lanes: { total: number } }
    expect(total(all.counts)).toBe(status.lanes.total)
    expect(total(before)).toBeGreaterThan(0)
    expect(names(await list(r, 'order=due&flow=sluice.replay', r.read))).toHaveLength(1)
  })

  test('in the order of what happens next, page by page', async () => {
    const gate = new Gate()
    const r = await rig(store, (app) =>
      app
        .flow('f', { on: 'ping', key: userOf, concurrency: 1, run: () => gate.wait() })
        .flow('waits', { on: 'late', key: userOf, window: { quiet: '1h' }, run: () => {} }),
    )
    for (const user of ['ada', 'bob', 'eve']) {
      await r.t.send([ping(user), { ...ping(user), type: 'late' }])
      await r.t.advance('1s')
    }
    await r.app.admin.lanes.hold('waits', 'ada', { reason: 'x', by: 'y' })
    const all = [
      'f/bob ready',
      'f/eve ready',
      'f/ada running',
      'waits/bob waiting',
      'waits/eve waiting',
      'waits/ada held',
    ]
    const { items } = await list(r, 'order=due')
    expect(names({ items })).toEqual(all)
    expect(items.map(({ rank }) => rank)).toEqual([1, 2, undefined, undefined, undefined, undefined])
    const first = await list(r, 'order=due&limit=4')
    const second = await list(r, `order=due&limit=4&cursor=${first.next}`)
    expect([...names(first), ...names(second)]).toEqual(all)
    expect(second.next).toBeUndefined()
    gate.open()
    await r.t.settled()
  })

  test('shows the window, its cap, and when the first events arrived', async () => {
    const r = await rig(store, (app) =>
      app.flow('waits', { on: 'late', key: userOf, window: { quiet: '1h', max: '2h' }, run: () => {} }),
    )
    for (let n = 0; n < 20; n++) {
      await r.t.send({ ...ping('ada'), type: 'late' })
      await r.t.advance('1m')
    }
    const [lane] = (await list(r, 'flow=waits')).items
    expect(lane).toMatchObject({ window: START + 19 * 60_000 + HOUR, cap: START + 2 * HOUR, waiting: 20 })
    expect(lane?.arrivals).toEqual(Array.from({ length: 16 }, (_, n) => ({ at: START + n * 60_000, inRun: false })))
    expect((await list(r, 'flow=waits&limit=101')).items[0]).not.toHaveProperty('arrivals')
  })

  test('names the limit that deferred a run, and the one for whose slot a live run waits', async () => {
    const r = await rig(store, (app) => {
      const far = app.limit('far', { rate: 1, per: '1h' })
      const near = app.limit('near', { rate: 1, per: '8s' })
      app.flow('far', { on: 'ping', key: userOf, run: () => far.run(() => {}) })
      app.flow('near', { on: 'ping', key: userOf, run: () => near.run(() => {}) })
    })
    await r.t.send([ping('ada'), ping('bob')])
    await r.t.advance('1s')
    const { items } = await list(r, 'order=due')
    expect(items.map(({ flow, state, deferredBy, waitsFor }) => [flow, state, deferredBy, waitsFor?.limit])).toEqual([
      ['near', 'running', undefined, 'near'],
      ['far', 'snoozed', 'far', undefined],
    ])
    expect(items[0]?.waitsFor?.in).toBeGreaterThan(6_000)
    expect(names(await list(r, 'state=limited'))).toEqual(['far/bob snoozed'])
    expect(names(await list(r, 'state=snoozed'))).toEqual([])
  })

  test.each([
    ['state=asleep'],
    ['state='],
    ['order=oldest'],
    ['q='],
    ['flow=waits&key=ada&state=ready'],
    ['key=ada&q=a'],
  ])('refuses ?%s', async (query) => {
    const r = await rig(store, () => {})
    const { status, body } = await r.get(`/v1/lanes?${query}`)
    expect([status, (body as { code: string }).code]).toEqual([400, 'REQUEST_INVALID'])
  })
})

const show = async (r: Rig, flow: string, key: string): Promise<ListedLane & LaneDetails> =>
  (await r.get(`/v1/lanes/${laneId(flow, key)}`)).body

describe.each(STORES)('the page of a lane on %s', (store) => {
  test('has the events of its run and those that wait, and the options of its flow', async () => {
    const gate = new Gate()
    const declare = (app: Sluice): Sluice =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '10s' },
        concurrency: 3,
        whileRunning: 'requeue',
        retry: { delays: ['5s', '1m'], jitter: 0.5 },
        timeout: '2m',
        run: () => gate.wait(),
      })
    const r = await rig(store, declare)
    await r.t.send([ping('ada', 1, { subject: 's' }), ping('ada', 2)])
    await r.t.advance('11s')
    await r.t.send(ping('ada', 3))
    const lane = await show(r, 'f', 'ada')
    expect(lane.events.map(({ at, inRun, subject, bytes }) => [at - START, inRun, subject, bytes])).toEqual([
      [0, true, 's', 20],
      [0, true, '', 20],
      [11_000, false, '', 20],
    ])
    expect(lane.arrivals).toEqual(lane.events.map(({ at, inRun }) => ({ at, inRun })))
    expect(lane.flowOptions).toEqual({
      window: { quiet: 10_000, max: 100_000 },
      windowText: 'quiet 10 s, max 1.7 minutes',
      maxEvents: 1_000,
      maxBytes: 4_194_304,
      whileRunning: 'requeue',
      concurrency: 3,
      attempts: 3,
      timeoutMs: 120_000,
      onDead: 'continue',
      take: 'all',
      retryDelays: [5_000, 60_000],
      delivery: false,
    })
    expect(lane).toMatchObject({ state: 'running', slots: { used: 1, of: 3 }, lastRuns: [] })
    gate.open()
    await r.t.settled()
  })

  test('has its last runs, why each batch closed, and the median run', async () => {
    const r = await rig(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '10s', max: '25s', maxEvents: 4 },
        run: ({ signal }) => untilAborted(signal),
        timeout: '2s',
        retry: [],
      }),
    )
    const send = async (...gaps: readonly number[]): Promise<void> => {
      for (const gap of gaps) {
        await r.t.send(ping('ada'))
        await r.t.advance(gap)
      }
    }
    await send(30_000)
    await send(1_000, 1_000, 1_000, 30_000)
    await send(9_000, 30_000)
    await send(9_000, 9_000, 8_000)
    await r.t.advance('30s')
    await send(1_000)
    await r.app.admin.lanes.runNow('f', 'ada')
    await r.t.advance('5s')
    await send(1)
    const { lastRuns, medianRunMs } = await show(r, 'f', 'ada')
    expect(lastRuns.map(({ closedBy, events, kind }) => [closedBy, events, kind])).toEqual([
      ['early', 1, 'dead'],
      ['max', 3, 'dead'],
      ['quiet', 2, 'dead'],
      ['full', 4, 'dead'],
      ['quiet', 1, 'dead'],
    ])
    expect(lastRuns.at(-1)).toMatchObject({
      opened: START,
      latest: START,
      due: START + 10_000,
      started: START + 10_000,
    })
    expect(medianRunMs).toBe(2_000)
  })

  test('hostile keys and subjects are only text', async () => {
    const r = await rig(store, (app) =>
      app.flow('waits', { on: 'late', key: userOf, window: { quiet: '1h' }, run: () => {} }),
    )
    const user = '<img src=x onerror=alert(1)>\u202e'
    await r.t.send({ ...ping(user, 1, { subject: user }), type: 'late' })
    const [lane] = (await list(r, `q=${encodeURIComponent('ONERROR')}`)).items
    expect(lane?.key).toBe(user)
    expect((await show(r, 'waits', user)).events[0]?.subject).toBe(user)
  })
})
