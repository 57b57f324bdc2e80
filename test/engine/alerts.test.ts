// Built-in alerts notify once of problems that do not end by themselves: late lanes, an unserved flow, failing maintenance (L19).
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice, type EventMap, type Store } from '../../src/index.ts'
import { Gate, ping, Shared, STORES, userOf, type Declare } from './scene.ts'

const MINUTE = 60_000

/** The alerts that an app raised and cleared, in order, as `+alert` and `-alert`. */
function alertsOf(app: Sluice): string[] {
  const heard: string[] = []
  app.on('alert.raised', ({ alert }) => void heard.push(`+${alert}`))
  app.on('alert.cleared', ({ alert }) => void heard.push(`-${alert}`))
  return heard
}

function unservedOf(app: Sluice): EventMap['flow.unserved'][] {
  const heard: EventMap['flow.unserved'][] = []
  app.on('flow.unserved', (what) => void heard.push(what))
  return heard
}

const nothing: Declare = (app) => app.flow('other', { on: 'other', run: () => {} })

const both: Declare = (app) => {
  nothing(app)
  app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1h' }, run: () => {} })
}

function waiting(gate: Gate, name = 'f'): Declare {
  return (app) =>
    app.flow(name, { on: 'ping', key: userOf, concurrency: 1, timeout: '1d', run: ({ key }) => gate.wait(key) })
}

describe.each(STORES)('a late lane on %s', (store) => {
  test('raises the alert once and clears it once, and again the next time', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const app = await shared.process('a', waiting(gate), { lateAfter: '1m' })
    const heard = alertsOf(app)
    for (const round of [1, 2]) {
      await app.publish([ping('slow'), ping('behind'), ping('last')])
      await shared.advance(50_000)
      expect(heard).toHaveLength(2 * (round - 1))
      await shared.advance(20 * MINUTE)
      expect(heard).toHaveLength(2 * round - 1)
      // `last` keeps the flow busy, and is not late.
      for (const key of ['slow', 'behind']) {
        gate.open(key)
        await shared.advance(100)
      }
      await shared.advance(10 * MINUTE)
      gate.open('last')
      await shared.advance(MINUTE)
    }
    expect(heard).toEqual(['+late:f', '-late:f', '+late:f', '-late:f'])
  })

  test('a lane that is paused, held or waits for its window is not late', async () => {
    const shared = await Shared.open(store)
    const app = await shared.process(
      'a',
      (one) => {
        one.flow('paused', { on: 'ping', key: userOf, run: () => {} })
        one.flow('held', { on: 'ping', key: userOf, window: { quiet: '1s' }, run: () => {} })
        one.flow('window', { on: 'ping', key: userOf, window: { quiet: '10h' }, run: () => {} })
      },
      { lateAfter: '1m' },
    )
    const heard = alertsOf(app)
    await app.admin.flows.pause('paused', { reason: 'deploy', by: 'ana' })
    await app.publish(ping('u'))
    await app.admin.lanes.hold('held', 'u', { reason: 'asked to', by: 'ana' })
    await shared.advance(60 * MINUTE)
    expect(heard).toEqual([])
  })
})

