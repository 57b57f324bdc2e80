// L12: a process that dies only delays its runs, unless they make it die again and again.
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../src/testing/index.ts'
import {
  Gate,
  numbersOf,
  ping,
  play,
  sendNow,
  soon,
  START,
  emittedEvents,
  userOf,
  type Declare,
  type More,
} from './scene.ts'
import { ownFile } from '../temporary-folder.ts'

function hanging(gate: Gate, more: More = {}): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, retry: ['1s'], run: ({ key }) => gate.wait(key), ...more })
}

async function killAndComeBack(t: TestApp): Promise<void> {
  await t.crash()
  await t.restart()
  await t.advance('31s')
}

describe.each(['memory:', 'sqlite::memory:', 'a file'])('L12 crash on %s', (name) => {
  const storeOf = (): string => (name === 'a file' ? ownFile() : name)

  test('L12 the run returns when its lease ends: same id, same events, no attempt used', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), hanging(gate))
    await sendNow(t, [ping('u', 1), ping('u', 2)])
    await t.crash()
    await t.restart()
    await sendNow(t, ping('u', 3))
    await t.advance('29s')
    expect(t.runs).toHaveLength(1)
    await t.advance('1s')
    expect(t.runs).toHaveLength(2)
    const [first, second] = t.runs
    expect(first).toMatchObject({ ending: 'lost', attempt: 1 })
    expect(second).toMatchObject({ id: first?.id, attempt: 1, ending: 'running', events: [{ n: 1 }, { n: 2 }] })
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBe(30_000)
    gate.open('u')
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1, 2], [1, 2], [3]])
  })

  test('L12 a run under concurrency returns when its lease ends', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), (app) =>
      app.flow('f', { on: 'ping', key: userOf, concurrency: 1, run: () => gate.wait() }),
    )
    await sendNow(t, ping('u'))
    await t.crash()
    await t.restart()
    await t.advance('35s')
    expect(t.runs).toMatchObject([{ ending: 'lost' }, { ending: 'running', attempt: 1 }])
  })

  test('L12 heartbeats keep a long run from lapsing while its process lives', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), hanging(gate, { timeout: '1h' }))
    await sendNow(t, ping('u', 1))
    await t.advance('30m')
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    gate.open('u')
    await soon(t)
    expect(t.runs).toMatchObject([{ ending: 'done' }])
  })

  test('L12 the fourth lapse makes the run a dead letter that shows how often it crashed', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), hanging(gate))
    await sendNow(t, ping('poison', 1))
    for (let lapse = 1; lapse <= 3; lapse++) {
      await killAndComeBack(t)
      expect(t.runs).toHaveLength(lapse + 1)
      expect(t.runs.at(-1)).toMatchObject({ attempt: 1, id: t.runs[0]?.id, ending: 'running' })
    }
    await killAndComeBack(t)
    expect(t.runs).toHaveLength(4)
    const { items } = await t.app.admin.deadLetters.list()
    expect(items).toMatchObject([{ key: 'poison', reason: 'crashed', lapses: 4, tries: 0, id: t.runs[0]?.id }])
    expect(emittedEvents(t, 'run.dead')).toMatchObject([{ key: 'poison', run: t.runs[0]?.id }])
    await sendNow(t, ping('poison', 2))
    expect(numbersOf(t).at(-1)).toEqual([2])
  })

  test('L12 a first lapse does not delay other runs of the process', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), hanging(gate))
    await sendNow(t, [ping('a'), ping('b'), ping('c')])
    await killAndComeBack(t)
    expect(
      t.runs
        .slice(3)
        .map((run) => run.key)
        .toSorted(),
    ).toEqual(['a', 'b', 'c'])
  })

  test('L12 from the second lapse on, a process takes one suspect at a time', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), hanging(gate))
    await sendNow(t, [ping('a'), ping('b'), ping('c')])
    await killAndComeBack(t)
    await killAndComeBack(t)
    expect(t.runs).toHaveLength(7)
    await sendNow(t, ping('innocent'))
    expect(t.runs).toHaveLength(8)
    const suspect = t.runs[6]?.key ?? ''
    for (const key of ['a', 'b', 'c']) while (gate.waits(key) > 0) gate.open(key)
    await soon(t)
    expect(t.runs).toHaveLength(9)
    expect(t.runs[8]?.key).not.toBe(suspect)
  })

  test('L12 windows and retry delays survive a crash', async () => {
    const gate = new Gate()
    const t = await play(storeOf(), hanging(gate, { window: { quiet: '60s' }, retry: ['100s'] }))
    t.fail('f', new Error('once'))
    await t.send(ping('failing', 1))
    await t.advance('61s')
    await t.send(ping('waiting', 1))
    await t.crash()
    await t.restart()
    await t.advance('59s')
    expect(t.runs).toHaveLength(1)
    await t.advance('1s')
    expect(t.runs[1]).toMatchObject({ key: 'waiting', at: 121_000 })
    await t.advance('60s')
    expect(t.runs[2]).toMatchObject({ key: 'failing', attempt: 2, at: 160_000 })
  })
})

describe('L12 a new process on the same file', () => {
  test('L12 every acknowledged event runs after the process is gone', async () => {
    const store = ownFile()
    const gate = new Gate()
    const dead = await play(store, hanging(gate, { window: { quiet: '5s' } }))
    await dead.send([ping('a', 1), ping('b', 2)])
    await dead.advance('5s')
    await dead.send([ping('a', 3), ping('c', 4)])
    await dead.crash()
    await dead.stop()
    const t = await play(store, hanging(gate, { window: { quiet: '5s' }, run: () => {} }), { now: START + 6_000 })
    await t.advance('60s')
    expect(t.runs.map((run) => run.key).toSorted()).toEqual(['a', 'a', 'b', 'c'])
    expect(new Set(numbersOf(t).flat())).toEqual(new Set([1, 2, 3, 4]))
    expect(t.runs.filter((run) => run.key === 'b')).toMatchObject([
      { id: dead.runs.find((run) => run.key === 'b')?.id },
    ])
  })
})
