// Alerts that an app declares: raised once when the condition holds for long enough, cleared once when it is over, by one process.
import { describe, expect, test } from 'vitest'
import { Sluice, type AlertStats } from '../../src/index.ts'
import { ping, play, sendNow, STORES, emittedEvents, userOf, type Declare } from './scene.ts'

interface Told {
  readonly alert: string
}

const raisedOf = (t: Awaited<ReturnType<typeof play>>): unknown[] =>
  t.emitted
    .filter(({ name, payload }) => name.startsWith('alert.') && !(payload as Told).alert.startsWith('late:'))
    .map(({ name, payload }) => [name, (payload as Told).alert])

describe.each(STORES)('alerts on %s', (store) => {
  test('an alert is raised and cleared once each, after its condition held or was over for long enough', async () => {
    let isSo = false
    const carried: unknown[] = []
    const t = await play(store, (app) => {
      app.alert('odd', { when: () => isSo && 'It is odd.', for: '1m' })
      app.flow('carry', {
        on: 'sluice/alert.*',
        run: ({ events }) => void carried.push(...events.map(({ type, data }) => [type, data])),
      })
    })
    await t.advance('5m')
    expect(raisedOf(t)).toEqual([])
    isSo = true
    await t.advance('50s')
    expect(raisedOf(t)).toEqual([])
    expect(await t.app.admin.alerts.list()).toMatchObject([{ name: 'odd', state: 'pending' }])
    await t.advance('30m')
    expect(raisedOf(t)).toEqual([['alert.raised', 'odd']])
    expect(await t.app.admin.alerts.list()).toMatchObject([{ name: 'odd', state: 'raised', text: 'It is odd.' }])
    isSo = false
    await t.advance('50s')
    expect(await t.app.admin.alerts.list()).toMatchObject([{ state: 'easing' }])
    await t.advance('30m')
    expect(raisedOf(t)).toEqual([
      ['alert.raised', 'odd'],
      ['alert.cleared', 'odd'],
    ])
    expect(await t.app.admin.alerts.list()).toMatchObject([{ state: 'clear' }])
    expect(carried).toMatchObject([
      ['alert.raised', { alert: 'odd', text: 'It is odd.' }],
      ['alert.cleared', { alert: 'odd', text: 'It is odd.' }],
    ])
  })

  test('a condition that holds only briefly raises and clears nothing', async () => {
    let n = 0
    const t = await play(store, (app) => app.alert('flicker', { when: () => n++ % 3 === 0, for: '1m' }))
    await t.advance('2h')
    expect(raisedOf(t)).toEqual([])
  })

  test('a condition that holds for a second time raises a second alert', async () => {
    let isSo = true
    const t = await play(store, (app) => app.alert('odd', { when: () => isSo }))
    await t.advance('1m')
    isSo = false
    await t.advance('1m')
    isSo = true
    await t.advance('1m')
    expect(raisedOf(t)).toEqual([
      ['alert.raised', 'odd'],
      ['alert.cleared', 'odd'],
      ['alert.raised', 'odd'],
    ])
    expect(emittedEvents(t, 'event.received').filter(({ type }) => type.startsWith('alert.'))).toHaveLength(3)
  })

  test('notify is a run like any other, and is retried when it fails', async () => {
    let tries = 0
    const t = await play(store, (app) =>
      app.alert('odd', {
        when: () => true,
        notify: ({ events }) => {
          tries++
          if (tries < 3) throw new Error('no line')
          expect(events[0]?.data.alert).toBe('odd')
        },
      }),
    )
    await t.advance('1h')
    expect(tries).toBe(3)
    expect(t.runs.map(({ flow, ending }) => [flow, ending])).toEqual([
      ['alert/odd', 'retry'],
      ['alert/odd', 'retry'],
      ['alert/odd', 'done'],
    ])
  })

  test('after the death of a process with a raised alert, the next process neither repeats nor forgets it', async () => {
    let isSo = true
    const t = await play(store, (app) => app.alert('odd', { when: () => isSo }))
    await t.advance('1m')
    await t.crash()
    await t.advance('1h')
    await t.restart()
    await t.advance('5m')
    expect(raisedOf(t)).toEqual([['alert.raised', 'odd']])
    isSo = false
    await t.advance('5m')
    expect(raisedOf(t)).toEqual([
      ['alert.raised', 'odd'],
      ['alert.cleared', 'odd'],
    ])
  })

  test('a condition that throws is reported once, and delays no other', async () => {
    const t = await play(store, (app) => {
      app.alert('bad', {
        when: () => {
          throw new Error('no such figure')
        },
      })
      app.alert('good', { when: () => true })
    })
    await t.advance('10m')
    expect(raisedOf(t)).toEqual([
      ['alert.raised', 'broken:bad'],
      ['alert.raised', 'good'],
    ])
  })

  test('a condition that begins to throw clears nothing, and is reported as broken until it works again', async () => {
    let answer: boolean | undefined = true
    const when = (): boolean => {
      if (answer === undefined) throw new Error('no such figure')
      return answer
    }
    const t = await play(store, (app) => app.alert('odd', { when, for: '1m' }))
    await t.advance('2m')
    answer = undefined
    await t.advance('10m')
    expect(await t.app.admin.alerts.list()).toMatchObject([{ name: 'odd', state: 'raised', broken: 'no such figure' }])
    answer = false
    await t.advance('10m')
    expect(await t.app.admin.alerts.list()).toMatchObject([{ name: 'odd', state: 'clear', broken: undefined }])
    expect(raisedOf(t)).toEqual([
      ['alert.raised', 'odd'],
      ['alert.raised', 'broken:odd'],
      ['alert.cleared', 'broken:odd'],
      ['alert.cleared', 'odd'],
    ])
    expect(emittedEvents(t, 'alert.raised').at(1)?.text).toContain('no such figure')
  })

  test('the text describes the present state, also when the condition held before', async () => {
    let n = 11
    const t = await play(store, (app) => app.alert('odd', { when: () => n > 10 && `${n} of them.`, for: '1m' }))
    await t.advance('5m')
    n = 500
    await t.advance('20s')
    expect(await t.app.admin.alerts.list()).toMatchObject([{ state: 'raised', text: '500 of them.' }])
    n = 0
    await t.advance('30s')
    n = 12
    await t.advance('20s')
    expect(await t.app.admin.alerts.list()).toMatchObject([{ state: 'raised', text: '12 of them.' }])
    expect(raisedOf(t)).toEqual([['alert.raised', 'odd']])
  })

  test('conditions see the stats: dead letters, depth, the age of the first lane, limits', async () => {
    const seen: AlertStats[] = []
    const declare: Declare = (app) => {
      const limit = app.limit('api', { rate: 1, per: '1s' })
      app.alert('look', { when: (now) => seen.push(now) < 0 })
      app.flow('dies', {
        on: 'die',
        retry: [],
        run: async () => {
          await limit.pause('30m')
          throw new Error('no')
        },
      })
      app.flow('waits', { on: 'ping', key: userOf, window: { quiet: '1d', max: '1d' }, run: () => {} })
    }
    const t = await play(store, declare)
    await sendNow(t, [{ type: 'die' }, ping('a'), ping('b')])
    await t.advance('1m')
    expect(seen.at(-1)).toMatchObject({ deadLetters: 1, depth: 0, oldest: 0, clockOffset: 0 })
    expect(seen.at(-1)?.limits).toMatchObject([{ name: 'api', pausedFor: expect.any(Number) }])
    expect(seen.at(-1)?.limits[0]?.pausedFor).toBeGreaterThan(28 * 60_000)
    await t.app.admin.flows.pause('waits', { reason: 'a test', by: 'me' })
    await t.advance('25h')
    expect(seen.at(-1)).toMatchObject({ deadLetters: 0, depth: 0, oldest: 0 })
    expect(seen.at(-1)?.oldestPaused).toBeGreaterThan(3_600_000)
  })
})

const yes = (): boolean => true

test.each([
  ['', { when: yes }, 'the name must have'],
  ['odd', undefined, 'the options are missing'],
  ['odd', {}, 'when must be a function'],
  ['odd', { when: yes, fro: '1m' }, 'fro'],
  ['odd', { when: yes, for: Infinity }, 'for must be finite'],
])('bad input: alert(%j, %j) is refused when the app is built', (name, options, message) => {
  const app = new Sluice({ store: 'memory:', log: false })
  expect(() => app.alert(name, options as never)).toThrow(message)
})

test('two alerts with one name are rejected', () => {
  const app = new Sluice({ store: 'memory:', log: false }).alert('odd', { when: yes })
  expect(() => app.alert('odd', { when: yes })).toThrow('two alerts named "odd"')
})
