// L8: what a failed run keeps, when it runs again, and that it delays no other lane.
import { describe, expect, test } from 'vitest'
import type { FlowOptions, Run } from '../../src/index.ts'
import { numbersOf, ping, play, sendNow, STORES, emittedEvents, userOf, type Declare } from './scene.ts'

function retrying(retry: FlowOptions<Run>['retry'], more: Partial<FlowOptions<Run>> = {}): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, ...(retry && { retry }), ...more, run: () => {} })
}

describe.each(STORES)('L8 failure on %s', (store) => {
  test('L8 n delays mean n + 1 attempts, with the same id and the same events', async () => {
    const t = await play(store, retrying(['250ms', '1s', '2s']))
    t.fail('f', new Error('down'), 10)
    await t.send([ping('u', 1), ping('u', 2)])
    await t.advance('60s')
    expect(t.runs.map((run) => run.attempt)).toEqual([1, 2, 3, 4])
    expect(t.runs.map((run) => run.ending)).toEqual(['retry', 'retry', 'retry', 'dead'])
    const at = t.runs.map((run) => run.at)
    expect(at.slice(1).map((one, n) => one - (at[n] ?? 0))).toEqual([250, 1_000, 2_000])
    expect(new Set(t.runs.map((run) => run.id)).size).toBe(1)
    expect(numbersOf(t)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
      [1, 2],
    ])
    expect(t.runs[0]?.error).toContain('down')
  })

  test('L8 an error that itself throws when it is read is a failed attempt too', async () => {
    const odd = [
      Object.defineProperty(new Error('odd'), 'cause', {
        get: () => {
          throw new Error('not to be read')
        },
      }),
      new Proxy(
        {},
        {
          has: () => {
            throw new Error('not to be asked')
          },
          getPrototypeOf: () => {
            throw new Error('not to be known')
          },
        },
      ),
    ]
    const lost: string[] = []
    const declare: Declare = (app) => {
      app.on('store.lost', ({ error }) => lost.push(error))
      return app.flow('f', {
        on: 'ping',
        key: userOf,
        retry: ['1s'],
        run: ({ attempt }) => Promise.reject(odd[attempt - 1]),
      })
    }
    const t = await play(store, declare)
    await sendNow(t, ping('u', 1))
    await t.advance('60s')
    expect(t.runs.map((run) => run.ending)).toEqual(['retry', 'dead'])
    expect(lost).toEqual([])
  })

  test('L8 no event joins a failed run', async () => {
    const t = await play(store, retrying(['10s']))
    t.fail('f', new Error('once'))
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    await t.advance('20s')
    expect(numbersOf(t)).toEqual([[1], [1], [2]])
  })

  test('L8 Retry-After of an error is respected, up to 24 h', async () => {
    const t = await play(store, retrying(['1s', '1s', '1s']))
    t.fail('f', Object.assign(new Error('busy'), { retryAfter: 30_000 }))
    t.fail('f', Object.assign(new Error('busy'), { retryAfter: 10 }))
    t.fail('f', Object.assign(new Error('busy'), { retryAfter: 90 * 86_400_000 }))
    await t.send(ping('u'))
    await t.advance('3d')
    const at = t.runs.map((run) => run.at)
    expect(at.slice(1).map((one, n) => one - (at[n] ?? 0))).toEqual([30_000, 1_000, 86_400_000])
    expect(emittedEvents(t, 'run.retry').map((one) => one.after)).toEqual([30_000, 1_000, 86_400_000])
  })

  test("L8 retryAfter of an error may be a duration such as '2m'", async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', retry: ['1s'], run: () => {} }))
    t.fail('f', Object.assign(new Error('busy'), { retryAfter: '30s' }))
    await sendNow(t, ping('u'))
    await t.advance('60s')
    expect((t.runs[1]?.at ?? 0) - (t.runs[0]?.at ?? 0)).toBe(30_000)
  })

  test('L8 while the run waits, it delays no other lane and holds no permit', async () => {
    const t = await play(store, retrying(['60s'], { concurrency: 1 }))
    t.fail('f', new Error('once'))
    await sendNow(t, ping('failing'))
    await sendNow(t, [ping('a'), ping('b')])
    expect(t.runs.map(({ key, ending }) => [key, ending])).toEqual([
      ['failing', 'retry'],
      ['a', 'done'],
      ['b', 'done'],
    ])
    await t.advance('60s')
    expect(t.runs[3]).toMatchObject({ key: 'failing', attempt: 2, ending: 'done' })
  })

  test('L8 the default delays are 1 s, 5 s, 30 s, 5 m and 30 m, each ± 20 %', async () => {
    const t = await play(store, retrying(undefined))
    t.fail('f', new Error('down'), 10)
    await t.send(ping('u'))
    await t.advance('2h')
    const at = t.runs.map((run) => run.at)
    const waits = at.slice(1).map((one, n) => one - (at[n] ?? 0))
    expect(waits).toHaveLength(5)
    for (const [n, wanted] of [1_000, 5_000, 30_000, 300_000, 1_800_000].entries()) {
      expect(waits[n]).toBeGreaterThanOrEqual(wanted * 0.8)
      expect(waits[n]).toBeLessThanOrEqual(wanted * 1.2)
    }
  })

  test('L8 a growing delay has a maximum', async () => {
    const t = await play(store, retrying({ first: '1s', factor: 3, cap: '5s', retries: 3, jitter: 0 }))
    t.fail('f', new Error('down'), 10)
    await t.send(ping('u'))
    await t.advance('60s')
    const at = t.runs.map((run) => run.at)
    expect(at.slice(1).map((one, n) => one - (at[n] ?? 0))).toEqual([1_000, 3_000, 5_000])
  })

  test('L8 retry: [] means one attempt', async () => {
    const t = await play(store, retrying([]))
    t.fail('f', new Error('down'))
    await t.send(ping('u'))
    await t.advance('60s')
    expect(t.runs).toMatchObject([{ attempt: 1, ending: 'dead' }])
  })

  test('L8 an operator can end the wait', async () => {
    const t = await play(store, retrying(['1h']))
    t.fail('f', new Error('once'))
    await sendNow(t, ping('u'))
    expect(await t.app.admin.lanes.runNow('f', 'u')).toBe('ok')
    await t.advance('4ms')
    expect(t.runs).toMatchObject([{ ending: 'retry' }, { ending: 'done', attempt: 2 }])
  })
})
