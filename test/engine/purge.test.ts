// L15: purged data is gone at once. A run that had it is notified and settles nothing, and only then the lane continues.
import { describe, expect, test } from 'vitest'
import type { PurgeTarget } from '../../src/admin/purge.ts'
import type { TestApp } from '../../src/testing/index.ts'
import {
  Gate,
  numbersOf,
  ping,
  play,
  sendNow,
  soon,
  START,
  STORES,
  emittedEvents,
  userOf,
  type Declare,
} from './scene.ts'

const windowed: Declare = (app) =>
  app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, retry: [], run: () => {} })

/** The number of events with data, including internal events that carry others. */
async function withData(t: TestApp): Promise<number> {
  const { items } = await t.app.admin.events.list({ own: true })
  return items.filter(({ purged }) => !purged).length
}

describe.each(STORES)('L15 purge on %s', (store) => {
  test('L15 by key: its waiting events are removed, and others run', async () => {
    const t = await play(store, windowed)
    await sendNow(t, [ping('a', 1), ping('a', 2), ping('b', 3)])
    expect(await t.app.admin.purge({ flow: 'f', key: 'a' })).toMatchObject({ events: 2 })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[3]])
    expect((await t.explain('f', 'a')).state).toBe('empty')
  })

  test('L15 a large purge removes everything, in steps', async () => {
    const t = await play(store, windowed)
    const many = Array.from({ length: 900 }, (_, n) => ping('a', n))
    await sendNow(t, many)
    expect(await t.app.admin.purge({ flow: 'f', key: 'a' })).toMatchObject({ events: 900 })
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
    expect(await t.app.admin.purge({ tenant: 't' })).toMatchObject({ events: 2 })
    expect(await t.app.admin.purge({ event: kept?.id ?? '' })).toMatchObject({ events: 1 })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[4]])
  })

  test('L15 by subject, of one tenant or of all', async () => {
    const t = await play(store, windowed)
    await sendNow(t, [
      { ...ping('a', 1), subject: 'ada', tenant: 't' },
      { ...ping('b', 2), subject: 'ada', tenant: 'u' },
      { ...ping('c', 3), subject: 'bob', tenant: 't' },
      { ...ping('d', 4), subject: 'ada' },
    ])
    expect(await t.app.admin.purge({ subject: 'ada', tenant: 't' })).toMatchObject({ events: 1 })
    expect(await t.app.admin.purge({ subject: 'ada' })).toMatchObject({ events: 2 })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[3]])
  })

  test.each([
    ['event', (id: string): PurgeTarget => ({ event: id })],
    ['tenant', (): PurgeTarget => ({ tenant: 't' })],
    ['subject', (): PurgeTarget => ({ subject: 'ada', tenant: 't' })],
  ])('L15 by %s: of 1,100 newer runs in the lane none hides its record', async (_by, what) => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: () => 'all', window: { maxEvents: 1 }, retry: [], run: () => {} }),
    )
    const [old] = await sendNow(t, { ...ping('a', 0), subject: 'ada', tenant: 't' })
    await t.send(Array.from({ length: 1_100 }, (_, n) => ping('b', n)))
    await t.advance('1m')
    expect(t.runs).toHaveLength(1_101)
    expect(await t.app.admin.purge(what(old?.id ?? ''))).toEqual({ events: 1, deadLetters: 0, runs: 1 })
    const runs: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Awaited<ReturnType<typeof t.app.admin.runs.list>> = await t.app.admin.runs.list({}, cursor, 1_000)
      runs.push(...page.items.flatMap(({ events }) => events))
      cursor = page.next
    }
    expect([runs.length, runs.includes(old?.id ?? '')]).toEqual([1_100, false])
  })

  test.each([
    ['event', (id: string): PurgeTarget => ({ event: id })],
    ['tenant', (): PurgeTarget => ({ tenant: 't' })],
    ['subject', (): PurgeTarget => ({ subject: 'ada' })],
  ])('L15 by %s: what waits for its time is gone, and never runs', async (_by, what) => {
    const t = await play(store, windowed)
    const [later] = await t.send({ ...ping('a', 1), tenant: 't', subject: 'ada' }, { at: START + 60_000 })
    expect(await t.app.admin.purge(what(later?.id ?? ''))).toMatchObject({ events: 1 })
    expect(await withData(t)).toBe(0)
    await t.advance('5m')
    expect(t.runs).toEqual([])
  })

  test.each([
    ['event', (id: string): PurgeTarget => ({ event: id })],
    ['key', (): PurgeTarget => ({ flow: 'f', key: 'a' })],
    ['subject', (): PurgeTarget => ({ subject: 'ada' })],
  ])('L15 by %s: of what has waited for its time no copy is left', async (_by, what) => {
    const t = await play(store, windowed)
    const [later] = await t.send({ ...ping('a', 1), subject: 'ada' }, { at: START + 60_000 })
    await t.send(ping('b', 2), { at: START + 60_000 })
    await t.advance('5m')
    expect(await withData(t)).toBe(4)
    await t.app.admin.purge(what(later?.id ?? ''))
    expect(await withData(t)).toBe(2)
  })

  test('L15 a live run: its signal is aborted, it settles nothing, and then the lane continues', async () => {
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
    await t.app.admin.purge({ flow: 'f', key: 'u' })
    await sendNow(t, ping('u', 2))
    // The run learns of the purge with its next renewal.
    await t.advance('10s')
    expect(String(reasons[0])).toContain('purged')
    expect(t.runs).toHaveLength(1)
    gate.open()
    await soon(t)
    expect(emittedEvents(t, 'run.lost')).toMatchObject([{ why: 'Its events were purged.' }])
    expect(emittedEvents(t, 'event.received').map(({ type }) => type)).toEqual(['ping', 'ping'])
    expect(t.runs[1]).toMatchObject({ ending: 'running', events: [{ n: 2 }] })
    gate.open()
  })

  test('L15 dead letters are removed too, and the identity stays known', async () => {
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
    expect((await t.app.admin.deadLetters.list()).items).toHaveLength(1)
    expect(await t.app.admin.purge({ flow: 'f', key: 'u' })).toMatchObject({ deadLetters: 1 })
    expect((await t.app.admin.deadLetters.list()).items).toEqual([])
    expect(await sendNow(t, { ...ping('u', 1), dedupeId: 'x' })).toMatchObject([{ kind: 'duplicate' }])
  })

  test.each([
    [{}],
    [{ flow: 'f' }],
    [{ tenant: '' }],
    [{ tenant: 't', event: 'e' }],
    [{ subject: '' }],
    [{ subject: 'ada', tenant: '' }],
    [{ subject: 'ada', event: 'e' }],
    [{ flow: 'f', key: 'a', subject: 'ada' }],
    [{ tennant: 't' }],
    ['f'],
    [null],
  ])('L15 %j is refused: nothing goes by mistake', async (what) => {
    const t = await play(store, windowed)
    await sendNow(t, ping('a', 1))
    await expect((async () => t.app.admin.purge(what as never))()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await t.advance('1m')
    expect(numbersOf(t)).toEqual([[1]])
  })
})
