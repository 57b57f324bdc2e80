// L8: a run that has failed keeps its id and its events until it ends; a part accepted ends, the rest is a new run.
import assert from 'node:assert/strict'
import { keys, only, type Suite } from './stage.ts'
import { again, claimOf, dead, done, dropped, givenBack, partial, retry, SECOND } from './vocabulary.ts'

export const failure: Suite = (rule) => {
  rule('L8 retries keep the id and the events, count tries, and nothing joins them', async (t) => {
    await t.appendEach(['a', 'b'])
    let run = await t.next()
    const first = run.run
    for (let tries = 1; tries <= 3; tries++) {
      await t.end(run, retry(100))
      await t.append(`newcomer ${tries}`)
      run = await t.dueIn(100)
      assert.deepEqual([run.run, t.names(run), run.tries, run.lapses], [first, ['a', 'b'], tries, 0])
    }
    await t.end(run)
    assert.deepEqual(t.names(await t.next()), ['newcomer 1', 'newcomer 2', 'newcomer 3'])
  })

  rule('L8 a delay is kept to the millisecond, from seconds to a day', async (t) => {
    await t.append('a')
    let run = await t.next()
    for (const after of [1, 250, 5 * SECOND, 86_400_000]) {
      await t.end(run, retry(after))
      run = await t.dueIn(after)
    }
    assert.equal(run.tries, 4)
  })

  rule('L8 since when a run fails is known: from its first failure on, not from its first turn', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.end(await t.next(), givenBack(100))
    const fresh = await t.dueIn(100)
    assert.equal(fresh.failingSince, 0)
    const since = t.clock.now()
    await t.end(fresh, retry(50))
    const failed = await t.dueIn(50)
    assert.equal(failed.failingSince, since)
    await t.end(failed, partial({ retry: [t.id('b')], after: 70 }))
    const rest = await t.dueIn(70)
    assert.deepEqual([rest.tries, rest.failingSince], [2, since])
    await t.end(rest, dead)
    await t.steerDead(rest.run, 'retry')
    assert.equal((await t.next()).failingSince, 0)
  })

  rule('L8 while a run waits for its next attempt other lanes go on', async (t) => {
    await t.append('a', { key: 'a' })
    await t.end(await t.next(), retry(60_000))
    await t.append('b', { key: 'b' })
    assert.deepEqual(keys(await t.claim({ slots: 1 })), ['b'])
  })

  rule('L8 attempts are kept and shown with what became of the run', async (t) => {
    await t.append('a')
    const attempt = (n: number): { at: number; ms: number; error: string } => ({
      at: t.clock.now(),
      ms: n,
      error: `e${n}`,
    })
    const first = await t.next()
    await t.end(first, retry(10), { attempt: attempt(1) })
    await t.end(await t.dueIn(10), dead, { attempt: attempt(2) })
    const letter = await t.letter(first.run)
    assert.deepEqual(
      letter?.attempts.map(({ ms, error }) => [ms, error]),
      [
        [1, 'e1'],
        [2, 'e2'],
      ],
    )
    assert.equal(letter?.tries, 2)
  })

  rule('L8 partial: the rest is a new run with a new id, its parent the old one, its tries carried on', async (t) => {
    await t.appendEach(['a', 'b', 'c', 'd'])
    const run = await t.next()
    await t.append('newcomer')
    await t.end(run, partial({ retry: [t.id('d'), t.id('b')], after: 100 }))
    const rest = await t.dueIn(100)
    assert.deepEqual(t.names(rest), ['b', 'd'])
    assert.notEqual(rest.run, run.run)
    assert.deepEqual([rest.parent, rest.tries], [run.run, 1])
    await t.end(rest, retry(10))
    const again2 = await t.dueIn(10)
    assert.deepEqual([again2.run, t.names(again2), again2.tries], [rest.run, ['b', 'd'], 2])
    await t.end(again2)
    assert.deepEqual(t.names(await t.next()), ['newcomer'])
  })

  rule('L8 partial of a partial: another set of events has another id', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const first = await t.next()
    await t.end(first, partial({ retry: [t.id('b'), t.id('c')] }))
    const second = await t.next()
    await t.end(second, partial({ retry: [t.id('c')] }))
    const third = await t.next()
    assert.deepEqual([t.names(third), third.parent, third.tries], [['c'], second.run, 2])
    assert.equal(new Set([first.run, second.run, third.run]).size, 3)
  })

  rule('L8 partial: the dead part is a letter of its own with a new id and the same parent', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.next()
    await t.end(run, partial({ retry: [t.id('a')], dead: [t.id('c')], after: 10 }))
    const letter = only(await t.all('dead'))
    assert.deepEqual([t.names(letter.events), letter.parent, letter.reason], [['c'], run.run, 'refused'])
    assert.notEqual(letter.id, run.run)
    const rest = await t.dueIn(10)
    assert.deepEqual(t.names(rest), ['a'])
    assert.notEqual(rest.run, letter.id)
  })

  rule('L8 partial with nothing to retry ends the run', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next()
    await t.append('newcomer')
    await t.end(run, partial({ dead: [t.id('a')] }))
    assert.deepEqual(t.names(await t.next()), ['newcomer'])
    assert.deepEqual(
      (await t.all('dead')).map((letter) => t.names(letter.events)),
      [['a']],
    )
  })

  rule('L8 partial that blocks: the lane waits for the dead part', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next()
    await t.append('newcomer')
    await t.end(run, partial({ dead: [t.id('a')], block: true }))
    await t.nothing()
    await t.steerDead(only(await t.all('dead')).id, 'drop')
    assert.deepEqual(t.names(await t.next()), ['newcomer'])
  })

  rule('L8 partial: ids it does not know are ignored; none that it knows is done', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.end(await t.next(), partial({ retry: [t.id('b'), 'stranger'] }))
    const rest = await t.next()
    assert.deepEqual(t.names(rest), ['b'])
    await t.end(rest, partial({ retry: [t.id('a')], dead: ['stranger'] }))
    await t.nothing()
    assert.equal((await t.store.get({ kind: 'runs', id: rest.run })).item?.kind, 'done')
    assert.deepEqual(await t.all('dead'), [])
  })

  rule('L8 partial: an id in both lists is dead', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.end(await t.next(), partial({ retry: [t.id('a'), t.id('b')], dead: [t.id('b')] }))
    assert.deepEqual(t.names(await t.next()), ['a'])
    assert.deepEqual(t.names(only(await t.all('dead')).events), ['b'])
  })

  rule('L8 a part that was accepted cannot come back when the rest lapses', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.end(await t.next(), partial({ retry: [t.id('b')] }))
    await t.next()
    t.lapse()
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L8 dropped: the run ends and nothing of it comes back', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next()
    await t.end(run, dropped)
    t.clock.advance(86_400_000)
    await t.nothing()
    assert.deepEqual(await t.all('dead'), [])
    const record = (await t.store.get({ kind: 'runs', id: run.run })).item
    assert.deepEqual([record?.kind, record?.reason], ['dropped', 'not wanted'])
  })

  rule('again keeps id, events and state, uses no try, and remembers since when', async (t) => {
    await t.append('a')
    const run = await t.next()
    assert.deepEqual([run.againSince, run.state64], [0, ''])
    const since = t.clock.now()
    await t.end(run, again(100, 'c3RhdGU='))
    const second = await t.dueIn(100)
    assert.deepEqual(
      [second.run, t.names(second), second.tries, second.state64, second.againSince],
      [run.run, ['a'], 0, 'c3RhdGU=', since],
    )
    await t.end(second, again(100, 'bmV3'))
    const third = await t.dueIn(100)
    assert.deepEqual([third.state64, third.againSince], ['bmV3', since])
  })

  rule('again goes to the tail: lanes that are ready before it is due go first', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const run = (await t.claim({ slots: 1 }))[0]
    assert.ok(run)
    await t.end(run, again(0))
    assert.deepEqual(keys((await t.turn({ claim: [claimOf()] })).claimed), ['b', 'a'])
  })

  rule('L8 a run that failed and then is done leaves one record with all that happened', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, retry(0), { attempt: { at: t.clock.now(), ms: 5, error: 'refused' } })
    await t.end(await t.next(), done)
    const record = only(await t.all('runs'))
    assert.deepEqual([record.id, record.kind, record.tries, t.names(record.events)], [run.run, 'done', 1, ['a']])
    assert.deepEqual(
      record.attempts.map((attempt) => attempt.error),
      ['refused'],
    )
  })

  rule('L8 the part that was accepted is on record under the old id', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.next()
    await t.end(run, partial({ retry: [t.id('b')], dead: [t.id('c')] }))
    const record = (await t.store.get({ kind: 'runs', id: run.run })).item
    assert.deepEqual([record?.kind, t.names(record?.events ?? [])], ['partial', ['a']])
  })

  rule('L8 L9 a letter that runs and is accepted in part: the rest goes on, no letter stays behind', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const first = await t.next()
    await t.end(first, { kind: 'dead', reason: 'broken', block: true })
    await t.append('newcomer')
    await t.steerDead(first.run, 'retry')
    await t.end(await t.next(), partial({ retry: [t.id('b'), t.id('c')], after: 10 }))
    await t.nothing()
    const rest = await t.dueIn(10)
    assert.deepEqual([t.names(rest), rest.parent], [['b', 'c'], first.run])
    await t.end(rest)
    assert.deepEqual(await t.all('dead'), [])
    assert.deepEqual(t.names(await t.next()), ['newcomer'])
  })

  rule('L8 L9 a letter that runs and dies in part leaves one letter with that part', async (t) => {
    await t.appendEach(['a', 'b'])
    const first = await t.next()
    await t.end(first, dead)
    await t.steerDead(first.run, 'retry')
    await t.end(await t.next(), partial({ dead: [t.id('b')] }))
    await t.nothing()
    const letter = only(await t.all('dead'))
    assert.deepEqual([letter.state, t.names(letter.events)], ['dead', ['b']])
    assert.equal(await t.steerDead(letter.id, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L8 L9 a letter that blocked and is accepted in part still blocks when the rest dies', async (t) => {
    await t.appendEach(['a', 'b'])
    const first = await t.next()
    await t.end(first, { kind: 'dead', reason: 'broken', block: true })
    await t.append('newcomer')
    await t.steerDead(first.run, 'retry')
    await t.end(await t.next(), partial({ retry: [t.id('b')] }))
    await t.end(await t.next(), dead)
    await t.nothing()
    const letter = only(await t.all('dead'))
    assert.deepEqual([t.names(letter.events), letter.blocks], [['b'], true])
    await t.steerDead(letter.id, 'drop')
    assert.deepEqual(t.names(await t.next()), ['newcomer'])
  })
}
