// M6: a deferred run uses no attempt and still comes to an end. M4: calls that a run leaves behind when it ends.
import { describe, expect, test } from 'vitest'
import { snooze, retry, type Ending, type Limit, type Run } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { calling, timed } from './limit-scene.ts'
import { Gate, ping, play, sendNow, Shared, STORES, emittedEvents, userOf } from './scene.ts'

const three = { rate: 3, per: '1m' } as const

/** Makes this many calls, one after the other or all at once. */
const inTurn = async (limit: Limit, n: number, call: () => void): Promise<void> => {
  for (let at = 0; at < n; at++) await limit.run(call)
}
const atOnce = async (limit: Limit, n: number, call: () => void): Promise<void> => {
  await Promise.all(Array.from({ length: n }, () => limit.run(call)))
}

describe.each(STORES)('M6 runs that need more calls than fit on %s', (store) => {
  test.each([
    ['in turn', inTurn],
    ['at once', atOnce],
  ])('M6 put off in the middle, the next time it waits and is done: %s', async (_name, make) => {
    const { t, calls } = await timed(store, three, (limit, { key }) =>
      make(limit, 4, () => void calls.push([key, t.elapsed])),
    )
    await sendNow(t, ping('u'))
    await t.advance('1h')
    expect(t.runs.map(({ attempt, ending }) => [attempt, ending])).toEqual([
      [1, 'deferred'],
      [1, 'done'],
    ])
    expect(calls).toHaveLength(7)
  })

  test('M6 a wait beyond the timeout is a failed attempt, and in the end a dead letter', async () => {
    let calls = 0
    const t = await play(store, (app) => {
      const limit = app.limit('api', three)
      const run = (): Promise<void> => inTurn(limit, 4, () => void calls++)
      app.flow('f', { on: 'ping', key: userOf, timeout: '30s', retry: ['1s'], run })
    })
    await sendNow(t, ping('u'))
    await t.advance('3d')
    expect(t.runs.map(({ ending }) => ending)).toEqual(['deferred', 'retry', 'deferred', 'dead'])
    expect(calls).toBeLessThanOrEqual(12)
  })

  test('M6 a run that is deferred after each of its calls ends too', async () => {
    let calls = 0
    const t = await play(store, (app) => {
      const [far, near] = [app.limit('far', { rate: 1, per: '1s' }), app.limit('near', { rate: 1, per: '1s' })]
      const run = async (): Promise<void> => {
        await far.pause('10m')
        await Promise.all([far.run(() => {}), near.run(() => void calls++)])
      }
      app.flow('f', { on: 'ping', key: userOf, retry: ['1s'], run })
    })
    await sendNow(t, ping('u'))
    await t.advance('3d')
    expect(t.runs.map(({ ending }) => ending)).toEqual(['deferred', 'retry', 'dead'])
    expect(t.runs[1]?.error).toBe('The run had made calls, and was deferred by limit far once more.')
    expect(calls).toBe(3)
  })

  test('M6 a run that made no call yet is deferred as often as necessary', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '1m' }, async (limit, { key }) => {
      await limit.run(() => void calls.push([key, t.elapsed]))
      if (key !== 'u') await limit.pause('10m')
    })
    for (const key of ['a', 'u', 'b', 'c']) await sendNow(t, ping(key))
    await t.advance('2h')
    expect(calls.map(([key]) => key).toSorted()).toEqual(['a', 'b', 'c', 'u'])
    expect(t.runs.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(emittedEvents(t, 'run.retry')).toEqual([])
  })

  test.each(['1h', Infinity] as const)(
    'M3 M6 when a pause of %s is ended, deferred runs continue within a minute',
    async (duration) => {
      const paused: Limit[] = []
      const { t, calls } = await timed(store, three, (limit, { key }) => {
        paused.push(limit)
        return limit.run(() => calls.push([key, t.elapsed]))
      })
      await sendNow(t, ping('first'))
      const [limit] = paused
      await limit?.pause(duration)
      await sendNow(t, ping('u'))
      await t.advance('10m')
      await limit?.resume()
      await t.advance('61s')
      expect(calls.map(([key]) => key)).toEqual(['first', 'u'])
      expect(t.runs.every(({ attempt }) => attempt === 1)).toBe(true)
    },
  )

  test('M3 M6 a run that made a call is deferred to the end of the pause, and repeats the call', async () => {
    let calls = 0
    const t = await play(store, (app) => {
      const [near, far] = [app.limit('near', three), app.limit('far', { ...three, maxWait: '1s' })]
      const run = async (): Promise<void> => {
        await near.run(() => void calls++)
        if (calls === 1) await far.pause('1h')
        await far.run(() => {})
      }
      app.flow('f', { on: 'ping', key: userOf, retry: [], run })
    })
    await sendNow(t, ping('u'))
    await t.advance('2h')
    expect(t.runs.map(({ ending }) => ending)).toEqual(['deferred', 'done'])
    expect(calls).toBe(2)
  })

  test('M6 a pending call of a deferred run is not made, and returns its slot', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '4s', maxWait: '5s' }, (limit, { key }) =>
      key === 'u'
        ? atOnce(limit, 3, () => void calls.push([key, t.elapsed]))
        : limit.run(() => calls.push([key, t.elapsed])),
    )
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'deferred' }])
    await sendNow(t, ping('other'))
    await t.advance('5s')
    expect(calls.map(([key]) => key)).toEqual(['u', 'other'])
    await t.advance('1m')
    expect(t.runs.at(-1)).toMatchObject({ key: 'u', ending: 'done' })
  })

  test('M6 after a snooze, the calls before it are not repeated', async () => {
    let calls = 0
    const t = await play(store, (app) => {
      const limit = app.limit('api', three)
      const run = async ({ state }: Run): Promise<Ending | undefined> => {
        await inTurn(limit, 4, () => void calls++)
        return state === undefined ? snooze({ state: 1 }) : undefined
      }
      app.flow('f', { on: 'ping', key: userOf, timeout: '3m', run })
    })
    await sendNow(t, ping('u'))
    await t.advance('1h')
    expect(t.runs.map(({ ending }) => ending)).toEqual(['deferred', 'snoozed', 'deferred', 'done'])
  })

  test('M6 a run with a large state can be deferred', async () => {
    const t = await play(store, (app) => {
      const limit = app.limit('api', { rate: 1, per: '1m' })
      const run = async ({ state, key }: Run): Promise<Ending | undefined> => {
        if (key === 'u' && state === undefined) return snooze({ state: 'x'.repeat(262_144 - 26) })
        await limit.run(() => {})
        return undefined
      }
      app.flow('f', { on: 'ping', key: userOf, run })
    })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    await t.advance('2m')
    expect(t.runs.at(-1)).toMatchObject({ key: 'u', ending: 'done' })
    expect(emittedEvents(t, 'run.deferred').at(-1)?.why).toContain('api')
  })
})

