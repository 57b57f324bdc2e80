// L14: paused flows and held lanes wait, while events arrive, windows end and live runs continue.
import { describe, expect, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import {
  Gate,
  keysOf,
  numbersOf,
  ping,
  play,
  sendNow,
  soon,
  STORES,
  emittedEvents,
  userOf,
  type Declare,
} from './scene.ts'

const WHY = { reason: 'maintenance', by: 'ana' }
const flow: Declare = (app) => app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, run: () => {} })

describe.each(STORES)('L14 pause and hold on %s', (store) => {
  test('L14 an unknown flow cannot be paused', async () => {
    const t = await play(store, flow)
    expect(await t.app.admin.flows.pause('nobody', WHY)).toBe('missing')
    expect(emittedEvents(t, 'flow.paused')).toEqual([])
  })

  test('a flow that is declared while the app starts is rejected, because it would get events and never run', async () => {
    const app = new Sluice({ store, log: false })
    const starting = app.start()
    expect(() => app.flow('late', { on: 'ping', run: () => {} })).toThrow('must be declared before start')
    await starting
    await app.stop()
  })

  test('L14 a paused flow starts no run, but its windows end', async () => {
    const t = await play(store, flow)
    expect(await t.app.admin.flows.pause('f', WHY)).toBe('ok')
    await t.send(ping('a', 1))
    await t.advance('5s')
    await t.send(ping('a', 2))
    await t.advance('1h')
    expect(t.runs).toEqual([])
    expect(await t.app.admin.flows.list()).toContainEqual(
      expect.objectContaining({ flow: 'f', paused: expect.objectContaining(WHY) }),
    )
    expect(await t.app.admin.flows.resume('f', 'ana')).toBe('ok')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1, 2]])
    expect(emittedEvents(t, 'flow.paused')).toEqual([{ flow: 'f', ...WHY }])
    expect(emittedEvents(t, 'flow.resumed')).toEqual([{ flow: 'f', by: 'ana' }])
  })

  test('L14 a live run finishes', async () => {
    const gate = new Gate()
    const t = await play(store, (app) => app.flow('f', { on: 'ping', key: userOf, run: () => gate.wait() }))
    await sendNow(t, ping('a', 1))
    await t.app.admin.flows.pause('f', WHY)
    await sendNow(t, ping('a', 2))
    gate.open()
    await soon(t)
    expect(t.runs).toMatchObject([{ ending: 'done' }])
    await t.advance('10m')
    expect(t.runs).toHaveLength(1)
    await t.app.admin.flows.resume('f')
    await soon(t)
    expect(t.runs).toHaveLength(2)
  })

  test('L14 other flows continue', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', run: () => {} }).flow('g', { on: 'ping', run: () => {} }),
    )
    await t.app.admin.flows.pause('f', WHY)
    await sendNow(t, ping('a'))
    expect(t.runs).toMatchObject([{ flow: 'g' }])
  })

  test('L14 a held lane waits until the hold is lifted; other lanes continue', async () => {
    const t = await play(store, flow)
    await t.send(ping('a', 1))
    expect(await t.app.admin.lanes.hold('f', 'a', WHY)).toBe('ok')
    await t.send(ping('b', 1))
    await t.advance('1h')
    expect(keysOf(t)).toEqual(['b'])
    expect(emittedEvents(t, 'lane.held')).toEqual([{ flow: 'f', key: 'a', ...WHY }])
    expect(await t.app.admin.lanes.unhold('f', 'a')).toBe('ok')
    await soon(t)
    expect(keysOf(t)).toEqual(['b', 'a'])
  })

  test('L14 a hold with an end ends on its own', async () => {
    const t = await play(store, flow)
    await t.send(ping('a', 1))
    await t.app.admin.lanes.hold('f', 'a', { ...WHY, for: '60s' })
    await t.advance('59s')
    expect(t.runs).toEqual([])
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ key: 'a', at: 60_000 }])
  })

  test('L14 a lane can be held before it has any event', async () => {
    const t = await play(store, flow)
    const answer = await t.app.admin.lanes.hold('f', 'nobody', WHY)
    await t.send(ping('nobody', 1))
    await t.advance('60s')
    expect([answer, t.runs.length]).toEqual(answer === 'ok' ? ['ok', 0] : ['missing', 1])
  })

  test('L14 drop removes waiting events', async () => {
    const t = await play(store, flow)
    await t.send([ping('a', 1), ping('b', 1)])
    expect(await t.app.admin.lanes.drop('f', 'a')).toBe('ok')
    await t.advance('60s')
    expect(keysOf(t)).toEqual(['b'])
    expect(await t.app.admin.lanes.drop('f', 'nobody')).toBe('missing')
  })

  test('L14 run-now ends a window', async () => {
    const t = await play(store, flow)
    await t.send(ping('a', 1))
    expect(await t.app.admin.lanes.runNow('f', 'a')).toBe('ok')
    await soon(t)
    expect(keysOf(t)).toEqual(['a'])
  })

  test('L14 lanes are listed by flow', async () => {
    const t = await play(store, flow)
    await t.send([ping('a', 1), ping('b', 1), ping('b', 2)])
    const { items } = await t.app.admin.lanes.list({ flow: 'f' })
    expect(items.map(({ key, waiting }) => `${key} ${waiting}`).toSorted()).toEqual(['a 1', 'b 2'])
  })
})
