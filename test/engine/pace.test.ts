// The pace of a flow: a key that sends too much is slowed down in its lane; nothing is rejected, and no other key is delayed (M6).
import { describe, expect, test } from 'vitest'
import { Sluice, type Limit, type Run } from '../../src/index.ts'
import { ping, play, sendNow, soon, STORES, emittedEvents, userOf, type Datum } from './scene.ts'

const senderOf = ({ events }: Run): string => userOf(events[0] ?? { data: {} }) ?? ''

describe.each(STORES)('pace on %s', (store) => {
  test('per field of the event: a burst is spread over time, and all of it runs', async () => {
    const t = await play(store, (app) => {
      const perSender = app.limit('per-sender', { rate: 2, per: '1m' })
      app.flow('f', { on: 'ping', pace: (run) => perSender.per(senderOf(run)), retry: [], run: () => {} })
    })
    await sendNow(t, [...Array.from({ length: 6 }, (_, n) => ping('loud', n)), ping('calm', 9)])
    await t.advance('10m')
    const done = t.runs.filter(({ ending }) => ending === 'done')
    const moments = done.filter(({ events: [data] }) => (data as Datum).user === 'loud').map(({ at }) => at)
    expect(moments).toHaveLength(6)
    for (const at of moments)
      expect(moments.filter((one) => one >= at && one < at + 60_000).length).toBeLessThanOrEqual(2)
    expect(moments.at(-1)).toBeLessThan(200_000)
    expect(done.find(({ events: [data] }) => (data as Datum).user === 'calm')?.at).toBeLessThan(10)
    expect(emittedEvents(t, 'event.refused')).toEqual([])
    expect((await t.app.admin.deadLetters.list()).items).toEqual([])
  })

  test('one limit counts all runs of a flow; a run of several events takes one slot', async () => {
    const t = await play(store, (app) => {
      const pace = app.limit('slow', { rate: 1, per: '1s' })
      app.flow('f', { on: 'ping', key: userOf, pace, run: () => {} })
    })
    await sendNow(t, [ping('a', 1), ping('a', 2), ping('b', 3), ping('c', 4)])
    await t.advance('10s')
    expect(t.runs.map(({ events }) => events.length)).toEqual([2, 1, 1])
    expect(emittedEvents(t, 'run.done')).toHaveLength(3)
  })

  test('a paced run waits in its lane: it uses no attempt, others run, and explain names the limit', async () => {
    const entered: string[] = []
    const enter = (one: Run): void => void entered.push(`${one.key} ${one.attempt}`)
    const t = await play(store, (app) => {
      const limit = app.limit('hourly', { rate: 1, per: '1h' })
      const pace = (run: Run): Limit | undefined => (run.key === 'free' ? undefined : limit.per(run.key))
      app.flow('f', { on: 'ping', key: userOf, concurrency: 1, pace, run: enter })
    })
    await sendNow(t, ping('a', 1))
    await sendNow(t, ping('a', 2))
    await soon(t)
    expect((await t.explain('f', 'a')).text).toContain('hourly/a')
    await sendNow(t, [ping('free', 3), ping('free', 4)])
    await t.advance('1m')
    expect(entered).toEqual(['a 1', 'free 1'])
    await t.advance('2h')
    expect(entered).toEqual(['a 1', 'free 1', 'a 1'])
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no such field')
      },
      'no such field',
    ],
    ['gives no limit', () => 'fast', 'pace must return a limit'],
  ])('one that %s is a failed attempt that says so', async (_name, pace, error) => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', retry: [], pace: pace as never, run: () => {} }))
    await sendNow(t, ping('a', 1))
    await t.advance('1m')
    expect(emittedEvents(t, 'run.dead').map((what) => what.error)).toEqual([expect.stringContaining(error)])
  })
})

test('an invalid pace is rejected when the app is built', () => {
  const app = new Sluice({ store: 'memory:', log: false })
  expect(() => app.flow('f', { on: 'ping', pace: 3 as never, run: () => {} })).toThrow('pace must be a limit')
  expect(() => app.flow('f', { on: 'ping', pace: { rate: 3, per: '1s' } as never, run: () => {} })).toThrow(
    'app.limit()',
  )
})
