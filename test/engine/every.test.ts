// Schedules: one run per tick, also with cron; after a downtime, the last missed tick runs once.
import { describe, expect, test } from 'vitest'
import { Sluice, type Store } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, play, Shared, START, STORES } from './scene.ts'
import { ownFile } from '../temporary-folder.ts'

const MINUTE = 60_000

function ticksOf(t: TestApp): readonly number[] {
  return t.runs.map((run) => (run.events[0] as { tick: number }).tick - START)
}

describe.each(STORES)('every on %s', (store) => {
  test('every 5m has one run per tick, on the clock', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}), { now: START + MINUTE })
    await t.advance('20m')
    expect(ticksOf(t)).toEqual([5, 10, 15, 20].map((n) => n * MINUTE))
    expect(t.runs.map((run) => run.at + MINUTE)).toEqual([5, 10, 15, 20].map((n) => n * MINUTE))
    expect(t.runs.every((run) => run.flow === 'every/sweep' && run.key === 'sweep')).toBe(true)
  })

  test.for([
    ['1.1h', 3_960_000],
    ['100.4s', 100_400],
    ['1000.6ms', 1_001],
  ] as const)('every %s: in whole milliseconds', async ([when, every]) => {
    const t = await play(store, (app) => app.every('odd', when, () => {}))
    const from = Math.floor(START / every) * every + every
    await t.advance(4 * every)
    expect(ticksOf(t)).toEqual([0, 1, 2, 3].map((n) => from + n * every - START))
  })

  test('a clock that jumps forward, as after a sleep of the machine, makes a tick at most a minute late', async () => {
    const shared = await Shared.open(store)
    const ran: number[] = []
    await shared.process('p', (app) => app.every('hourly', '1h', ({ events }) => void ran.push(events[0]?.time ?? 0)))
    await shared.advance(MINUTE)
    shared.clock.set(shared.clock.now() + 8 * 60 * MINUTE)
    await shared.advance(MINUTE)
    expect(ran.map((at) => (at - START) / MINUTE)).toEqual([480])
  })

  test('cron uses UTC unless a time zone is given', async () => {
    const t = await play(store, (app) =>
      app.every('utc', '30 2 * * *', () => {}).every('berlin', '30 2 * * *', () => {}, { timeZone: 'Europe/Berlin' }),
    )
    await t.advance('24h')
    const of = (name: string) => t.runs.filter((run) => run.key === name).map((run) => run.at / MINUTE)
    expect(of('utc')).toEqual([150])
    expect(of('berlin')).toEqual([90])
  })

  test('a tick during a long run does not run beside it; of several, the last one runs', async () => {
    const gate = new Gate()
    const t = await play(store, (app) => app.every('slow', '1m', () => (t.runs.length === 1 ? gate.wait() : undefined)))
    await t.advance('3m')
    await t.advance('30s')
    expect(t.runs).toHaveLength(1)
    gate.open()
    await t.advance('10s')
    expect(ticksOf(t)).toEqual([MINUTE, 3 * MINUTE])
  })

  test('of the ticks missed while the process was down, one runs', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}))
    await t.advance('6m')
    await t.crash()
    await t.advance('62m')
    expect(ticksOf(t)).toEqual([5 * MINUTE])
    await t.restart()
    await t.advance('10s')
    expect(ticksOf(t)).toEqual([5 * MINUTE, 65 * MINUTE])
    await t.advance('3m')
    expect(ticksOf(t)).toEqual([5 * MINUTE, 65 * MINUTE, 70 * MINUTE])
  })

  test('a restart right after a tick does not run it again', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}))
    await t.advance('6m')
    await t.crash()
    await t.restart()
    await t.advance('1m')
    expect(ticksOf(t)).toEqual([5 * MINUTE])
  })

  test('ticks before the schedule was first declared do not run', async () => {
    const t = await play(store, (app) => app.every('daily', '0 0 * * *', () => {}), { now: START + 12 * 60 * MINUTE })
    await t.advance('1h')
    expect(t.runs).toEqual([])
  })

  test('a failed tick is retried like any run', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}))
    t.fail('every/sweep', new Error('once'))
    await t.advance('302s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }, { ending: 'done', attempt: 2 }])
  })
})

/** A store that rejects the calls that the test chooses. */
function troubled(store: Store, isWanting: (name: string, call: unknown) => boolean): Store {
  return new Proxy(store, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown =>
        isWanting(String(name), args[0]) ? Promise.reject(new Error('away')) : Reflect.apply(member, target, args)
    },
  })
}

