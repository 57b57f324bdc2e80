// L21: only the store's clock is compared. It may jump, and processes may have wrong clocks: nothing is lost, no lane runs twice at once.
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice, type Clock, type Run } from '../../src/index.ts'
import { Gate, ping, Shared, START, STORES, userOf, type Declare } from './scene.ts'

const HOUR = 3_600_000
const MINUTE = 60_000

interface Seen {
  readonly key: string
  readonly at: number
  readonly id: string
}

function noting(shared: Shared, seen: Seen[], window: { quiet: '10s' } | undefined): Declare {
  const run = ({ key, id }: Run): void => void seen.push({ key, id, at: shared.clock.monotonic() })
  return (app) => app.flow('f', { on: 'ping', key: userOf, ...(window === undefined ? {} : { window }), run })
}

function step(shared: Shared, by: number): void {
  shared.clock.set(shared.clock.now() + by)
}

/** The same clock, shifted. */
function wrong(clock: Clock, by: number): Clock {
  return {
    now: () => clock.now() + by,
    monotonic: () => clock.monotonic(),
    after: (delay, call) => clock.after(delay, call),
  }
}

async function started(shared: Shared, declare: Declare, clock: Clock, process: string): Promise<Sluice> {
  const app = new Sluice({ log: false, store: shared.store, clock, process })
  declare(app)
  await app.start()
  onTestFinished(() => shared.stop(app))
  await shared.settled()
  return app
}

describe.each(STORES)('L21 the clock of the store jumps on %s', (store) => {
  test('L21 back by an hour: deadlines are an hour later, nothing is lost, new events run', async () => {
    const shared = await Shared.open(store)
    const seen: Seen[] = []
    const app = await shared.process('a', noting(shared, seen, { quiet: '10s' }))
    await app.publish(ping('before'))
    await shared.advance(5_000)
    step(shared, -HOUR)
    await app.publish(ping('after'))
    await shared.advance(12_000)
    expect(seen.map(({ key }) => key)).toEqual(['after'])
    await shared.advance(HOUR)
    expect(seen.map(({ key }) => key)).toEqual(['after', 'before'])
    const [, before] = seen
    expect(before?.at).toBeGreaterThanOrEqual(HOUR + 10_000)
    expect(before?.at).toBeLessThan(HOUR + 12_000)
  })

  test('L21 forward by an hour: waiting lanes are due at once', async () => {
    const shared = await Shared.open(store)
    const seen: Seen[] = []
    const app = await shared.process('a', noting(shared, seen, { quiet: '10s' }))
    await app.publish(ping('u'))
    await shared.advance(5_000)
    step(shared, HOUR)
    await shared.advance(1_500)
    expect(seen.map(({ key }) => key)).toEqual(['u'])
  })

  test('L21 back: a live run continues and is settled, and no second one starts', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const ended: string[] = []
    const declare: Declare = (app) => {
      app.onAny((name) => void (/^run\.(started|done|lost)/.test(name) && ended.push(name)))
      app.flow('f', { on: 'ping', key: userOf, timeout: '3h', run: () => gate.wait() })
    }
    const a = await shared.process('a', declare)
    await shared.process('b', declare)
    await a.publish(ping('u'))
    await shared.advance(100)
    step(shared, -HOUR)
    await shared.advance(2 * MINUTE)
    gate.open()
    await shared.advance(1_000)
    expect(ended).toEqual(['run.started', 'run.done'])
    expect((await a.explain('f', 'u')).state).toBe('empty')
  })

  test('L21 L1 forward: the lease lapses, the run returns, and only the newest token counts', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const log: string[] = []
    const declare =
      (name: string): Declare =>
      (app) => {
        app.on('run.done', ({ run }) => void log.push(`done ${name} ${run}`))
        app.on('run.lost', () => void log.push(`lost ${name}`))
        app.flow('f', { on: 'ping', key: userOf, timeout: '3h', run: () => gate.wait(name) })
      }
    const a = await shared.process('a', declare('a'))
    await a.publish(ping('u'))
    await shared.advance(100)
    await shared.process('b', declare('b'))
    step(shared, HOUR)
    await shared.advance(2_000)
    // Either handler may have it now; the first one learns with its next heartbeat.
    await shared.advance(15_000)
    expect(log).toEqual(['lost a'])
    const again = gate.waits('b') > 0 ? 'b' : 'a'
    // The ending of the lost handler does not count.
    if (gate.waits('a') > 0) gate.open('a')
    await shared.advance(10_000)
    if (gate.waits(again) > 0) gate.open(again)
    await shared.advance(10_000)
    expect(log.filter((line) => line.startsWith('done'))).toHaveLength(1)
    expect((await a.explain('f', 'u')).state).toBe('empty')
  })

  test.each([-HOUR, HOUR])('L21 by %i ms: a retry runs with the same id', async (by) => {
    const shared = await Shared.open(store)
    const tries: string[] = []
    const app = await shared.process('a', (one) =>
      one.flow('f', {
        on: 'ping',
        key: userOf,
        retry: ['30s'],
        run: ({ id }) => {
          tries.push(id)
          if (tries.length === 1) throw new Error('no')
        },
      }),
    )
    await app.publish(ping('u'))
    await shared.advance(1_000)
    step(shared, by)
    await shared.advance(40_000 + (by < 0 ? HOUR : 0))
    expect(tries).toHaveLength(2)
    expect(new Set(tries).size).toBe(1)
  })

  test('L21 M1 back: a limit gives its slots later, and never exceeds its rate', async () => {
    const shared = await Shared.open(store)
    const calls: number[] = []
    const app = new Sluice({ log: false, store: shared.store, clock: shared.clock })
    const limit = app.limit('api', { rate: 2, per: '1s' })
    const call = (): Promise<unknown> => limit.run(() => calls.push(shared.clock.monotonic()))
    const first = [call(), call(), call()]
    await shared.settled()
    step(shared, -HOUR)
    const second = [call(), call()]
    await shared.advance(HOUR + 10_000)
    await Promise.all([...first, ...second])
    expect(calls).toHaveLength(5)
    for (const [n, at] of calls.entries()) if (n >= 2) expect(at - (calls[n - 2] ?? 0)).toBeGreaterThanOrEqual(1_000)
  })
})

