// Tests the alert presets: each at its threshold and above it, and what each counts in a whole app.
import { describe, expect, test } from 'vitest'
import { alerts, type AlertStats, type AlertWindowStats, type Duration } from '../../src/index.ts'
import { readDiskUsage } from '../../src/app/store-handle.ts'
import { Gate, ping, play, sendNow, STORES, userOf } from './scene.ts'
import { ownFile } from '../temporary-folder.ts'

const NOTHING: AlertWindowStats = { p95: undefined, failureRate: undefined, done: 0, ended: 0 }

const figures: AlertStats = {
  now: 0,
  deadLetters: 0,
  p95: undefined,
  failureRate: undefined,
  over: () => NOTHING,
  depth: 0,
  oldest: 0,
  oldestPaused: 0,
  storeBytes: 0,
  diskUsed: undefined,
  memoryUsed: undefined,
  keepBytes: undefined,
  limits: [],
  clockOffset: 0,
  deadRows: undefined,
  snapshot: undefined,
}

const limit = (pausedFor: number, waitsFor: number): Pick<AlertStats, 'limits'> => ({
  limits: [{ name: 'a', pausedFor, waitsFor }],
})

const snapshot = (age: number): Pick<AlertStats, 'snapshot'> => ({
  snapshot: {
    kind: 'session',
    name: '7',
    application: 'report',
    user: 'ana',
    state: 'active',
    age,
    isMinimumAge: false,
  },
})

/** Stats with these values for the last hour, and with nothing for other windows. */
const hour = (what: Partial<AlertWindowStats>): Pick<AlertStats, 'over'> => ({
  over: (window) => (window === 3_600_000 ? { ...NOTHING, ...what } : NOTHING),
})

test.each([
  ['deadLetters', alerts.deadLetters(), { deadLetters: 10 }, { deadLetters: 11 }],
  ['latency', alerts.latency(), hour({ p95: 300_000, done: 20 }), hour({ p95: 300_001, done: 20 })],
  ['latency of few', alerts.latency(), hour({ p95: 300_001, done: 19 }), hour({ p95: 300_001, done: 20 })],
  ['failureRate', alerts.failureRate(), hour({ failureRate: 0.1, ended: 20 }), hour({ failureRate: 0.11, ended: 20 })],
  [
    'failureRate of few',
    alerts.failureRate(),
    hour({ failureRate: 1, ended: 19 }),
    hour({ failureRate: 1, ended: 20 }),
  ],
  [
    'failureRate as said',
    alerts.failureRate({ above: 0.5, atLeast: 1, window: '10m' }),
    hour({ failureRate: 1, ended: 1 }),
    { over: (window: Duration) => ({ ...NOTHING, ...(window === 600_000 ? { failureRate: 1, ended: 1 } : {}) }) },
  ],
  ['depth', alerts.depth(), { depth: 100 }, { depth: 101 }],
  [
    'oldest with paused',
    alerts.oldest({ above: '1m', paused: true }),
    { oldestPaused: 60_000 },
    { oldestPaused: 60_001 },
  ],
  ['oldest', alerts.oldest({ above: '1m' }), { oldest: 60_000 }, { oldest: 60_001 }],
  ['storeBytes', alerts.storeBytes({ above: 5 }), { storeBytes: 5 }, { storeBytes: 6 }],
  [
    'storeBytes of keep.bytes',
    alerts.storeBytes(),
    { storeBytes: 109, keepBytes: 100 },
    { storeBytes: 111, keepBytes: 100 },
  ],
  ['memoryFull', alerts.memoryFull(), { memoryUsed: 0.8 }, { memoryUsed: 0.81 }],
  ['diskFull', alerts.diskFull(), { diskUsed: 0.9 }, { diskUsed: 0.91 }],
  ['limitStarving, paused', alerts.limitStarving(), limit(300_000, 300_000), limit(300_001, 300_001)],
  ['limitStarving, busy', alerts.limitStarving(), limit(0, 300_000), limit(0, 300_001)],
  ['clockOffset', alerts.clockOffset(), { clockOffset: -5_000 }, { clockOffset: -5_001 }],
  ['oldSnapshot', alerts.oldSnapshot(), snapshot(30_000), snapshot(30_001)],
] as const)('the preset %s: at its bound nothing, above it a sentence', (_name, when, at, above) => {
  expect(when(figures)).toBe(false)
  expect(when({ ...figures, ...at })).toBe(false)
  expect(when({ ...figures, ...above })).toMatch(/^.+\.$/)
})

