// L9: a dead letter keeps all that is needed to try it again, by hand, once, in its lane and never beside a live run.
import assert from 'node:assert/strict'
import type { Lease } from '../contract/index.ts'
import type { Outcome } from '../../model/settle.ts'
import { keys, only, type Stage, type Suite } from './stage.ts'
import { blocking, claimOf, dead, done, dropped, place, retry } from './vocabulary.ts'

/** The run of one event that died; it is the letter of the same id. */
async function died(t: Stage, name: string, outcome: Outcome = dead): Promise<Lease> {
  await t.append(name)
  const run = await t.next()
  await t.end(run, outcome)
  return run
}

export const deadLetters: Suite = (rule) => {
  rule('L9 a dead letter has its events, its reason and when it died, and the lane goes on', async (t) => {
    await t.appendEach(['a', 'b'], { tenant: 'acme' })
    const run = await t.next()
    await t.append('c')
    t.clock.advance(500)
    await t.end(run, dead)
    const letter = await t.letter(run.run)
    assert.ok(letter)
    const { state, reason, at, key, flow, tenant, lane, blocks } = letter
    assert.deepEqual([state, reason, at, blocks], ['dead', 'broken', t.clock.now(), false])
    assert.deepEqual([key, flow, tenant, lane, t.names(letter.events)], ['k', 'flow', 'acme', run.lane, ['a', 'b']])
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  rule('L9 block: the lane waits for that letter, other lanes do not', async (t) => {
    const run = await died(t, 'a', blocking)
    await t.append('b')
    await t.append('other', { key: 'other' })
    t.clock.advance(86_400_000)
    assert.deepEqual(keys(await t.claim()), ['other'])
    assert.equal((await t.letter(run.run))?.blocks, true)
  })

  rule('L9 block: replays wait too', async (t) => {
    await died(t, 'a', blocking)
    await t.append('old', { key: 'elsewhere' })
    await t.end(await t.next())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('old'), places: [place()] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.nothing()
  })

  rule('L9 block waits for that letter alone, not for the others of its lane', async (t) => {
    const plain = await died(t, 'a')
    const blocker = await died(t, 'b', blocking)
    await t.append('c')
    assert.equal(await t.steerDead(plain.run, 'drop'), 'ok')
    await t.nothing()
    assert.equal(await t.steerDead(blocker.run, 'drop'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  rule('L9 retry is dead to queued, once', async (t) => {
    const run = await died(t, 'a')
    assert.equal(await t.steerDead(run.run, 'retry'), 'ok')
    assert.equal((await t.letter(run.run))?.state, 'queued')
    assert.equal(await t.steerDead(run.run, 'retry'), 'already')
    const back = await t.next()
    assert.equal((await t.letter(run.run))?.state, 'running')
    assert.equal(await t.steerDead(run.run, 'retry'), 'already')
    assert.equal(await t.steerDead(run.run, 'drop'), 'running')
    await t.end(back)
    assert.equal(await t.steerDead(run.run, 'retry'), 'missing')
    await t.nothing()
  })

  rule(
    'L9 L21 of two that are queued, one after the clock was set back, the first runs by the earlier moment',
    async (t) => {
      const [one, two] = [await died(t, 'a'), await died(t, 'b')]
      await t.steerDead(one.run, 'retry')
      t.clock.set(t.clock.now() - 50)
      await t.steerDead(two.run, 'retry')
      assert.equal((await t.next()).run, one.run)
    },
  )

  rule('L4 L9 of two that are queued the first is dropped: the lane keeps its place', async (t) => {
    const [one, two] = [await died(t, 'a'), await died(t, 'b')]
    await t.steerDead(one.run, 'retry')
    t.clock.advance(10)
    await t.append('c', { key: 'other' })
    t.clock.advance(10)
    await t.steerDead(two.run, 'retry')
    await t.steerDead(one.run, 'drop')
    assert.deepEqual(keys(await t.claim()), ['k', 'other'])
  })

  rule(
    'L9 L21 of two that are queued the second, after the clock was set back, is dropped: the lane keeps that moment',
    async (t) => {
      const [one, two] = [await died(t, 'a'), await died(t, 'b')]
      await t.steerDead(one.run, 'retry')
      t.clock.set(t.clock.now() - 50)
      await t.steerDead(two.run, 'retry')
      await t.steerDead(two.run, 'drop')
      assert.equal((await t.next()).run, one.run)
    },
  )

  rule('L9 retry runs the same id with the same events before what waits, tries and lapses at zero', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, retry(0))
    t.lapse()
    await t.end(await t.next(), dead)
    await t.append('b')
    await t.steerDead(run.run, 'retry')
    const back = await t.next()
    assert.deepEqual([back.run, t.names(back), back.letter, back.tries, back.lapses], [run.run, ['a'], true, 0, 0])
    assert.ok(back.events[0]?.body)
    await t.end(back)
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L9 several queued letters run in the order in which they died', async (t) => {
    const first = await died(t, 'a')
    t.clock.advance(10)
    const second = await died(t, 'b')
    await t.steerDead(second.run, 'retry')
    await t.steerDead(first.run, 'retry')
    const runs: string[] = []
    for (let n = 0; n < 2; n++) {
      const run = await t.next()
      runs.push(...t.names(run))
      await t.end(run)
    }
    assert.deepEqual(runs, ['a', 'b'])
  })

  rule('L9 retry while the lane is blocked runs that letter, and then the lane goes on', async (t) => {
    const run = await died(t, 'a', blocking)
    await t.append('b')
    await t.steerDead(run.run, 'retry')
    const back = await t.next()
    assert.equal(back.run, run.run)
    await t.end(back)
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  for (const [what, outcome] of [
    ['live', undefined],
    ['waiting for its next attempt', retry(1_000)],
  ] as const) {
    rule(`L9 a letter does not run beside a run that is ${what}, but after it`, async (t) => {
      const letter = await died(t, 'a')
      await t.append('b')
      const run = await t.next()
      if (outcome !== undefined) await t.end(run, outcome)
      assert.equal(await t.steerDead(letter.run, 'retry'), 'ok')
      await t.nothing()
      await t.append('c')
      const live = outcome === undefined ? run : await t.dueIn(1_000)
      assert.deepEqual(t.names(live), ['b'])
      await t.end(live)
      assert.deepEqual(t.names(await t.next()), ['a'])
    })
  }

  rule('L9 a letter queued behind a run that dies and blocks still runs', async (t) => {
    const letter = await died(t, 'a')
    await t.append('b')
    const run = await t.next()
    await t.steerDead(letter.run, 'retry')
    await t.append('c')
    await t.end(run, blocking)
    const back = await t.next()
    assert.equal(back.run, letter.run)
    await t.end(back)
    await t.nothing()
    await t.steerDead(run.run, 'drop')
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  for (const outcome of [done, dropped]) {
    rule(`L9 a letter that runs and is ${outcome.kind} is gone`, async (t) => {
      const run = await died(t, 'a', blocking)
      await t.steerDead(run.run, 'retry')
      await t.end(await t.next(), outcome)
      assert.equal(await t.letter(run.run), undefined)
      assert.equal((await t.store.stats()).letters, 0)
      await t.append('b')
      assert.deepEqual(t.names(await t.next()), ['b'])
    })
  }

  rule('L9 dead again: the same letter with new attempts, and it can be retried again', async (t) => {
    const run = await died(t, 'a')
    await t.steerDead(run.run, 'retry')
    await t.end(await t.next(), dead, { attempt: { at: t.clock.now(), ms: 1, error: 'once more' } })
    const letter = only(await t.all('dead'))
    assert.deepEqual([letter.id, letter.state, letter.attempts.at(-1)?.error], [run.run, 'dead', 'once more'])
    assert.equal(await t.steerDead(run.run, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L9 a letter that blocked its lane and dies again still blocks it', async (t) => {
    const run = await died(t, 'a', blocking)
    await t.append('b')
    await t.steerDead(run.run, 'retry')
    await t.end(await t.next(), dead)
    await t.nothing()
    await t.steerDead(run.run, 'drop')
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L9 a letter that runs fails and lapses as any run does', async (t) => {
    const run = await died(t, 'a')
    await t.steerDead(run.run, 'retry')
    await t.end(await t.next(), retry(100))
    const second = await t.dueIn(100)
    assert.deepEqual([second.run, second.tries, second.letter], [run.run, 1, true])
    t.lapse()
    const third = await t.next()
    assert.deepEqual([third.run, third.lapses, t.names(third)], [run.run, 1, ['a']])
  })

  rule('L9 drop ends the letter and frees the lane; unblock frees the lane and keeps the letter', async (t) => {
    const first = await died(t, 'a', blocking)
    await t.append('b')
    assert.equal(await t.steerDead(first.run, 'drop'), 'ok')
    assert.equal(await t.letter(first.run), undefined)
    const second = await t.next()
    await t.end(second, blocking)
    await t.append('c')
    assert.equal(await t.steerDead(second.run, 'unblock'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['c'])
    const kept = await t.letter(second.run)
    assert.deepEqual([kept?.state, kept?.blocks], ['dead', false])
  })

  rule('L9 a queued letter that is dropped does not run', async (t) => {
    const run = await died(t, 'a')
    await t.steerDead(run.run, 'retry')
    assert.equal(await t.steerDead(run.run, 'drop'), 'ok')
    await t.append('b')
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L9 a letter can be retried when the row of its lane is long gone', async (t) => {
    const run = await died(t, 'a')
    t.clock.advance(86_400_000)
    await t.upkeep({ events: { '': 0 }, runs: { '': 0 } })
    assert.equal(await t.steerDead(run.run, 'retry'), 'ok')
    const back = await t.next()
    assert.deepEqual([back.run, back.lane, back.key, t.names(back)], [run.run, run.lane, 'k', ['a']])
    await t.end(back)
    await t.nothing()
  })

  rule('L9 a letter that nobody knows is missing', async (t) => {
    assert.equal(await t.steerDead('nobody', 'retry'), 'missing')
    assert.equal(await t.steerDead('nobody', 'drop'), 'missing')
    assert.equal(await t.steerDead('nobody', 'unblock'), 'missing')
  })

  rule('L9 a queued letter is due when it was queued, in the one line of all lanes', async (t) => {
    const run = await died(t, 'a')
    await t.append('early', { key: 'early' })
    t.clock.advance(10)
    await t.steerDead(run.run, 'retry')
    t.clock.advance(10)
    await t.append('late', { key: 'late' })
    assert.deepEqual(keys((await t.turn({ claim: [claimOf()] })).claimed), ['early', 'k', 'late'])
  })

  rule(
    'L9 of two queued letters one is dropped, the other still runs, and an unblocked one is so already',
    async (t) => {
      const first = await died(t, 'a')
      const second = await died(t, 'b')
      await t.steerDead(first.run, 'retry')
      await t.steerDead(second.run, 'retry')
      await t.steerDead(first.run, 'drop')
      const back = await t.next()
      assert.equal(back.run, second.run)
      await t.end(back, dead)
      assert.equal(await t.steerDead(second.run, 'unblock'), 'already')
    },
  )
}
