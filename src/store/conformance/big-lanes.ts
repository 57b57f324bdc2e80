// L7 with a crowd: what holds for three events holds for hundreds, in one lane and in neighbouring ones.
import assert from 'node:assert/strict'
import { keys, type Stage, type Suite } from './stage.ts'
import { cancelled, dead, place, retry, type EventWords } from './vocabulary.ts'

/** e0, e1, …: half of them one by one, half in one call. */
async function crowd(t: Stage, count: number, words: EventWords = {}): Promise<readonly string[]> {
  const names = Array.from({ length: count }, (_, n) => `${words.key ?? 'e'}${n}`)
  const half = Math.floor(count / 2)
  await t.appendEach(names.slice(0, half), words)
  await t.send(...names.slice(half).map((name) => t.event(name, words)))
  return names
}

async function replayed(t: Stage, names: readonly string[], key: string): Promise<void> {
  const items = names.map((name) => {
    return { kind: 'replay', replay: `r ${key}`, event: t.id(name), places: [place({ key })] } as const
  })
  const { results } = await t.store.place({ routes: t.routes, items })
  assert.ok(results.every((answer) => answer === 'placed'))
}

export const bigLanes: Suite = (rule) => {
  rule('L7 a crowd runs in order over several runs, with newcomers in between behind them', async (t) => {
    const names = await crowd(t, 120)
    const seen: string[] = []
    for (let n = 0; n < 5; n++) {
      const run = await t.next({ maxEvents: 50 })
      seen.push(...t.names(run))
      if (n < 2) await t.appendEach([`late ${n} a`, `late ${n} b`])
      await t.end(run)
      if (seen.length === 124) break
    }
    assert.deepEqual(seen, [...names, 'late 0 a', 'late 0 b', 'late 1 a', 'late 1 b'])
    await t.nothing()
  })

  rule('L8 a crowd that fails comes back whole and in order, with a crowd behind it', async (t) => {
    const names = await crowd(t, 80)
    await t.end(await t.next(), retry(10))
    const behind = await crowd(t, 60, { key: 'k' })
    const back = await t.dueIn(10)
    assert.deepEqual(t.names(back), names)
    await t.end(back)
    assert.deepEqual(t.names(await t.next()), behind)
  })

  rule('L6c a crowd that is cancelled goes back before the crowd that came since', async (t) => {
    const words = { quiet: 10, max: 60_000 }
    const names = await crowd(t, 40, words)
    const run = await t.dueIn(10, { maxEvents: 30 })
    const more = await crowd(t, 40, { ...words, key: 'k', cancel: true })
    await t.end(run, cancelled)
    assert.deepEqual(t.names(await t.next()), [...names, ...more])
  })

  rule('L7 of a crowd take gives the first or the last', async (t) => {
    await crowd(t, 70)
    const last = await t.next({ take: 'last' })
    assert.deepEqual([t.names(last), last.superseded], [['e69'], 69])
    await t.end(last)
    await crowd(t, 70, { key: 'k' })
    const first = await t.next({ take: 'first' })
    assert.deepEqual([t.names(first), first.superseded], [['k0'], 69])
  })

  rule('L15 out of a crowd one event is purged, from the front, the middle and the end', async (t) => {
    const names = await crowd(t, 70)
    for (const name of ['e0', 'e20', 'e35', 'e69'])
      await t.store.purge({ what: { kind: 'event', id: t.id(name) }, n: 1 })
    const left = names.filter((name) => !['e0', 'e20', 'e35', 'e69'].includes(name))
    assert.deepEqual(t.names(await t.next()), left)
  })

  rule('L8 of a crowd a part is tried again and a part is dead', async (t) => {
    const names = await crowd(t, 60)
    const [some, others] = [names.slice(10, 40), names.slice(45, 55)]
    const outcome = { kind: 'partial', after: 0, reason: 'refused', block: false } as const
    const ids = (of: readonly string[]): readonly string[] => of.map((name) => t.id(name))
    await t.end(await t.next(), { ...outcome, retry: ids(some), dead: ids(others) })
    assert.deepEqual(t.names(await t.next()), some)
    assert.deepEqual(
      (await t.all('dead')).map((letter) => t.names(letter.events)),
      [others],
    )
  })

  rule('L16 crowds of replays in two lanes stay apart and in order, over retries too', async (t) => {
    const [a, b] = [await crowd(t, 40, { key: 'a' }), await crowd(t, 40, { key: 'b' })]
    for (const run of await t.claim()) await t.end(run)
    await replayed(t, a, 'a')
    await replayed(t, b, 'b')
    const first = await t.claim({ maxEvents: 30 })
    assert.deepEqual(
      first.map((run) => t.names(run)),
      [a.slice(0, 30), b.slice(0, 30)],
    )
    for (const run of first) await t.end(run, retry(10))
    t.clock.advance(10)
    const second = await t.claim()
    assert.deepEqual(
      second.map((run) => t.names(run)),
      [a.slice(0, 30), b.slice(0, 30)],
    )
    for (const run of second) await t.end(run)
    assert.deepEqual(
      (await t.claim()).map((run) => t.names(run)),
      [a.slice(30), b.slice(30)],
    )
  })

  rule('L7 lanes with crowds stay apart, live events and replays too', async (t) => {
    const [a, b] = [await crowd(t, 50, { key: 'a' }), await crowd(t, 50, { key: 'b' })]
    const [first] = await t.claim({ slots: 1 })
    assert.ok(first)
    assert.deepEqual(t.names(first), a)
    await t.end(first)
    await replayed(t, a, 'a')
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
    const letters: string[] = []
    for (const key of ['a', 'b']) {
      await t.append(key, { key })
      const run = await t.next()
      letters.push(run.run)
      await t.end(run, dead)
    }
    await t.store.steer({ what: 'dead', ids: letters.toReversed(), act: 'retry' })
    const runs = await t.claim()
    assert.deepEqual(keys(runs).toSorted(), ['a', 'b'])
    for (const run of runs) assert.deepEqual(t.names(run), [run.key])
  })

  rule('L5 a thousand lanes are served in the order of their deadlines', async (t) => {
    const lanes = Array.from({ length: 1_000 }, (_, n) => ({ key: `k${n}`, quiet: 1 + ((n * 7_919) % 1_000) }))
    await t.send(...lanes.map((words) => t.event(words.key, words)))
    t.clock.advance(1_000)
    const expected = lanes.toSorted((one, other) => one.quiet - other.quiet).map((words) => words.key)
    assert.deepEqual(keys(await t.claim({ slots: 1_000 })), expected)
  })
}
