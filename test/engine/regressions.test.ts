// Bugs that the engine once had, each as the smallest test that shows it.
import { describe, expect, test } from 'vitest'
import { snooze, Sluice, SluiceError, type EventInput, type FlowOptions, type Run } from '../../src/index.ts'
import { Gate, keysOf, ping, play, sendNow, Shared, START, STORES, emittedEvents, userOf } from './scene.ts'

describe.each(STORES)('regressions on %s', (store) => {
  test('L2a an unrouted event that is retried by hand is placed, without a restart', async () => {
    const fault = { broken: true }
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: (event) => {
          if (fault.broken) throw new Error('broken')
          return userOf(event)
        },
        run: () => {},
      }),
    )
    await sendNow(t, ping('u', 1))
    fault.broken = false
    const { items } = await t.app.admin.deadLetters.list({ kind: 'unrouted' })
    expect(await t.app.admin.deadLetters.retry(items[0]?.id ?? '')).toBe('ok')
    await t.advance('2h')
    expect(keysOf(t)).toEqual(['u'])
  })

  test('L2 an event for a flow of another process is placed by that process', async () => {
    const shared = await Shared.open(store)
    const ran: string[] = []
    const front = await shared.process('front', (app) => app.flow('front', { on: 'front', run: () => {} }))
    await shared.process('back', (app) =>
      app.flow('back', { on: 'ping', key: userOf, run: ({ key }) => void ran.push(key) }),
    )
    await front.publish(ping('u'))
    await shared.advance(2_000)
    expect(ran).toEqual(['u'])
  })

  test('L11 an event without a key that a run publishes is skipped and counted', async () => {
    const t = await play(store, (app) =>
      app
        .flow('f', { on: 'ping', run: (run) => run.publish({ type: 'pong', data: {} }) })
        .flow('g', { on: 'pong', key: userOf, run: () => {} }),
    )
    await sendNow(t, ping('u'))
    expect(emittedEvents(t, 'event.skipped')).toMatchObject([{ flow: 'g', type: 'pong' }])
  })

  test('L2 an event that a run publishes into over 100 lanes is placed within a second', async () => {
    const t = await play(store, (app) =>
      app
        .flow('f', { on: 'ping', run: (run) => run.publish({ type: 'pong' }) })
        .flow('g', { on: 'pong', key: () => Array.from({ length: 150 }, (_, n) => `k${n}`), run: () => {} }),
    )
    await sendNow(t, ping('u'))
    await t.advance('1s')
    expect(t.runs).toHaveLength(151)
  })

  test('a flow on ** does not get internal events', async () => {
    const t = await play(store, (app) => app.flow('all', { on: '**', run: () => {} }).every('sweep', '1m', () => {}))
    await t.send(ping('u', 1), { at: START + 30_000 })
    await t.advance('61s')
    expect(t.runs.filter((run) => run.flow === 'all').map((run) => run.events)).toEqual([[{ user: 'u', n: 1 }]])
  })

  test('at: the time of an event survives the wait', async () => {
    const times: number[] = []
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', run: ({ events }) => void times.push(events[0]?.time ?? 0) }),
    )
    await t.send({ ...ping('u'), time: new Date(START - 1_000) }, { at: START + 1_000 })
    await t.advance('2s')
    expect(times).toEqual([START - 1_000])
  })

  test.each<[string, unknown]>([
    ['type', { type: 5 }],
    ['data', { type: 'ping', data: 10n }],
    ['body', { type: 'ping', data: 1, body: 'x' }],
    ['tenant', { type: 'ping', tenant: 5 }],
    ['time', { type: 'ping', time: 'noon' }],
  ])('at: a bad event is refused by its %s when it is published', async (field, event) => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))
    const error = await t.send(event as EventInput, { at: START + 1_000 }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).message).toContain(field)
  })

  test('publish: a body that is neither text nor bytes is rejected', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))
    await expect(t.send({ type: 'ping', body: 5 } as unknown as EventInput)).rejects.toMatchObject({
      code: 'EVENT_INVALID',
    })
  })

  test('every: a restart does not repeat a tick that is older than the dedupe time', async () => {
    const t = await play(store, (app) => app.every('daily', '0 1 * * *', () => {}), { dedupe: '1h' })
    await t.advance('2h')
    expect(t.runs).toHaveLength(1)
    await t.advance('10h')
    await t.crash()
    await t.restart()
    await t.advance('1m')
    expect(t.runs).toHaveLength(1)
  })

  test('L22 lanes that became ready while the flow had no permit count as late', async () => {
    const gate = new Gate()
    const t = await play(store, pressed(gate))
    await t.send(ping('slow'))
    await t.advance('2s')
    await t.send(ping('behind'))
    await t.advance('20s')
    await t.send(ping('probe'))
    expect((await t.explain('f', 'probe')).facts.pressure ?? 0).toBeGreaterThan(0.2)
  })

  test('L22 a long run that no lane waits for is no pressure', async () => {
    const gate = new Gate()
    const t = await play(store, pressed(gate))
    await t.send(ping('slow'))
    await t.advance('60s')
    await t.send(ping('probe'))
    expect((await t.explain('f', 'probe')).facts.pressure ?? 0).toBe(0)
  })

  test('maxLanesPerTenant is enforced within a second', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1m' }, maxLanesPerTenant: 2, run: () => {} }),
    )
    await t.send(['a', 'b', 'c'].map((name) => ({ ...ping(name), tenant: 'x' })))
    await t.advance('2s')
    expect(keysOf(t)).toEqual(['a'])
  })

  test('a snooze for longer than 24 h does not count as 24 h of snoozes', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, retry: [], run: () => snooze({ after: '30d' }) }),
    )
    await sendNow(t, ping('u'))
    await t.advance('2d')
    expect(t.runs.at(-1)?.ending).toBe('dead')
  })
})

