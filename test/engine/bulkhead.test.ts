// L24: failing lanes take at most a quarter of a flow's slots, and the others continue.
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, ping, play, sendNow, soon, STORES, userOf } from './scene.ts'

function failing(store: string, gate: Gate, concurrency: number): Promise<TestApp> {
  return play(store, (app) =>
    app.flow('f', {
      on: 'ping',
      key: userOf,
      concurrency,
      timeout: '1h',
      retry: ['10s', '10s', '10s'],
      run: async ({ key, attempt }) => {
        if (!key.startsWith('bad')) return
        if (attempt === 1) throw new Error('down')
        await gate.wait(key)
      },
    }),
  )
}

describe.each(STORES)('L24 bulkhead on %s', (store) => {
  test.each([
    [8, 2],
    [4, 1],
    [1, 1],
    [3, 1],
    [16, 4],
  ])('L24 of %i slots at most %i run lanes that have failed', async (slots, most) => {
    const gate = new Gate()
    const t = await failing(store, gate, slots)
    await sendNow(
      t,
      Array.from({ length: 20 }, (_, n) => ping(`bad${n}`)),
    )
    await t.advance('10s')
    expect(t.runs.filter((run) => run.attempt === 2)).toHaveLength(most)
    const [first] = t.runs.filter((run) => run.attempt === 2)
    gate.open(first?.key)
    await soon(t)
    expect(t.runs.filter((run) => run.attempt === 2)).toHaveLength(most + 1)
  })

  test('L24 healthy lanes get the other slots at once', async () => {
    const gate = new Gate()
    const t = await failing(store, gate, 4)
    await sendNow(
      t,
      Array.from({ length: 20 }, (_, n) => ping(`bad${n}`)),
    )
    await t.advance('11s')
    await sendNow(
      t,
      Array.from({ length: 10 }, (_, n) => ping(`good${n}`)),
    )
    expect(t.runs.filter((run) => run.key.startsWith('good') && run.ending === 'done')).toHaveLength(10)
  })

  test('L24 an event that arrives at the moment at which lanes are held back does not hang the app', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        concurrency: 4,
        timeout: '1h',
        retry: ['10s'],
        run: async ({ key, attempt }) => {
          if (key.startsWith('bad') && attempt === 1) throw new Error('down')
          if (key.startsWith('bad')) await gate.wait(key)
        },
      }),
    )
    await sendNow(t, [ping('bad1'), ping('bad2')])
    await t.advance('10s')
    await sendNow(t, ping('good'))
    expect(t.runs.at(-1)).toMatchObject({ key: 'good', ending: 'done' })
  }, 2_000)

  test('L24 a healthy lane whose window ends is not delayed by failing ones that wait for their slot', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '5s' },
        concurrency: 4,
        timeout: '1h',
        retry: ['10s'],
        run: async ({ key, attempt }) => {
          if (key.startsWith('bad') && attempt === 1) throw new Error('down')
          if (key.startsWith('bad')) await gate.wait(key)
        },
      }),
    )
    await t.send([ping('bad1'), ping('bad2')])
    await t.advance('20s')
    await t.send(ping('good'))
    await t.advance('6s')
    expect(t.runs.at(-1)).toMatchObject({ key: 'good', at: 25_000, ending: 'done' })
  })

  test('L24 without concurrency, failing lanes take at most a quarter of the runs of a process', async () => {
    const gate = new Gate()
    const t = await play(
      store,
      (app) =>
        app.flow('f', {
          on: 'ping',
          key: userOf,
          retry: ['10s'],
          run: async ({ attempt, key }) => {
            if (attempt === 1) throw new Error('down')
            await gate.wait(key)
          },
        }),
      { maxConcurrentRuns: 12 },
    )
    await sendNow(
      t,
      Array.from({ length: 30 }, (_, n) => ping(`bad${n}`)),
    )
    await t.advance('11s')
    expect(t.runs.filter((run) => run.attempt === 2)).toHaveLength(3)
  })
})
