// Schedules: one run of each tick, cron, and a tick that was missed is made up for once.
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../src/testing/index.ts'
import { freshFile, Gate, play, START, STORES } from './scene.ts'

const MINUTE = 60_000

function ticksOf(t: TestApp): readonly number[] {
  return t.runs.map((run) => (run.events[0] as { tick: number }).tick - START)
}

describe.each(STORES)('every on %s', (store) => {
  test('every 5m: one run of each tick, on the clock', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}), { now: START + MINUTE })
    await t.advance('20m')
    expect(ticksOf(t)).toEqual([5, 10, 15, 20].map((n) => n * MINUTE))
    expect(t.runs.map((run) => run.at + MINUTE)).toEqual([5, 10, 15, 20].map((n) => n * MINUTE))
    expect(t.runs.every((run) => run.flow === 'every/sweep' && run.key === 'sweep')).toBe(true)
  })

  test('cron: in UTC unless a zone is said', async () => {
    const t = await play(store, (app) =>
      app.every('utc', '30 2 * * *', () => {}).every('berlin', '30 2 * * *', () => {}, { timeZone: 'Europe/Berlin' }),
    )
    await t.advance('24h')
    const of = (name: string) => t.runs.filter((run) => run.key === name).map((run) => run.at / MINUTE)
    expect(of('utc')).toEqual([150])
    expect(of('berlin')).toEqual([90])
  })

  test('a tick during a long run is not run beside it; of several the last counts', async () => {
    const gate = new Gate()
    const t = await play(store, (app) => app.every('slow', '1m', () => (t.runs.length === 1 ? gate.wait() : undefined)))
    await t.advance('3m')
    await t.advance('30s')
    expect(t.runs).toHaveLength(1)
    gate.open()
    await t.advance('10s')
    expect(ticksOf(t)).toEqual([MINUTE, 3 * MINUTE])
  })

  test('ticks missed while the process was down are made up for once', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}))
    await t.advance('6m')
    await t.crash()
    await t.advance('62m')
    expect(ticksOf(t)).toEqual([5 * MINUTE])
    await t.restart()
    await t.advance('10s')
    expect(ticksOf(t)).toEqual([5 * MINUTE, 65 * MINUTE])
    await t.advance('3m')
    expect(ticksOf(t)).toEqual([5 * MINUTE, 65 * MINUTE, 70 * MINUTE])
  })

  test('a restart right after a tick does not run it again', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}))
    await t.advance('6m')
    await t.crash()
    await t.restart()
    await t.advance('1m')
    expect(ticksOf(t)).toEqual([5 * MINUTE])
  })

  test('what was before the schedule was first known is not made up for', async () => {
    const t = await play(store, (app) => app.every('daily', '0 0 * * *', () => {}), { now: START + 12 * 60 * MINUTE })
    await t.advance('1h')
    expect(t.runs).toEqual([])
  })

  test('a tick that fails is retried as any run', async () => {
    const t = await play(store, (app) => app.every('sweep', '5m', () => {}))
    t.fail('every/sweep', new Error('once'))
    await t.advance('302s')
    expect(t.runs).toMatchObject([{ ending: 'retry' }, { ending: 'done', attempt: 2 }])
  })
})

describe('every after a real downtime, on a file', () => {
  test('the missed tick is made up for once by the next process', async () => {
    const store = freshFile()
    const first = await play(store, (app) => app.every('hourly', '0 * * * *', () => {}))
    await first.advance('90m')
    expect(ticksOf(first)).toEqual([60 * MINUTE])
    await first.stop()
    const t = await play(store, (app) => app.every('hourly', '0 * * * *', () => {}), { now: START + 330 * MINUTE })
    await t.advance('1m')
    expect(ticksOf(t)).toEqual([300 * MINUTE])
    await t.advance('29m')
    expect(ticksOf(t)).toEqual([300 * MINUTE, 360 * MINUTE])
  })
})