describe('regressions: options that had no effect', () => {
  test.each<[string, object]>([
    ['quite', { key: userOf, window: { quite: '10s' } }],
    ['window', { key: userOf, window: '10s' }],
    ['key', { key: 'user' }],
    ['retry', { retry: 3 }],
    ['retry', { retry: {} }],
    ['retry', { retry: '1s' }],
    ['cpa', { retry: { first: '1s', retries: 3, cpa: '5s' } }],
    ['timeout', { timeout: 0 }],
    ['maxEvents', { key: userOf, window: { quiet: '1s', maxEvents: 1.5 } }],
  ])('flow: %s: %j', (option, options) => {
    const app = new Sluice({ store: 'memory:', log: false })
    const whole = { on: 'ping', run: () => {}, ...options } as unknown as FlowOptions<Run> & { run: () => void }
    const error = caught(() => app.flow('f', whole))
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).message).toContain(option)
  })

  test.each<[string, unknown]>([
    ['keep', { store: 'memory:', keep: { evnts: '1d' } }],
    ['store', { log: false }],
    ['store', { store: 5 }],
    ['lease', { store: 'memory:', lease: Infinity }],
    ['options', undefined],
  ])('new Sluice: %s: %j', (option, options) => {
    const error = caught(() => new Sluice(options as { store: string }))
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).message).toContain(option)
  })

  test('every: an unknown time zone is rejected', () => {
    const app = new Sluice({ store: 'memory:', log: false })
    const error = caught(() => app.every('sweep', '0 0 * * *', () => {}, { timeZone: 'Mars/Olympus' }))
    expect(error).toBeInstanceOf(SluiceError)
  })
})

function pressed(gate: Gate): (app: Sluice) => unknown {
  return (app) =>
    app.flow('f', {
      on: 'ping',
      key: userOf,
      window: { quiet: { from: '2s', to: '32s' }, max: '5m' },
      concurrency: 1,
      timeout: '1h',
      run: ({ key }) => (key === 'slow' ? gate.wait() : undefined),
    })
}

function caught(call: () => unknown): unknown {
  try {
    call()
    return undefined
  } catch (error) {
    return error
  }
}
