// L15: what is purged is gone at once; a run that had it is told, settles nothing, and only then can its lane go on.
import { describe, expect, test } from 'vitest'
import { Gate, numbersOf, ping, play, sendNow, soon, STORES, told, userOf, type Declare } from './scene.ts'

const windowed: Declare = (app) =>
  app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, retry: [], run: () => {} })

describe.each(STORES)('L15 purge on %s', (store) => {
  test('L15 by key: what waits there is gone, others run', async () => {
    const t = await play(store, windowed)
    await sendNow(t, [ping('a', 1), ping('a', 2), ping('b', 3)])
    expect(await t.app.purge({ flow: 'f', key: 'a' })).toMatchObject({ events: 2 })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[3]])
    expect((await t.explain('f', 'a')).state).toBe('empty')
  })

  test('L15 however much there is: piece by piece, all of it', async () => {
    const t = await play(store, windowed)
    const many = Array.from({ length: 900 }, (_, n) => ping('a', n))
    await sendNow(t, many)
    expect(await t.app.purge({ flow: 'f', key: 'a' })).toMatchObject({ events: 900 })
    await t.advance('1m')
    expect(t.runs).toEqual([])
  })

  test('L15 by tenant, and by event', async () => {
    const t = await play(store, windowed)
    const [, kept] = await sendNow(t, [
      { ...ping('a', 1), tenant: 't' },
      ping('b', 2),
      { ...ping('c', 3), tenant: 't' },
      ping('d', 4),
    ])
    expect(await t.app.purge({ tenant: 't' })).toMatchObject({ events: 2 })
    expect(await t.app.purge({ event: kept?.id ?? '' })).toMatchObject({ events: 1 })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[4]])
  })

  test('L15 a live run: its signal aborts, it settles nothing, and then the lane goes on', async () => {
    const gate = new Gate()
    const reasons: unknown[] = []
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        run: async (run) => {
          run.signal.addEventListener('abort', () => reasons.push(run.signal.reason))
          run.publish({ type: 'pong' })
          await gate.wait()
        },
      }),
    )
    await sendNow(t, ping('u', 1))
    await t.app.purge({ flow: 'f', key: 'u' })
    await sendNow(t, ping('u', 2))
    // It is heard of with the next renewal.
    await t.advance('10s')
    expect(String(reasons[0])).toContain('purged')
    expect(t.runs).toHaveLength(1)
    gate.open()
    await soon(t)
    expect(told(t, 'run.lost')).toMatchObject([{ why: 'Its events were purged.' }])
    expect(told(t, 'event.received').map(({ type }) => type)).toEqual(['ping', 'ping'])
    expect(t.runs[1]).toMatchObject({ ending: 'running', events: [{ n: 2 }] })
    gate.open()
  })

  test('L15 dead letters go too, and the identity stays known', async () => {
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        retry: [],
        run: () => {
          throw new Error('no')
        },
      }),
    )
    await sendNow(t, { ...ping('u', 1), dedupeId: 'x' })
    expect((await t.app.deadLetters.list()).items).toHaveLength(1)
    expect(await t.app.purge({ flow: 'f', key: 'u' })).toMatchObject({ letters: 1 })
    expect((await t.app.deadLetters.list()).items).toEqual([])
    expect(await sendNow(t, { ...ping('u', 1), dedupeId: 'x' })).toMatchObject([{ kind: 'duplicate' }])
  })

  test.each([
    [{}],
    [{ flow: 'f' }],
    [{ tenant: '' }],
    [{ tenant: 't', event: 'e' }],
    [{ tennant: 't' }],
    ['f'],
    [null],
  ])('L15 %j is refused: nothing goes by mistake', async (what) => {
    const t = await play(store, windowed)
    await sendNow(t, ping('a', 1))
    await expect((async () => t.app.purge(what as never))()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[1]])
  })
})