describe.each(STORES)('M6 what is reported of a deferred run on %s', (store) => {
  test('M5 all limits of the call are named', async () => {
    const t = await play(store, (app) => {
      const slow = app.limit('slow', { rate: 1, per: '1h' })
      calling({ rate: 100, per: '1s' }, (limit) => limit.run(() => {}, { with: [slow] }))(app)
    })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    expect((await t.explain('f', 'u')).text).toContain('deferred by limit "api and slow"')
    expect(emittedEvents(t, 'run.deferred')[0]?.why).toContain('slot of api and slow')
  })

  test('L13 a run that stop gave back later no longer counts as deferred', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const declare = calling({ rate: 1, per: '1m' }, async (limit, { key, signal }) => {
      await limit.run(() => {})
      if (key === 'u') await gate.waitFor(key, signal)
    })
    const a = await shared.process('a', declare, { shutdownTimeout: '1s' })
    const b = await shared.process('b', () => {})
    await a.publish(ping('first'))
    await shared.advance(10)
    await a.publish(ping('u'))
    await shared.advance(10)
    expect((await b.explain('f', 'u')).text).toContain('deferred by')
    await shared.advance(62_000)
    expect(gate.waits('u')).toBe(1)
    await shared.stop(a)
    const { text } = await b.explain('f', 'u')
    expect(text).toContain('was given back')
  })

  test.each<[string, Ending]>([
    ['snoozed', snooze({ after: '1h' })],
    ['retry', retry({ after: '1h' })],
  ])('M6 nor one that says %s', async (_name, ending) => {
    const t = await play(store, (app) => {
      const limit = app.limit('api', { rate: 1, per: '1m' })
      const run = async ({ key }: Run): Promise<Ending | undefined> => {
        await limit.run(() => {})
        return key === 'u' ? ending : undefined
      }
      app.flow('f', { on: 'ping', key: userOf, retry: ['1h'], run })
    })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    await t.advance('62s')
    expect((await t.explain('f', 'u')).text).not.toContain('put off')
  })

  test('explain names the wait that ends last', async () => {
    const t: TestApp = await play(store, (app) => {
      const long = app.limit('long', { rate: 1, per: '8s' })
      calling({ rate: 1, per: '1s' }, (limit) => Promise.all([long, limit].map((one) => one.run(() => {}))))(app)
    })
    await sendNow(t, ping('first'))
    await sendNow(t, ping('u'))
    expect((await t.explain('f', 'u')).text).toContain('slot of limit "long"')
    await t.advance('2s')
    expect((await t.explain('f', 'u')).text).toContain('slot of limit "long"')
  })
})

describe.each(STORES)('M4 calls after the end of a run on %s', (store) => {
  test.each([
    ['done', 1],
    ['failed', 0],
  ])('M4 what a run began that has %s belongs to no run', async (how, ended) => {
    const gate = new Gate()
    const made: string[] = []
    const { t } = await timed(store, { rate: 1, per: '1m' }, (limit, { key, attempt }) => {
      if (attempt > 1) return
      void gate.wait(key).then(() => limit.run(() => made.push(key)))
      if (how === 'failed') throw new Error('its own')
    })
    await sendNow(t, [ping('a'), ping('b')])
    await t.advance('1h')
    expect(emittedEvents(t, 'run.done').length).toBeGreaterThanOrEqual(ended)
    gate.open('a')
    gate.open('b')
    await t.advance('2m')
    expect(made).toEqual(['a', 'b'])
  })

  test('M4 pending calls of a run that ended as done are made', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '40s', maxWait: '1h' }, (limit, { key }) => {
      for (let n = 0; n < 3; n++) void limit.run(() => calls.push([key, t.elapsed]))
    })
    await sendNow(t, ping('u'))
    expect(t.runs).toMatchObject([{ ending: 'done' }])
    await t.advance('5m')
    expect(calls).toHaveLength(3)
  })
})
