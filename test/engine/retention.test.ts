// L23: finished data is deleted by age and by size; anything that waits, runs, retries, is held or blocks is never deleted.
import { describe, expect, test } from 'vitest'
import {
  snooze,
  PermanentError,
  type Sluice,
  type EventInput,
  type SluiceOptions,
  type Store,
} from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, ping, play, sendNow, Shared, STORES, emittedEvents, userOf, type Declare, type More } from './scene.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** What the store contains: the types of events with bytes, the flows of finished runs, dead letters. */
interface OnRecord {
  readonly events: readonly string[]
  readonly runs: readonly string[]
  readonly deadLetters: readonly string[]
}

async function onRecord(store: Store): Promise<OnRecord> {
  const page = { filter: {}, cursor: '', n: 200 } as const
  const events = await store.find({ kind: 'events', ...page })
  const { bodies } = await store.readBodies({ events: events.items.map(({ id }) => id) })
  return {
    events: events.items.filter((_, n) => bodies[n] !== undefined).map(({ source, type }) => `${source}/${type}`),
    runs: (await store.find({ kind: 'runs', ...page })).items.map(({ flow }) => flow),
    deadLetters: (await store.find({ kind: 'dead', ...page })).items.map(({ key }) => key),
  }
}

type Keep = SluiceOptions['keep']

/** On a store that the test can read. */
async function kept(address: string, keep: Keep, declare: Declare): Promise<{ shared: Shared; app: Sluice }> {
  const shared = await Shared.open(address)
  const app = await shared.process('a', declare, keep === undefined ? {} : { keep })
  return { shared, app }
}

function of(source: string, type = 'ping', user = 'u'): EventInput {
  return { source, type, data: { user } }
}

function lane(more: More = {}): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, run: () => {}, ...more })
}

const shortAndLong: Declare = (app) => {
  app.flow('short', { on: 'ping', key: userOf, keep: '5m', run: () => {} })
  app.flow('long', { on: 'ping', key: userOf, keep: '20m', run: () => {} })
}

describe.each(STORES)('L23 finished data on %s', (store) => {
  test('L23 events and runs are deleted after `keep`, not before', async () => {
    const { shared, app } = await kept(store, { events: '10m' }, lane({ keep: '10m' }))
    await app.publish(of('shop'))
    await shared.advance(9 * MINUTE)
    expect(await onRecord(shared.store)).toEqual({ events: ['shop/ping'], runs: ['f'], deadLetters: [] })
    await app.publish(of('bank'))
    await shared.advance(MINUTE + 30_000)
    expect(await onRecord(shared.store)).toEqual({ events: ['bank/ping'], runs: ['f'], deadLetters: [] })
  })

  test('L23 `keep` by source, with one age for all others', async () => {
    const { shared, app } = await kept(store, { events: { shop: '5m', '': '20m' } }, lane())
    await app.publish([of('shop'), of('bank')])
    await shared.advance(6 * MINUTE)
    expect((await onRecord(shared.store)).events).toEqual(['bank/ping'])
    await shared.advance(15 * MINUTE)
    expect((await onRecord(shared.store)).events).toEqual([])
  })

  test('L23 `keep` by flow: the record of a run is deleted by the age of its flow, once its events are gone', async () => {
    const { shared, app } = await kept(store, { events: '1m' }, shortAndLong)
    await app.publish(of('shop'))
    await shared.advance(4 * MINUTE)
    expect((await onRecord(shared.store)).runs.toSorted()).toEqual(['long', 'short'])
    await shared.advance(2 * MINUTE)
    expect((await onRecord(shared.store)).runs).toEqual(['long'])
    await shared.advance(15 * MINUTE)
    expect((await onRecord(shared.store)).runs).toEqual([])
  })

  test('L23 L10 a deleted event is still known by its dedupe id', async () => {
    const { shared, app } = await kept(store, { events: '1m' }, lane())
    const event = { ...of('shop'), dedupeId: 'x' }
    await app.publish(event)
    await shared.advance(10 * MINUTE)
    expect((await onRecord(shared.store)).events).toEqual([])
    expect(await app.publish(event)).toMatchObject([{ kind: 'duplicate' }])
  })

  test('L23 dead letters are deleted by their own age, with their events, and never with those of others', async () => {
    const keep = { events: '1m', deadLetters: '30m' } as const
    const declare = lane({
      run: () => {
        throw new PermanentError('bad')
      },
    })
    const { shared, app } = await kept(store, keep, declare)
    await app.publish(of('shop'))
    await shared.advance(29 * MINUTE)
    expect(await onRecord(shared.store)).toMatchObject({ events: ['shop/ping'], deadLetters: ['u'] })
    await shared.advance(2 * MINUTE)
    expect(await onRecord(shared.store)).toMatchObject({ events: [], deadLetters: [] })
    expect((await app.admin.deadLetters.list()).items).toEqual([])
  })

  test('L23 keep.bytes deletes the oldest finished events first, and waiting events never', async () => {
    const shared = await Shared.open(store)
    const big = 'x'.repeat(100_000)
    const before = (await shared.store.stats()).bytes
    const app = await shared.process(
      'a',
      (one) => {
        one.flow('f', { on: 'done-*', run: () => {} })
        one.flow('g', { on: 'waits', window: { quiet: '2h' }, run: () => {} })
      },
      { keep: { bytes: before + 600_000 } },
    )
    await app.publish({ type: 'waits', data: { big } })
    for (let n = 0; n < 9; n++) {
      await app.publish({ type: `done-${n}`, data: { big } })
      await shared.advance(1_000)
    }
    await shared.advance(MINUTE)
    const { events } = await onRecord(shared.store)
    expect(events).toContain('app/waits')
    expect(events).toContain('app/done-8')
    expect(events).not.toContain('app/done-0')
    expect((await shared.store.stats()).bytes).toBeLessThanOrEqual(before + 600_000)
    const done = events.filter((type) => type.startsWith('app/done')).toSorted()
    expect(done).toEqual(Array.from({ length: done.length }, (_, n) => `app/done-${9 - done.length + n}`))
  })
})

