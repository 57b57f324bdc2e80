// Every ending of a handler, and its effect on the run.
import { describe, expect, test } from 'vitest'
import {
  snooze,
  done,
  drop,
  partial,
  PermanentError,
  retry,
  type Ending,
  type FlowOptions,
  type Run,
} from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, numbersOf, ping, play, sendNow, Shared, STORES, emittedEvents, userOf } from './scene.ts'

type Handler = (run: Run) => unknown

function ending(store: string, run: Handler, more: Partial<FlowOptions<Run>> = {}): Promise<TestApp> {
  const handler = run as (run: Run) => Ending | undefined
  return play(store, (app) => app.flow('f', { on: 'ping', key: userOf, retry: ['1s', '1s'], ...more, run: handler }))
}

function unreadable(): never {
  throw Object.defineProperty(new Error(), 'message', {
    get: () => {
      throw new Error('no')
    },
  })
}

describe.each(STORES)('endings on %s', (store) => {
  test.each([
    ['undefined', undefined],
    ['done', done],
    ['a partial without failures', partial({ failed: [] })],
  ])('done: %s', async (_name, value) => {
    const t = await ending(store, () => value)
    await sendNow(t, ping('u'))
    await t.advance('1h')
    expect(t.runs).toMatchObject([{ ending: 'done' }])
    expect(emittedEvents(t, 'run.done')).toMatchObject([{ flow: 'f', key: 'u', attempt: 1, events: 1, counts: {} }])
  })

  test('done: run.done contains the counts of run.count', async () => {
    const t = await ending(store, (run) => {
      run.count('rows', 3)
      run.count('rows')
      run.count('pages')
    })
    await sendNow(t, ping('u'))
    expect(emittedEvents(t, 'run.done')).toMatchObject([{ counts: { rows: 4, pages: 1 } }])
  })

  test('snooze keeps the state and the events and uses no attempt; new events wait', async () => {
    const states: unknown[] = []
    const t = await ending(store, (run) => {
      states.push(run.state)
      return states.length < 3 ? snooze({ after: '10s', state: { page: states.length } }) : undefined
    })
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    await t.advance('60s')
    expect(states).toEqual([undefined, { page: 1 }, { page: 2 }, undefined])
    expect(t.runs.map(({ attempt, ending: end }) => [attempt, end])).toEqual([
      [1, 'snoozed'],
      [1, 'snoozed'],
      [1, 'done'],
      [1, 'done'],
    ])
    expect(new Set(t.runs.slice(0, 3).map((run) => run.id)).size).toBe(1)
    expect((t.runs[1]?.at ?? 0) - (t.runs[0]?.at ?? 0)).toBe(10_000)
    expect(numbersOf(t)).toEqual([[1], [1], [1], [2]])
  })

  test('a snoozed run goes behind ready lanes and holds no slot', async () => {
    const t = await ending(
      store,
      (run) => (run.key === 'a' && run.state === undefined ? snooze({ state: 1 }) : undefined),
      {
        concurrency: 1,
        window: { quiet: '1s' },
      },
    )
    await t.send([ping('a'), ping('b')])
    await t.advance('2s')
    expect(t.runs.map((run) => run.key)).toEqual(['a', 'b', 'a'])
  })

  test('snooze keeps its state over a failed attempt', async () => {
    const seen: unknown[] = []
    const t = await ending(store, (run) => {
      seen.push([run.attempt, run.state])
      if (seen.length === 1) return snooze({ state: 'kept' })
      if (seen.length === 2) throw new Error('once')
      return undefined
    })
    await sendNow(t, ping('u'))
    await t.advance('5s')
    expect(seen).toEqual([
      [1, undefined],
      [1, 'kept'],
      [2, 'kept'],
    ])
  })

  test('after 24 h of snoozes, the next one is a failed attempt', async () => {
    const t = await ending(store, () => snooze({ after: '1h' }), { retry: [] })
    await sendNow(t, ping('u'))
    await t.advance('23h')
    expect(t.runs.every((run) => run.ending === 'snoozed')).toBe(true)
    await t.advance('3h')
    expect(t.runs.at(-1)).toMatchObject({ ending: 'dead' })
    expect(t.runs.length).toBeGreaterThanOrEqual(25)
    expect(t.runs.length).toBeLessThanOrEqual(26)
  })

  test('a state that JSON cannot represent fails the attempt', async () => {
    const t = await ending(store, () => snooze({ state: 10n }))
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
  })

  test('retry({ after }) is a failed attempt with its own delay', async () => {
    const t = await ending(store, (run) =>
      run.attempt === 1 ? retry({ after: '20s', reason: 'too early' }) : undefined,
    )
    await sendNow(t, ping('u'))
    await t.advance('60s')
    expect(t.runs).toMatchObject([
      { ending: 'retry', error: 'too early' },
      { ending: 'done', attempt: 2 },
    ])
    expect((t.runs[1]?.at ?? 0) - (t.runs[0]?.at ?? 0)).toBe(20_000)
  })

  test('retry uses up attempts', async () => {
    const t = await ending(store, () => retry({ after: 0 }))
    await sendNow(t, ping('u'))
    await t.advance('60s')
    expect(t.runs.map((run) => run.ending)).toEqual(['retry', 'retry', 'dead'])
  })

  test('drop ends the run without a dead letter', async () => {
    const t = await ending(store, () => drop('not ours'))
    await sendNow(t, ping('u'))
    await t.advance('1h')
    expect(t.runs).toMatchObject([{ ending: 'dropped' }])
    expect(emittedEvents(t, 'run.dropped')).toMatchObject([{ reason: 'not ours' }])
    expect((await t.app.admin.deadLetters.list()).items).toEqual([])
  })

  test('a thrown error is a failed attempt', async () => {
    const t = await ending(store, (run) => {
      if (run.attempt === 1) throw new RangeError('far')
    })
    await sendNow(t, ping('u'))
    await t.advance('5s')
    expect(t.runs).toMatchObject([{ ending: 'retry', error: 'RangeError: far' }, { ending: 'done' }])
  })

  test('a thrown string is a failed attempt', async () => {
    const t = await ending(store, (run) => (run.attempt === 1 ? Promise.reject('words') : undefined))
    await sendNow(t, ping('u'))
    await t.advance('5s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }, { ending: 'done' }])
    expect(t.runs[0]?.error).toContain('words')
  })

  test('PermanentError makes a dead letter at once', async () => {
    const t = await ending(store, () => {
      throw new PermanentError('gone')
    })
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'dead', attempt: 1 }])
    expect((await t.app.admin.deadLetters.list()).items).toMatchObject([{ reason: 'PermanentError: gone' }])
  })

  test('a subclass of PermanentError is a PermanentError', async () => {
    class Gone extends PermanentError {}
    const t = await ending(store, () => {
      throw new Gone('gone')
    })
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'dead' }])
  })

  test.each([
    ['a number', 5],
    ['an object', { kind: 'done' }],
    ['null', null],
    ['a text', 'done'],
    ['false', false],
  ])('nonsense: %s is no ending', async (_name, value) => {
    const t = await ending(store, () => value)
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
    expect(t.runs[0]?.error).toContain('not an ending')
  })

  test.each([
    ['drop without a reason', () => drop(undefined as never), 'drop has undefined for a reason'],
    ['drop with an object', () => drop({} as never), 'drop has object for a reason'],
    ['retry with a bigint', () => retry({ reason: 10n as never }), 'retry has bigint for a reason'],
    ['partial with nothing', () => partial({ failed: undefined as never }), 'TypeError'],
    ['an error that cannot be read', unreadable, 'It threw an error that cannot be read.'],
  ])('nonsense: %s costs its own attempt, and nothing else', async (_name, end, error) => {
    const t = await ending(store, ({ key }) => (key === 'bad' ? end() : undefined))
    await sendNow(t, [ping('bad'), ping('good')])
    expect(t.runs).toMatchObject([
      { key: 'bad', ending: 'retry' },
      { key: 'good', ending: 'done' },
    ])
    expect(t.runs[0]?.error).toContain(error)
  })

  test('an ending with an invalid duration fails the attempt', async () => {
    const t = await ending(store, () => snooze({ after: 'soon' as unknown as number }))
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
    expect(t.runs[0]?.error).toContain('snooze.after')
  })
})