describe.each(STORES)('L19 an unserved flow on %s', (store) => {
  test('L19 an unserved flow raises an alert after a minute, once, with its lanes', async () => {
    const shared = await Shared.open(store)
    const old = await shared.process('old', (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1h' }, run: () => {} }),
    )
    await old.publish([ping('u'), ping('v')])
    await shared.stop(old)
    const app = await shared.process('new', nothing)
    const heard = unservedOf(app)
    await shared.advance(50_000)
    expect(heard).toEqual([])
    await shared.advance(20_000)
    expect(heard).toEqual([{ flow: 'f', lanes: 2 }])
    await shared.advance(30 * MINUTE)
    expect(heard).toHaveLength(1)
  })

  test('L19 a flow that is served here, or that has no events, raises no alert', async () => {
    const shared = await Shared.open(store)
    const app = await shared.process('a', both)
    const heard = unservedOf(app)
    await app.publish(ping('u'))
    await shared.advance(10 * MINUTE)
    expect(heard).toEqual([])
  })

  test('L19 events of an unserved flow are kept, and run when a process serves the flow again', async () => {
    const ran: string[] = []
    const shared = await Shared.open(store)
    const old = await shared.process('old', (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1h' }, run: () => {} }),
    )
    await old.publish(ping('u'))
    await shared.stop(old)
    const app = await shared.process('a', nothing)
    const heard = unservedOf(app)
    await shared.advance(70 * MINUTE)
    expect(heard).toHaveLength(1)
    await shared.process('new', (one) =>
      one.flow('f', { on: 'ping', key: userOf, run: ({ key }) => void ran.push(key) }),
    )
    await shared.advance(2_000)
    expect(ran).toEqual(['u'])
  })
})

describe.each(STORES)('failing maintenance on %s', (store) => {
  test('raises the alert once and clears it once, while runs continue', async () => {
    const shared = await Shared.open(store)
    const state = { broken: true }
    const failing: Store = new Proxy(shared.store, {
      get: (target, name): unknown =>
        name === 'maintain' && state.broken
          ? () => Promise.reject(new Error('the disk is full'))
          : (Reflect.get(target, name) as unknown),
    })
    const app = new Sluice({ log: false, store: failing, clock: shared.clock })
    const done: string[] = []
    app.flow('f', { on: 'ping', key: userOf, run: ({ key }) => void done.push(key) })
    const heard = alertsOf(app)
    const texts: string[] = []
    app.on('alert.raised', ({ text }) => void texts.push(text))
    await app.start()
    onTestFinished(() => shared.stop(app))
    await shared.advance(10 * MINUTE)
    expect(heard).toEqual(['+maintenance:retention'])
    expect(texts).toEqual(['the disk is full'])
    await app.publish(ping('u'))
    await shared.advance(100)
    expect(done).toEqual(['u'])
    state.broken = false
    await shared.advance(10 * MINUTE)
    expect(heard).toEqual(['+maintenance:retention', '-maintenance:retention'])
  })
})

function busy(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Runs in real time the flow whose handler blocks the event loop, and returns the alert that follows. */
async function lagOf(run: () => void | Promise<void>): Promise<EventMap['alert.raised']> {
  const app = new Sluice({ store: 'memory:', log: false, shutdownTimeout: 0 })
  app.flow('greedy', { on: 'ping', key: userOf, run })
  await app.start()
  onTestFinished(() => app.stop())
  const raised = app.once('alert.raised')
  await app.publish(ping('u'))
  return raised
}

describe('the event loop', () => {
  test('a handler that blocks the event loop and continues is named, with the duration', async () => {
    const gate = new Gate()
    const { alert, text } = await lagOf(async () => {
      busy(1_600)
      await gate.wait()
    })
    gate.open()
    expect(alert).toBe('loop-lag')
    expect(text).toContain('greedy "u"')
    expect(text).toMatch(/[1-9][0-9]{3,} ms/)
  })

  // Regression: the timer of LoopLag fired after the run was settled in microtasks, when no live run could be named.
  test('a handler that blocks the event loop and then ends is named too', async () => {
    const { text } = await lagOf(() => busy(1_600))
    expect(text).toContain('greedy "u"')
  })
})

describe.each(STORES)('regressions of alerts on %s', (store) => {
  // Regression: only flows with a backlog were checked, so the alert of a drained flow stayed.
  test('a late lane that is empty now clears the alert', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const app = await shared.process('a', waiting(gate), { lateAfter: '1m' })
    const heard = alertsOf(app)
    await app.publish([ping('slow'), ping('behind')])
    await shared.advance(5 * MINUTE)
    for (const key of ['slow', 'behind']) {
      gate.open(key)
      await shared.advance(100)
    }
    await shared.advance(5 * MINUTE)
    expect(heard).toEqual(['+late:f', '-late:f'])
  })

  // Regression: every flow of another process counted as unserved, even if that process announced that it serves the flow.
  test('L19 a flow that another process serves is not unserved', async () => {
    const shared = await Shared.open(store)
    const a = await shared.process('a', (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1h' }, run: () => {} }),
    )
    const heard = unservedOf(await shared.process('b', nothing))
    await a.publish(ping('u'))
    await shared.advance(10 * MINUTE)
    expect(heard).toEqual([])
  })

  // Regression: an event for an unserved flow is unrouted (`unknown-flow`) and in no lane, so it was not noticed.
  test('L19 an unserved flow that has only unrouted events raises the alert too', async () => {
    const shared = await Shared.open(store)
    const old = await shared.process('old', (app) => app.flow('f', { on: 'ping', key: userOf, run: () => {} }))
    await shared.stop(old)
    const app = await shared.process('new', nothing)
    const heard = unservedOf(app)
    await app.publish(ping('u'))
    await shared.advance(10 * MINUTE)
    expect(heard).toMatchObject([{ flow: 'f' }])
  })
})
