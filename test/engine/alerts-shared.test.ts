// Alerts of several processes: one of the processes that declare an alert checks it, and an alert that no process declares ends.
import { describe, expect, test } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { Shared, STORES, type Declare } from './scene.ts'

const MINUTE = 60_000

const odd: Declare = (app) => app.alert('odd', { when: () => 'It is odd.' })

/** The alert events that a process emits. */
function carrying(heard: unknown[], declare: Declare = () => {}): Declare {
  return (app) => {
    declare(app)
    app.flow('carry', {
      on: 'sluice/alert.*',
      run: ({ events }) => void heard.push(...events.map(({ type, subject }) => [type, subject])),
    })
  }
}

const RAISED = ['alert.raised', 'odd']
const CLEARED = ['alert.cleared', 'odd']

describe.each(STORES)('alerts of several processes on %s', (store) => {
  test('of two processes one checks the alert, and the other takes over when it is gone', async () => {
    const looks = { one: 0, two: 0 }
    const shared = await Shared.open(store)
    const begin = (name: 'one' | 'two'): Promise<Sluice> =>
      shared.process(name, (app) => app.alert('odd', { when: () => looks[name]++ < 0 }))
    const one = await begin('one')
    await begin('two')
    await shared.advance(300_000)
    expect([looks.one > 20, looks.two]).toEqual([true, 0])
    await shared.stop(one)
    await shared.advance(300_000)
    expect(looks.two).toBeGreaterThan(20)
  })

  test('when processes declare different alerts, as during a deploy, every alert is checked', async () => {
    const heard: unknown[] = []
    const shared = await Shared.open(store)
    await shared.process('old', carrying(heard, odd))
    await shared.process('new', (app) => {
      odd(app)
      app.alert('even', { when: () => true })
    })
    await shared.advance(MINUTE)
    expect(heard).toEqual([RAISED, ['alert.raised', 'even']])
  })

  test('an alert that is removed while it is raised is cleared, once, when no process declares it any more', async () => {
    const heard: unknown[] = []
    const emitted: unknown[] = []
    const shared = await Shared.open(store)
    const old = await shared.process('old', carrying(heard, odd))
    await shared.advance(MINUTE)
    for (const name of ['new', 'newer']) {
      const app = await shared.process(name, carrying(heard))
      app.on('alert.cleared', ({ alert }) => void emitted.push(alert))
    }
    // During a slow deploy, one of three processes still declares it.
    await shared.advance(60 * MINUTE)
    expect(heard).toEqual([RAISED])
    await shared.stop(old)
    await shared.advance(8 * MINUTE)
    expect(heard).toEqual([RAISED])
    await shared.advance(60 * MINUTE)
    expect(heard).toEqual([RAISED, CLEARED])
    expect(emitted).toEqual(['odd'])
    // When it is declared again, it is raised again.
    await shared.process('back', odd)
    await shared.advance(MINUTE)
    expect(heard).toEqual([RAISED, CLEARED, RAISED])
  })

  test('after an hour without any process, the processes that declare the alert decide its state', async () => {
    const heard: unknown[] = []
    const shared = await Shared.open(store)
    const old = await shared.process('old', carrying(heard, odd))
    await shared.advance(MINUTE)
    await shared.stop(old)
    await shared.advance(60 * MINUTE)
    await shared.process('without', carrying(heard))
    await shared.advance(5 * MINUTE)
    await shared.process('with', odd)
    await shared.advance(60 * MINUTE)
    expect(heard).toEqual([RAISED])
  })
})
