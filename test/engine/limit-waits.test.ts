// M5 to M7: calls with a cost, under several limits, too far away, or given up; and how explain describes a wait.
import { describe, expect, test } from 'vitest'
import { snooze, done, type Ending, type Run } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { calling, most, timed, users } from './limit-scene.ts'
import { ping, play, sendNow, soon, STORES, emittedEvents, userOf } from './scene.ts'

describe.each(STORES)('M5 M6 M7 costs and waits on %s', (store) => {
  test('M5 a cost counts as that many calls, and is rejected above the rate', async () => {
    const { t, calls } = await timed(store, { rate: 4, per: '1s' }, (limit, { key }) =>
      limit.run(() => calls.push([key, t.elapsed]), { cost: key === 'huge' ? 5 : 3 }),
    )
    await sendNow(t, [ping('a'), ping('b')])
    expect(calls.map(([key]) => key)).toHaveLength(1)
    await t.advance('1100ms')
    expect(calls).toHaveLength(2)
    await sendNow(t, ping('huge'))
    expect(t.runs.at(-1)?.error).toContain('cost must be at most the rate of 4')
  })

  test('M5 of several limits on one call, the narrowest decides the time, and all are charged', async () => {
    const calls: number[] = []
    const t: TestApp = await play(store, (app) => {
      const day = app.limit('day', { rate: 2, per: '1m', maxWait: '2h' })
      calling({ rate: 1, per: '1s', maxWait: '2h' }, (limit) =>
        limit.run(() => calls.push(t.elapsed), { with: [day] }),
      )(app)
    })
    await sendNow(t, users(3))
    await t.advance('50s')
    expect(calls).toHaveLength(2)
    await t.advance('12s')
    expect(calls).toHaveLength(3)
    expect((calls[1] ?? 0) - (calls[0] ?? 0)).toBeGreaterThanOrEqual(1_000)
    expect((calls[2] ?? 0) - (calls[0] ?? 0)).toBeGreaterThanOrEqual(60_000)
  })

  test('M6 beyond maxWait the run is deferred: no attempt, no permit, and it runs when the slot is near', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '60s' })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('second'))
    expect(t.runs).toMatchObject([{ ending: 'done' }, { key: 'second', ending: 'deferred', attempt: 1 }])
    expect((await t.explain('f', 'second')).state).toBe('snoozed')
    await t.advance('59s')
    expect(calls).toHaveLength(1)
    await t.advance('2s')
    expect(calls.map(([key]) => key)).toEqual(['first', 'second'])
    expect(t.runs[2]).toMatchObject({ key: 'second', attempt: 1, ending: 'done', id: t.runs[1]?.id })
    expect(emittedEvents(t, 'run.retry')).toEqual([])
  })

  test('M6 the time of a deferral does not count towards the 24 h of snoozes', async () => {
    let ended = 0
    const t = await play(store, (app) => {
      const limit = app.limit('api', { rate: 1, per: '23h' })
      const run = async ({ key, state }: Run): Promise<Ending> => {
        await limit.run(() => {})
        if (key === 'first' || state === 'said') return done
        return snooze({ after: '2h', state: 'said' })
      }
      app.flow('f', { on: 'ping', key: userOf, run })
      app.on('run.done', () => void ended++)
    })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('second'))
    await t.advance('3d')
    expect(emittedEvents(t, 'run.retry')).toEqual([])
    expect(ended).toBe(2)
  })

  test('M6 many deferred runs all run, one in each window', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '60s' })
    await sendNow(t, users(6))
    await t.advance('6m')
    expect(calls).toHaveLength(6)
    expect(
      most(
        calls.map(([, at]) => at),
        60_000,
      ),
    ).toBe(1)
    expect(t.runs.every(({ attempt }) => attempt === 1)).toBe(true)
  })

  test('M7 a wait that is given up returns its slot if it was the last one', async () => {
    const end = new AbortController()
    const { t, calls } = await timed(store, { rate: 1, per: '5s' }, (limit, { key }) =>
      limit.run(() => calls.push([key, t.elapsed]), key === 'quits' ? { signal: end.signal } : {}),
    )
    await sendNow(t, ping('first'))
    await sendNow(t, ping('quits'))
    end.abort(new Error('never mind'))
    await soon(t)
    await sendNow(t, ping('next'))
    await t.advance('5100ms')
    expect(calls.map(([key]) => key)).toEqual(['first', 'next'])
  })

  test('explain names the limit that a run waits for', async () => {
    const { t } = await timed(store, { rate: 1, per: '8s' })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    expect((await t.explain('f', 'u')).text).toContain('waits for a slot of limit "api" in 8')
  })

  test('M3 explain says that this limit is paused', async () => {
    const { t } = await timed(store, { rate: 1, per: '1s', maxWait: '1h' }, async (limit, { key }) => {
      if (key === 'first') return limit.pause('30s')
      return limit.run(() => {})
    })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    await t.advance('10s')
    const { text } = await t.explain('f', 'u')
    expect(text).toMatch(/slot of limit "api" \(which is paused for 2\d s more\)/)
  })

  // Regression: a deferral was recorded as a snooze without a reason, so neither the store nor explain knew the limit.
  test('M6 explain and run.deferred name the limit that deferred the run', async () => {
    const { t } = await timed(store, { rate: 1, per: '60s' })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    expect(emittedEvents(t, 'run.deferred')[0]?.why).toContain('api')
    expect((await t.explain('f', 'u')).text).toContain('"api"')
  })
})