describe.each(STORES)('L21 processes with wrong clocks on %s', (store) => {
  test.each([-HOUR, HOUR])('L21 windows follow the clock of the store (%i ms off)', async (by) => {
    const shared = await Shared.open(store)
    const seen: Seen[] = []
    const app = await started(shared, noting(shared, seen, { quiet: '10s' }), wrong(shared.clock, by), 'a')
    await shared.advance(1_000)
    await app.publish(ping('u'))
    await shared.advance(30_000)
    expect(seen).toMatchObject([{ key: 'u', at: 11_000 }])
  })

  test('L21 L1 two processes an hour off in both directions never run a lane at the same time', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const live = { now: 0, most: 0, done: 0 }
    const declare: Declare = (app) =>
      app.flow('f', {
        on: 'ping',
        key: () => 'one',
        timeout: '3h',
        run: async () => {
          live.most = Math.max(live.most, ++live.now)
          await gate.wait()
          live.now--
          live.done++
        },
      })
    const a = await started(shared, declare, wrong(shared.clock, -HOUR), 'a')
    const b = await started(shared, declare, wrong(shared.clock, HOUR), 'b')
    for (const app of [a, b, a, b]) {
      await app.publish(ping('u'))
      await shared.advance(2 * MINUTE)
      gate.open()
      await shared.advance(2_000)
    }
    expect(live).toEqual({ now: 0, most: 1, done: 4 })
  })

  test.each([-HOUR, HOUR])('L21 a delayed event is due by the clock of the store (%i ms off)', async (by) => {
    const shared = await Shared.open(store)
    const seen: Seen[] = []
    const app = await started(shared, noting(shared, seen, undefined), wrong(shared.clock, by), 'a')
    await shared.advance(2_000)
    await app.publish(ping('u'), { at: shared.clock.now() + MINUTE })
    await shared.advance(2 * HOUR)
    expect(seen).toHaveLength(1)
    expect(seen[0]?.at).toBeLessThan(2_000 + MINUTE + 1_000)
    expect(seen[0]?.at).toBeGreaterThanOrEqual(2_000 + MINUTE)
  })

  test("L21 ticks follow the clock of the store if a process's clock is late", async () => {
    expect(await ticksOf(store, -HOUR + 7 * MINUTE)).toEqual([15, 30, 45, 60])
  })
})

/** The minutes of the ticks within an hour, in a process with a wrong clock. */
async function ticksOf(store: string, by: number): Promise<readonly number[]> {
  const shared = await Shared.open(store)
  const ticks: number[] = []
  const declare: Declare = (app) => app.every('sweep', '15m', () => void ticks.push(shared.clock.now()))
  await started(shared, declare, wrong(shared.clock, by), 'a')
  await shared.advance(HOUR + 1_000)
  return ticks.map((at) => Math.round((at - START) / MINUTE))
}

describe.each(STORES)('L21 regressions on %s', (store) => {
  // Regression: a schedule started with the process's own clock, before the store's time was known. A tick of the future
  // was published, and the real tick was then a duplicate.
  test("L21 ticks follow the clock of the store if a process's clock is early", async () => {
    expect(await ticksOf(store, HOUR + 7 * MINUTE)).toEqual([15, 30, 45, 60])
  })

  // Regression: an app that only publishes used its own clock, so its delayed events were off by the same amount.
  test.each([-HOUR, HOUR])('L21 a delayed event of an app that only publishes (%i ms off)', async (by) => {
    const shared = await Shared.open(store)
    const seen: Seen[] = []
    await shared.process('a', noting(shared, seen, undefined))
    const sender = new Sluice({ log: false, store: shared.store, clock: wrong(shared.clock, by) })
    const before = shared.clock.monotonic()
    await sender.publish(ping('u'), { at: shared.clock.now() + MINUTE })
    await shared.advance(2 * MINUTE)
    expect(seen).toHaveLength(1)
    expect((seen[0]?.at ?? 0) - before).toBeGreaterThanOrEqual(MINUTE)
  })

  // Regression: any time from the store was accepted without notice.
  test.each([-HOUR, HOUR])("L21 a jump of the store's clock by %i ms raises an alert", async (by) => {
    const shared = await Shared.open(store)
    const app = await shared.process('a', noting(shared, [], undefined))
    const raised: string[] = []
    app.on('alert.raised', ({ alert }) => void raised.push(alert))
    await shared.advance(10_000)
    step(shared, by)
    await shared.advance(60_000)
    expect(raised).toHaveLength(1)
  })
})
