// L6c: a newer event cancels a run, unless the run has committed or its events have waited for long enough.
import { describe, expect, test } from 'vitest'
import { snooze, done, drop, partial, retry, type Ending, type EventInput, type Run } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, numbersOf, ping, play, sendNow, soon, STORES, emittedEvents, userOf } from './scene.ts'

type Handler = (run: Run) => Promise<void | Ending>

function session(store: string, run: Handler, max = 60): Promise<TestApp> {
  return play(store, (app) =>
    app.flow('f', {
      on: 'ping',
      key: userOf,
      window: { quiet: '2s', max: `${max}s` },
      whileRunning: 'cancel',
      retry: ['10s'],
      run,
    }),
  )
}

function both(n: number): readonly EventInput[] {
  return ['resets', 'waits'].map((tenant) => ({ ...ping(tenant, n), tenant }))
}

describe.each(STORES)('L6c cancel on %s', (store) => {
  test('L6c a cancel aborts the signal, and the events return in one window with the new ones', async () => {
    const gate = new Gate()
    const t = await session(store, ({ signal }) => gate.waitFor('u', signal))
    await t.send(ping('u', 1))
    await t.advance('2s')
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    await t.advance('3s')
    await sendNow(t, ping('u', 2))
    expect(t.runs).toMatchObject([{ ending: 'cancelled', error: undefined }])
    await t.advance('1995ms')
    expect(t.runs).toHaveLength(1)
    await t.advance('1ms')
    expect(t.runs[1]).toMatchObject({ at: 7_000, attempt: 1, events: [{ n: 1 }, { n: 2 }] })
    gate.open('u')
    gate.open('u')
    await soon(t)
    expect(t.runs[1]).toMatchObject({ ending: 'done' })
    expect(emittedEvents(t, 'run.cancelled')).toHaveLength(1)
  })

  test('L6c cancelling uses no attempt, however often it happens', async () => {
    const gate = new Gate()
    const t = await session(store, ({ signal }) => gate.waitFor('u', signal))
    for (let n = 0; n < 5; n++) {
      await t.send(ping('u', n))
      await t.advance('3s')
    }
    expect(t.runs.map((run) => run.attempt)).toEqual([1, 1, 1, 1, 1])
    expect(numbersOf(t).at(-1)).toEqual([0, 1, 2, 3, 4])
  })

  test('L6c whileRunning per event: only an event that says cancel cancels', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '2s', max: '60s' },
        whileRunning: ({ tenant }) => (tenant === 'resets' ? 'cancel' : 'window'),
        run: ({ key, signal }) => gate.waitFor(key, signal),
      }),
    )
    await t.send(both(1))
    await t.advance('2s')
    await sendNow(t, both(2))
    expect(t.runs.map(({ key, ending }) => [key, ending])).toEqual([
      ['resets', 'cancelled'],
      ['waits', 'running'],
    ])
    gate.open('waits')
    await t.advance('2s')
    expect(t.runs.slice(2).map(({ key, events }) => [key, events.length])).toEqual([
      ['resets', 2],
      ['waits', 1],
    ])
  })

  test('L6c after commit nothing cancels the run', async () => {
    const gate = new Gate()
    const answers: string[] = []
    const t = await session(store, async (run) => {
      answers.push(await run.commit())
      await gate.waitFor('u', run.signal)
    })
    await t.send(ping('u', 1))
    await t.advance('2s')
    await t.advance('1s')
    await sendNow(t, ping('u', 2))
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    await t.advance('5s')
    gate.open('u')
    await soon(t)
    expect(answers[0]).toBe('ok')
    expect(numbersOf(t)).toEqual([[1], [2]])
  })

  test('L6c a late commit returns cancelled', async () => {
    const gate = new Gate()
    const answers: string[] = []
    const t = await session(store, async (run) => {
      await gate.wait('u')
      answers.push(await run.commit())
      run.signal.throwIfAborted()
    })
    await t.send(ping('u', 1))
    await t.advance('2s')
    await sendNow(t, ping('u', 2))
    gate.open('u')
    await soon(t)
    expect(answers).toEqual(['cancelled'])
    expect(t.runs[0]).toMatchObject({ ending: 'cancelled' })
    await t.advance('10s')
    expect(numbersOf(t)[1]).toEqual([1, 2])
  })

  test('L6c a handler that returns after commit returned cancelled gives its events back', async () => {
    const gate = new Gate()
    const t = await session(store, async (run) => {
      await gate.wait('u')
      if ((await run.commit()) === 'cancelled') run.publish({ type: 'too late' })
    })
    await t.send(ping('u', 1))
    await t.advance('2s')
    await sendNow(t, ping('u', 2))
    gate.open('u')
    await soon(t)
    expect(t.runs).toMatchObject([{ ending: 'cancelled', error: undefined }])
    expect(emittedEvents(t, 'run.cancelled')).toHaveLength(1)
    await t.advance('2s')
    gate.open('u')
    await soon(t)
    expect(t.runs[1]).toMatchObject({ ending: 'done', attempt: 1, events: [{ n: 1 }, { n: 2 }] })
    expect(emittedEvents(t, 'event.received').map(({ type }) => type)).toEqual(['ping', 'ping'])
  })

  test.each([
    ['done', () => done],
    ['drop', () => drop('not worth it')],
    ['snoozed', () => snooze()],
    ['retry', () => retry()],
    ['partial', (run: Run) => partial({ failed: [{ id: run.events[0]?.id ?? '', reason: 'no' }] })],
  ] as const)('L6c after commit answered cancelled, %s gives the events back too', async (_name, ending) => {
    const gate = new Gate()
    const t = await session(store, async (run) => {
      await gate.wait('u')
      await run.commit()
      return ending(run)
    })
    await t.send(ping('u', 1))
    await t.advance('2s')
    await sendNow(t, ping('u', 2))
    gate.open('u')
    await soon(t)
    expect(t.runs).toMatchObject([{ ending: 'cancelled' }])
    await t.advance('2s')
    expect(numbersOf(t)[1]).toEqual([1, 2])
  })

  test('L6c a handler that does not await commit is judged by its result', async () => {
    const gate = new Gate()
    const t = await session(store, async (run) => {
      await gate.wait('u')
      void run.commit()
    })
    await t.send(ping('u', 1))
    await t.advance('2s')
    await sendNow(t, ping('u', 2))
    gate.open('u')
    await soon(t)
    expect(t.runs).toMatchObject([{ ending: 'cancelled' }])
    await t.advance('2s')
    gate.open('u')
    await soon(t)
    expect(t.runs[1]).toMatchObject({ ending: 'done', events: [{ n: 1 }, { n: 2 }] })
  })

  test('L6c a run that ends as done after the abort is done', async () => {
    const gate = new Gate()
    const t = await session(store, () => gate.wait('u'))
    await t.send(ping('u', 1))
    await t.advance('2s')
    await sendNow(t, ping('u', 2))
    gate.open('u')
    await soon(t)
    expect(t.runs[0]).toMatchObject({ ending: 'done' })
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1], [2]])
  })

  test('L6c nothing cancels a run after its cap', async () => {
    const gate = new Gate()
    const t = await session(store, ({ signal }) => gate.waitFor('u', signal), 5)
    await t.send(ping('u', 1))
    await t.advance('2s')
    await t.advance('1s')
    await sendNow(t, ping('u', 2))
    expect(t.runs[0]).toMatchObject({ ending: 'cancelled' })
    await t.advance('1996ms')
    expect(t.runs[1]).toMatchObject({ at: 5_000, events: [{ n: 1 }, { n: 2 }] })
    await sendNow(t, ping('u', 3))
    expect(t.runs[1]).toMatchObject({ ending: 'running' })
    await t.advance('10s')
    gate.open('u')
    gate.open('u')
    await soon(t)
    expect(numbersOf(t).slice(1)).toEqual([[1, 2], [3]])
  })

  test('L6c only a first attempt can be cancelled', async () => {
    const gate = new Gate()
    const t = await session(store, ({ signal }) => gate.waitFor('u', signal))
    t.fail('f', new Error('once'))
    await t.send(ping('u', 1))
    await t.advance('12s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }, { ending: 'running', attempt: 2 }])
    await sendNow(t, ping('u', 2))
    expect(t.runs[1]).toMatchObject({ ending: 'running', events: [{ n: 1 }] })
    gate.open('u')
    await t.advance('2s')
    expect(numbersOf(t)).toEqual([[1], [1], [2]])
  })

  test('L6c an error without an abort is a failed attempt', async () => {
    const t = await session(store, async () => {
      throw new Error('no')
    })
    await t.send(ping('u', 1))
    await t.advance('2s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
  })

  test('L6c an operator can cancel a run', async () => {
    const gate = new Gate()
    const t = await session(store, ({ signal }) => gate.waitFor('u', signal))
    await t.send(ping('u', 1))
    await t.advance('2s')
    expect(await t.app.admin.lanes.cancel('f', 'u')).toBe('ok')
    await soon(t)
    expect(t.runs[0]).toMatchObject({ ending: 'cancelled' })
  })
})
