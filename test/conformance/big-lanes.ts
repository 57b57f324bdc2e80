// L7 with many events: the rules that hold for three events hold for hundreds, in one lane and in neighbouring lanes.
import assert from 'node:assert/strict'
import { getKeys, type ConformanceStage, type Suite } from './stage.ts'
import { cancelled, dead, createPlacement, retry, type EventOverrides } from './builders.ts'

/** Appends e0, e1, …: half of them one by one, half in one call. */
async function appendMany(t: ConformanceStage, count: number, words: EventOverrides = {}): Promise<readonly string[]> {
  const names = Array.from({ length: count }, (_, n) => `${words.key ?? 'e'}${n}`)
  const half = Math.floor(count / 2)
  await t.appendEach(names.slice(0, half), words)
  await t.appendEvents(...names.slice(half).map((name) => t.event(name, words)))
  return names
}

async function replayEvents(t: ConformanceStage, names: readonly string[], key: string): Promise<void> {
  const items = names.map((name) => {
    return { kind: 'replay', replay: `r ${key}`, event: t.id(name), placements: [createPlacement({ key })] } as const
  })
  const { results } = await t.store.place({ routes: t.routes, items })
  assert.ok(results.every((answer) => answer === 'placed'))
}

export const bigLanes: Suite = (rule) => {
  rule('L7 hundreds of events run in order over several runs, with new events behind them', async (t) => {
    const names = await appendMany(t, 120)
    const seen: string[] = []
    for (let n = 0; n < 5; n++) {
      const run = await t.claimOne({ maxEvents: 50 })
      seen.push(...t.names(run))
      if (n < 2) await t.appendEach([`late ${n} a`, `late ${n} b`])
      await t.settleOk(run)
      if (seen.length === 124) break
    }
    assert.deepEqual(seen, [...names, 'late 0 a', 'late 0 b', 'late 1 a', 'late 1 b'])
    await t.assertNothingReady()
  })

  rule('L8 hundreds of events that fail run again in order, with hundreds behind them', async (t) => {
    const names = await appendMany(t, 80)
    await t.settleOk(await t.claimOne(), retry(10))
    const behind = await appendMany(t, 60, { key: 'k' })
    const back = await t.claimOneAfter(10)
    assert.deepEqual(t.names(back), names)
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne()), behind)
  })

  rule('L6c hundreds of cancelled events return before the hundreds that arrived since', async (t) => {
    const words = { quiet: 10, max: 60_000 }
    const names = await appendMany(t, 40, words)
    const run = await t.claimOneAfter(10, { maxEvents: 30 })
    const more = await appendMany(t, 40, { ...words, key: 'k', cancel: true })
    await t.settleOk(run, cancelled)
    assert.deepEqual(t.names(await t.claimOne()), [...names, ...more])
  })

  rule('L7 take returns the first or the last of hundreds of events', async (t) => {
    await appendMany(t, 70)
    const last = await t.claimOne({ take: 'last' })
    assert.deepEqual([t.names(last), last.superseded], [['e69'], 69])
    await t.settleOk(last)
    await appendMany(t, 70, { key: 'k' })
    const first = await t.claimOne({ take: 'first' })
    assert.deepEqual([t.names(first), first.superseded], [['k0'], 69])
  })

  rule('L15 one of hundreds of events is purged, at the front, the middle and the end', async (t) => {
    const names = await appendMany(t, 70)
    for (const name of ['e0', 'e20', 'e35', 'e69'])
      await t.store.purge({ what: { kind: 'event', id: t.id(name) }, n: 1 })
    const left = names.filter((name) => !['e0', 'e20', 'e35', 'e69'].includes(name))
    assert.deepEqual(t.names(await t.claimOne()), left)
  })

  rule('L8 of hundreds of events a part is retried and a part is dead', async (t) => {
    const names = await appendMany(t, 60)
    const [some, others] = [names.slice(10, 40), names.slice(45, 55)]
    const outcome = { kind: 'partial', after: 0, reason: 'refused', block: false } as const
    const ids = (of: readonly string[]): readonly string[] => of.map((name) => t.id(name))
    await t.settleOk(await t.claimOne(), { ...outcome, retry: ids(some), dead: ids(others) })
    assert.deepEqual(t.names(await t.claimOne()), some)
    assert.deepEqual(
      (await t.findAll('dead')).map((deadLetter) => t.names(deadLetter.events)),
      [others],
    )
  })

  rule('L16 hundreds of replays in two lanes stay apart and in order, over retries too', async (t) => {
    const [a, b] = [await appendMany(t, 40, { key: 'a' }), await appendMany(t, 40, { key: 'b' })]
    for (const run of await t.claim()) await t.settleOk(run)
    await replayEvents(t, a, 'a')
    await replayEvents(t, b, 'b')
    const first = await t.claim({ maxEvents: 30 })
    assert.deepEqual(
      first.map((run) => t.names(run)),
      [a.slice(0, 30), b.slice(0, 30)],
    )
    for (const run of first) await t.settleOk(run, retry(10))
    t.clock.advance(10)
    const second = await t.claim()
    assert.deepEqual(
      second.map((run) => t.names(run)),
      [a.slice(0, 30), b.slice(0, 30)],
    )
    for (const run of second) await t.settleOk(run)
    assert.deepEqual(
      (await t.claim()).map((run) => t.names(run)),
      [a.slice(30), b.slice(30)],
    )
  })

  rule('L7 lanes with hundreds of live events and replays stay apart', async (t) => {
    const [a, b] = [await appendMany(t, 50, { key: 'a' }), await appendMany(t, 50, { key: 'b' })]
    const [first] = await t.claim({ maxRuns: 1 })
    assert.ok(first)
    assert.deepEqual(t.names(first), a)
    await t.settleOk(first)
    await replayEvents(t, a, 'a')
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['b', b],
        ['a', a],
      ],
    )
  })

  rule('L9 queued dead letters of two lanes run each in its own', async (t) => {
    const deadLetters: string[] = []
    for (const key of ['a', 'b']) {
      await t.append(key, { key })
      const run = await t.claimOne()
      deadLetters.push(run.runId)
      await t.settleOk(run, dead)
    }
    await t.store.steer({ what: 'dead', ids: deadLetters.toReversed(), act: 'retry' })
    const runs = await t.claim()
    assert.deepEqual(getKeys(runs).toSorted(), ['a', 'b'])
    for (const run of runs) assert.deepEqual(t.names(run), [run.key])
  })

  rule('L5 a thousand lanes are served in the order of their deadlines', async (t) => {
    const lanes = Array.from({ length: 1_000 }, (_, n) => ({ key: `k${n}`, quiet: 1 + ((n * 7_919) % 1_000) }))
    await t.appendEvents(...lanes.map((words) => t.event(words.key, words)))
    t.clock.advance(1_000)
    const expected = lanes.toSorted((one, other) => one.quiet - other.quiet).map((words) => words.key)
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1_000 })), expected)
  })
}