function isOfSecond(name: string, call: unknown): boolean {
  return name === 'readDocs' && JSON.stringify(call).includes('"second"')
}

describe.each(STORES)('every when the store is away, on %s', (store) => {
  async function withTrouble(when: string): Promise<{
    readonly shared: Shared
    readonly ran: number[]
    readonly trouble: { on: boolean }
    readonly app: Sluice
  }> {
    const shared = await Shared.open(store)
    const ran: number[] = []
    const trouble = { on: false }
    const wanting = (name: string): boolean => trouble.on && name === 'append'
    const app = new Sluice({ log: false, store: troubled(shared.store, wanting), clock: shared.clock, poll: '1m' })
    app.every('sweep', when, ({ events }) => {
      for (const { time } of events) ran.push(time - START)
    })
    await app.start()
    return { shared, ran, trouble, app }
  }

  test('a tick that could not be stored is stored soon, before the next tick', async () => {
    const { shared, ran, trouble, app } = await withTrouble('*/30 * * * *')
    await shared.advance(29 * MINUTE)
    trouble.on = true
    await shared.advance(3 * MINUTE)
    trouble.on = false
    expect(ran).toEqual([])
    await shared.advance(MINUTE)
    expect(ran).toEqual([30 * MINUTE])
    await shared.advance(28 * MINUTE)
    expect(ran).toEqual([30 * MINUTE, 60 * MINUTE])
    await shared.stop(app)
  })

  test('of several ticks that could not be stored, the last one is stored later, and the schedule continues', async () => {
    const { shared, ran, trouble, app } = await withTrouble('1m')
    trouble.on = true
    await shared.advance(10 * MINUTE + 30_000)
    trouble.on = false
    await shared.advance(2 * MINUTE)
    expect(ran.length).toBeGreaterThanOrEqual(2)
    expect(ran[0]).toBeGreaterThanOrEqual(10 * MINUTE)
    expect(ran.at(-1)).toBe(12 * MINUTE)
    await shared.stop(app)
  })

  test('a failed start runs nothing, and a second start starts the schedules once', async () => {
    const shared = await Shared.open(store)
    let away = true
    const isOfReplays = (name: string, call: unknown): boolean =>
      away && name === 'readDocs' && JSON.stringify(call).includes('"replay"')
    const app = new Sluice({ log: false, store: troubled(shared.store, isOfReplays), clock: shared.clock })
    const seen: string[] = []
    app.flow('f', { on: 'ping', run: ({ events }) => void seen.push(events[0]?.id ?? '') })
    app.on('store.lost', () => seen.push('lost'))
    await expect(app.start()).rejects.toThrow('away')
    await app.publish({ id: 'a', type: 'ping' })
    await shared.advance(MINUTE)
    expect(seen).toEqual([])
    away = false
    await app.start()
    await app.publish({ id: 'b', type: 'ping' })
    await shared.advance(MINUTE)
    expect(seen).toEqual(['a', 'b'])
    await shared.stop(app)
    const other = await shared.process('other', (one) => one.flow('g', { on: 'pong', run: () => {} }))
    await other.publish({ id: 'c', type: 'ping' })
    await shared.advance(MINUTE)
    expect(seen).toEqual(['a', 'b'])
  })

  test('a start that fails on one schedule starts no other one', async () => {
    const shared = await Shared.open(store)
    const app = new Sluice({ log: false, store: troubled(shared.store, isOfSecond), clock: shared.clock })
    let ticks = 0
    app.on('event.received', ({ type }) => void (ticks += type === 'first' ? 1 : 0))
    app.every('first', '1m', () => {}).every('second', '1m', () => {})
    await expect(app.start()).rejects.toThrow('away')
    await shared.advance(10 * MINUTE)
    expect(ticks).toBe(0)
    await shared.stop(app)
  })
})

describe('every after a real downtime, on a file', () => {
  test('the next process runs the missed tick once', async () => {
    const store = ownFile()
    const first = await play(store, (app) => app.every('hourly', '0 * * * *', () => {}))
    await first.advance('90m')
    expect(ticksOf(first)).toEqual([60 * MINUTE])
    await first.stop()
    const t = await play(store, (app) => app.every('hourly', '0 * * * *', () => {}), { now: START + 330 * MINUTE })
    await t.advance('1m')
    expect(ticksOf(t)).toEqual([300 * MINUTE])
    await t.advance('29m')
    expect(ticksOf(t)).toEqual([300 * MINUTE, 360 * MINUTE])
  })
})