const GREEDY = { keep: { events: 0, deadLetters: 0, bytes: 1 } } as const

/** No process runs for this long; then one does, with maintenance. */
async function later(t: TestApp, by: Parameters<TestApp['advance']>[0]): Promise<void> {
  await t.crash()
  await t.advance(by)
  await t.restart()
  await t.advance('3h')
}

function greedy(store: string, more: More): Promise<TestApp> {
  return play(store, lane({ keep: 0, ...more }), GREEDY)
}

describe.each(STORES)('L23 unfinished data is kept, after years and with nothing else kept, on %s', (store) => {
  test('L23 events that wait for their window', async () => {
    const t = await greedy(store, { window: { quiet: '1000d', max: Infinity } })
    await t.send(ping('u', 1))
    await later(t, '998d')
    await t.send(ping('u', 2))
    await later(t, '1000d')
    expect(t.runs).toMatchObject([{ events: [{ n: 1 }, { n: 2 }], ending: 'done' }])
  })

  test('L23 events of paused flows and held lanes', async () => {
    const t = await greedy(store, {})
    await t.app.admin.flows.pause('f', { reason: 'deploy', by: 'ana' })
    await t.send([ping('u', 1), ping('v', 2)])
    await t.app.admin.lanes.hold('f', 'v', { reason: 'asked to', by: 'ana' })
    await later(t, '800d')
    await t.app.admin.flows.resume('f', 'ana')
    await t.advance('1h')
    expect(t.runs).toMatchObject([{ key: 'u', events: [{ n: 1 }] }])
    await later(t, '800d')
    await t.app.admin.lanes.unhold('f', 'v')
    await t.advance('1h')
    expect(t.runs).toMatchObject([{ key: 'u' }, { key: 'v', events: [{ n: 2 }] }])
  })

  test('L23 a live run, and the events that wait behind it', async () => {
    const gate = new Gate()
    const t = await greedy(store, { timeout: '100d', run: () => gate.wait() })
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    await t.advance('1d')
    gate.open()
    await t.advance('1h')
    expect(t.runs).toMatchObject([{ events: [{ n: 1 }], ending: 'done' }, { events: [{ n: 2 }] }])
    gate.open()
    await t.settled()
  })

  test('L23 runs that wait for a retry or are snoozed', async () => {
    const t = await greedy(store, {
      retry: ['400d'],
      run: ({ key, state }) =>
        (key === 'a' && state === undefined ? snooze({ after: '20h', state: 1 }) : undefined) as void,
    })
    t.fail('f', new Error('no'))
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('a', 2))
    await later(t, '401d')
    expect(t.runs).toMatchObject([
      { key: 'u', ending: 'retry' },
      { key: 'a', ending: 'snoozed' },
      { key: 'a', events: [{ n: 2 }], ending: 'done' },
      { key: 'u', attempt: 2, events: [{ n: 1 }], ending: 'done' },
    ])
  })

  test('L23 L9 a dead letter that blocks, and the events that wait behind it', async () => {
    const t = await greedy(store, { onDead: 'block' })
    t.fail('f', new PermanentError('bad'))
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    await later(t, '3000d')
    const { items } = await t.app.admin.deadLetters.list()
    expect(items).toMatchObject([{ key: 'u', blocks: true }])
    expect(await t.app.admin.deadLetters.retry(items[0]?.id ?? '')).toBe('ok')
    await t.advance('1h')
    expect(t.runs.slice(1)).toMatchObject([
      { events: [{ n: 1 }], ending: 'done' },
      { events: [{ n: 2 }], ending: 'done' },
    ])
    await later(t, '1d')
    expect((await t.app.admin.deadLetters.list()).items).toEqual([])
  })

  test('L23 L2a unrouted events', async () => {
    const fault = { broken: true }
    const key = (): string => {
      if (fault.broken) throw new Error('cannot read it')
      return 'u'
    }
    const t = await greedy(store, { key })
    await sendNow(t, ping('u', 1))
    await later(t, '1000d')
    fault.broken = false
    await t.app.admin.deadLetters.retry({ kind: 'unrouted' })
    await t.advance('1h')
    expect(t.runs).toMatchObject([{ events: [{ n: 1 }], ending: 'done' }])
  })

  test('L23 a delayed event', async () => {
    const t = await greedy(store, {})
    await t.send(ping('u', 1), { at: Date.UTC(2036, 0, 1) })
    await later(t, 3640 * DAY)
    expect(t.runs.filter(({ flow }) => flow === 'f')).toEqual([])
    await later(t, 20 * DAY)
    expect(emittedEvents(t, 'run.done').filter(({ flow }) => flow === 'f')).toHaveLength(1)
  })
})

describe.each(STORES)('L23 regressions on %s', (store) => {
  // Regression: infinite ages were dropped, so a flow with `keep: Infinity` got the age of all others.
  test('L23 runs of a flow that keeps them forever stay', async () => {
    const { shared, app } = await kept(store, { events: '1m' }, lane({ keep: Infinity }))
    await app.publish(of('shop'))
    await shared.advance(10 * MINUTE)
    expect((await onRecord(shared.store)).runs).toEqual(['f'])
  })
})