test.each([
  [() => alerts.latency({ window: '59s' }), 'alerts.latency.window'],
  [() => alerts.failureRate({ window: '25h' }), 'alerts.failureRate.window'],
])('bad input: a window that is too short or too long is refused when the app is built', (made, named) => {
  expect(made).toThrow(named)
})

const users = (n: number, name = 'u'): ReturnType<typeof ping>[] =>
  Array.from({ length: n }, (_, at) => ping(`${name}${at}`))

describe.each(STORES)('what presets count on %s', (store) => {
  test('depth counts lanes that are ready, but not open windows and paused flows', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app
        .flow('opened', { on: 'ping', key: userOf, window: { quiet: '1h' }, run: () => {} })
        .flow('paused', { on: 'ping', key: userOf, run: () => {} })
        .flow('busy', { on: 'pong', key: userOf, concurrency: 1, timeout: '1d', run: () => gate.wait() })
        .alert('deep', { when: alerts.depth({ above: 10 }) }),
    )
    const state = async (): Promise<unknown> => (await t.app.admin.alerts.list())[0]
    await t.app.admin.flows.pause('paused', { reason: 'deploy', by: 'ana' })
    await sendNow(t, users(30))
    await t.advance('1m')
    expect(await state()).toMatchObject({ state: 'clear' })
    await sendNow(
      t,
      users(12).map((event) => ({ ...event, type: 'pong' })),
    )
    await t.advance('1m')
    expect(await state()).toMatchObject({ state: 'raised', text: '11 lanes are ready and wait.' })
    await t.app.admin.flows.pause('busy', { reason: 'deploy', by: 'ana' })
    await t.advance('1m')
    expect(await state()).toMatchObject({ state: 'clear' })
  })

  test('failureRate and latency cover the last hour, and need enough events for a percentage', async () => {
    let isUp = false
    const t = await play(store, (app) =>
      app
        .flow('f', {
          on: 'ping',
          key: userOf,
          retry: ['10m'],
          run: () => {
            if (!isUp) throw new Error('no')
          },
        })
        .alert('failures', { when: alerts.failureRate() })
        .alert('slow', { when: alerts.latency() })
        .alert('day', { when: alerts.latency({ window: '24h' }) }),
    )
    const states = async (): Promise<unknown> => (await t.app.admin.alerts.list()).map(({ state }) => state)
    await sendNow(t, users(19))
    await t.advance('1m')
    expect(await states()).toEqual(['clear', 'clear', 'clear'])
    await sendNow(t, ping('another'))
    await t.advance('1m')
    expect(await states()).toEqual(['raised', 'clear', 'clear'])
    isUp = true
    await t.advance('20m')
    expect(await states()).toEqual(['clear', 'raised', 'raised'])
    await t.advance('70m')
    expect(await states()).toEqual(['clear', 'clear', 'raised'])
  })

  test('limitStarving counts calls that wait too long for a slot of a limit that nobody paused', async () => {
    const t = await play(store, (app) => {
      const slow = app.limit('slow', { rate: 1, per: '1m' })
      app
        .flow('f', { on: 'ping', key: userOf, run: () => slow.run(() => {}) })
        .alert('starving', { when: alerts.limitStarving() })
    })
    const state = async (): Promise<unknown> => (await t.app.admin.alerts.list())[0]
    await sendNow(t, users(3))
    await t.advance('20s')
    expect(await state()).toMatchObject({ state: 'clear' })
    await sendNow(t, users(12, 'more'))
    await t.advance('20s')
    const text = expect.stringMatching(/^Calls under the limit slow wait for \d+ s\.$/) as string
    expect(await state()).toMatchObject({ state: 'raised', text })
    await t.advance('30m')
    expect(await state()).toMatchObject({ state: 'clear' })
  })
})

test('readDiskUsage returns how full the disk of a file store is, and undefined for other stores', async () => {
  expect(await readDiskUsage('memory:')).toBeUndefined()
  expect(await readDiskUsage('sqlite::memory:')).toBeUndefined()
  expect(await readDiskUsage('sqlite:/no/such/folder/app.db')).toBeUndefined()
  const used = await readDiskUsage(ownFile())
  expect(used).toBeGreaterThan(0)
  expect(used).toBeLessThanOrEqual(1)
})