describe.each(STORES)('timeouts on %s', (store) => {
  test('a timeout aborts the signal and fails the attempt', async () => {
    const gate = new Gate()
    const reasons: string[] = []
    const t = await ending(
      store,
      async ({ signal, attempt }) => {
        if (attempt > 1) return
        await gate.waitFor('u', signal).catch((error: unknown) => {
          reasons.push((error as Error).message)
          throw error
        })
      },
      { timeout: '20s' },
    )
    await sendNow(t, ping('u'))
    await t.advance('19s')
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
    expect(t.runs[0]?.error).toContain('timeout')
    expect(reasons).toHaveLength(1)
    await t.advance('1s')
    expect(t.runs[1]).toMatchObject({ attempt: 2, ending: 'done' })
  })

  test('the lane of a handler that never returns is deferred, and is not started beside it', async () => {
    const gate = new Gate()
    const t = await ending(store, () => gate.wait('u'), { timeout: '20s' })
    await sendNow(t, [ping('u', 1), ping('other', 1)])
    await t.advance('60s')
    expect(t.runs.filter((run) => run.key === 'u')).toHaveLength(1)
    expect(emittedEvents(t, 'alert.raised')).toMatchObject([{ alert: 'hangs:f/u' }, { alert: 'hangs:f/other' }])
    await t.advance('1d')
    // Each deferral is longer than the one before; the warning comes once.
    expect(emittedEvents(t, 'run.snoozed').length).toBeLessThan(2 * 300)
    expect(emittedEvents(t, 'alert.raised')).toHaveLength(2)
    expect((await t.explain('f', 'u')).text).toMatch(/; an earlier handler of it has not returned in this process\.$/)
    gate.open('u')
    gate.open('u')
    await t.advance('10ms')
    expect(emittedEvents(t, 'alert.cleared')).toMatchObject([{ alert: 'hangs:f/u' }, { alert: 'hangs:f/other' }])
    expect(t.runs.filter((run) => run.key === 'u')).toMatchObject([
      { ending: 'retry' },
      { ending: 'running', attempt: 2 },
    ])
  })

  // Regression: an unawaited timer kept the process alive.
  test('run.extend does nothing after the timeout', async () => {
    const shared = await Shared.open(store)
    const gate = new Gate()
    const app = await shared.process('a', (one) =>
      one.flow('f', {
        on: 'ping',
        key: userOf,
        timeout: '20s',
        retry: [],
        run: async (run) => {
          await gate.wait()
          run.extend('1h')
        },
      }),
    )
    await app.publish(ping('u'))
    await shared.advance(21_000)
    gate.open()
    await shared.advance(10)
    await shared.stop(app)
    expect(shared.clock.next()).toBeUndefined()
  })

  test('the timeout counts from the call of the handler, also while the handler keeps the event loop busy', async () => {
    const gate = new Gate()
    const t = await ending(
      store,
      (run) => {
        if (run.attempt > 1) return undefined
        t.clock.advance(12_000)
        return gate.wait('u')
      },
      { timeout: '20s' },
    )
    await sendNow(t, ping('u'))
    await t.advance('7s')
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
  })

  test('run.extend gives more time, counted from the call', async () => {
    const gate = new Gate()
    const t = await ending(
      store,
      async (run) => {
        if (run.attempt > 1) return
        await gate.wait('first')
        run.extend('60s')
        await gate.waitFor('second', run.signal)
      },
      { timeout: '20s' },
    )
    await sendNow(t, ping('u'))
    await t.advance('10s')
    gate.open('first')
    await t.advance('59s')
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
  })
})
