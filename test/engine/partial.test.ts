// `partial`: the accepted part ends; the rest becomes a new run or a dead letter.
import { describe, expect, test } from 'vitest'
import { partial, type Ending, type FlowOptions, type Run } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { numbersOf, ping, play, sendNow, STORES, emittedEvents, userOf } from './scene.ts'

function partly(
  store: string,
  run: (run: Run) => Ending | undefined,
  more: Partial<FlowOptions<Run>> = {},
): Promise<TestApp> {
  return play(store, (app) => app.flow('f', { on: 'ping', key: userOf, retry: ['1s', '1s'], ...more, run }))
}

function failed(
  run: Run,
  numbers: readonly number[],
  permanent = false,
): { id: string; reason: string; permanent: boolean }[] {
  return run.events
    .filter((event) => numbers.includes((event.data as { n: number }).n))
    .map(({ id }) => ({ id, reason: 'no', permanent }))
}

const THREE = [ping('u', 1), ping('u', 2), ping('u', 3)]

describe.each(STORES)('partial on %s', (store) => {
  test('partial: the rest runs again under a new id with the same attempt count', async () => {
    const t = await partly(store, (run) => (run.attempt === 1 ? partial({ failed: failed(run, [2]) }) : undefined))
    await sendNow(t, THREE)
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1, 2, 3], [2]])
    expect(t.runs).toMatchObject([{ ending: 'partial' }, { ending: 'done', attempt: 2 }])
    expect(t.runs[1]?.id).not.toBe(t.runs[0]?.id)
    expect((t.runs[1]?.at ?? 0) - (t.runs[0]?.at ?? 0)).toBe(1_000)
    expect(emittedEvents(t, 'run.partial')).toMatchObject([{ failed: 1, error: 'no' }])
  })

  test('partial: permanently failed events are a dead letter at once, and the others run again', async () => {
    const t = await partly(store, (run) =>
      run.attempt === 1 ? partial({ failed: [...failed(run, [1], true), ...failed(run, [3])] }) : undefined,
    )
    await sendNow(t, THREE)
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1, 2, 3], [3]])
    const { items } = await t.app.admin.deadLetters.list()
    expect(items).toHaveLength(1)
    const shown = await t.app.admin.deadLetters.show(items[0]?.id ?? '')
    expect(shown?.contents.map((event) => (event.data as { n: number }).n)).toEqual([1])
    expect(shown?.kind === 'run' && shown.reason).toBe('no')
  })

  test('partial: the rest dies after the last attempt', async () => {
    const t = await partly(store, (run) => partial({ failed: failed(run, [2, 3]) }))
    await sendNow(t, THREE)
    await t.advance('60s')
    expect(numbersOf(t)).toEqual([
      [1, 2, 3],
      [2, 3],
      [2, 3],
    ])
    const { items } = await t.app.admin.deadLetters.list()
    expect(items).toMatchObject([{ tries: 3 }])
    expect(items[0]?.events).toHaveLength(2)
  })

  test('partial: no event joins the rest, and it runs before events that arrived meanwhile', async () => {
    const t = await partly(store, (run) => (run.attempt === 1 ? partial({ failed: failed(run, [1, 3]) }) : undefined))
    await sendNow(t, THREE)
    await sendNow(t, ping('u', 4))
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1, 2, 3], [1, 3], [4]])
  })

  test('partial with unknown ids fails the attempt and ends nothing', async () => {
    const t = await partly(store, (run) =>
      run.attempt === 1 ? partial({ failed: [{ id: 'stranger', reason: 'no' }] }) : undefined,
    )
    await sendNow(t, THREE)
    await t.advance('10s')
    expect(t.runs[0]).toMatchObject({ ending: 'retry' })
    expect(t.runs[0]?.error).toContain('stranger')
    expect(numbersOf(t)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
  })

  test('partial that names an event twice counts it once', async () => {
    const t = await partly(store, (run) =>
      run.attempt === 1 ? partial({ failed: [...failed(run, [2]), ...failed(run, [2])] }) : undefined,
    )
    await sendNow(t, THREE)
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1, 2, 3], [2]])
    expect(t.runs[1]).toMatchObject({ ending: 'done' })
  })

  test('partial that names all events retries all of them', async () => {
    const t = await partly(store, (run) =>
      run.attempt === 1 ? partial({ failed: failed(run, [1, 2, 3]) }) : undefined,
    )
    await sendNow(t, THREE)
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
    expect(t.runs[1]).toMatchObject({ ending: 'done', attempt: 2 })
  })

  test('partial without a list fails the attempt', async () => {
    const t = await partly(store, () => partial({} as unknown as Parameters<typeof partial>[0]))
    await sendNow(t, THREE)
    expect(t.runs).toMatchObject([{ ending: 'retry' }])
  })

  test("partial with onDead: 'block': the lane waits for the dead part", async () => {
    const t = await partly(
      store,
      (run) => (run.events.length === 3 ? partial({ failed: failed(run, [1], true) }) : undefined),
      { onDead: 'block' },
    )
    await sendNow(t, THREE)
    await sendNow(t, ping('u', 4))
    await t.advance('1h')
    expect(numbersOf(t)).toEqual([[1, 2, 3]])
    const { items } = await t.app.admin.deadLetters.list()
    await t.app.admin.deadLetters.retry(items[0]?.id ?? '')
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1, 2, 3], [1], [4]])
  })
})
