// L23: what is finished goes by age and by bytes; nothing that waits, runs or blocks is ever removed.
import assert from 'node:assert/strict'
import { ages, body } from './retention-scene.ts'
import { keys, sorted, type Suite } from './stage.ts'
import { blocking, DAY, dead, mark, MINUTE, place, retry, SECOND } from './vocabulary.ts'

const greedy = { events: { '': 0 }, runs: { '': 0 }, letters: 0, bytes: 0 } as const

export const retention: Suite = (rule) => {
  rule('L23 done events and runs go by their age, younger ones stay', async (t) => {
    await t.append('old', { dedupeFor: SECOND })
    await t.end(await t.next())
    t.clock.advance(MINUTE + SECOND)
    await t.append('young')
    await t.end(await t.next())
    const did = await t.upkeep(ages)
    assert.deepEqual([did.events, did.runs], [1, 1])
    assert.equal(await body(t, 'old'), undefined)
    assert.equal(await t.record('old'), undefined)
    assert.equal(await body(t, 'young'), 'young')
    assert.deepEqual(
      (await t.all('runs')).map((run) => t.names(run.events)),
      [['young']],
    )
  })

  rule('L23 L10 an event that has gone by its age is still known: what repeats it is a duplicate', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-' })
    await t.end(await t.next())
    t.clock.advance(DAY)
    await t.upkeep(ages)
    assert.equal(await body(t, 'a'), undefined)
    assert.deepEqual(await t.append('b', { dedupe: 'x', body: '-' }), { kind: 'duplicate', of: t.id('a') })
    assert.deepEqual(await t.append('c', { dedupe: 'x', body: '+' }), { kind: 'conflict', of: t.id('a') })
    await t.nothing()
  })

  rule('L23 nothing goes before its age', async (t) => {
    await t.append('a')
    await t.end(await t.next())
    t.clock.advance(MINUTE - SECOND)
    assert.deepEqual(await t.upkeep(ages), { events: 0, runs: 0, letters: 0, lanes: 0 })
    assert.equal(await body(t, 'a'), 'a')
  })

  rule('L23 ages are by source for events and by flow for runs, with one for all others', async (t) => {
    await t.append('bank', { source: 'bank', key: 'a' })
    await t.append('shop', { source: 'shop', key: 'b', flow: 'mail' })
    await t.end(await t.next())
    await t.end(await t.next({ flow: 'mail' }))
    t.clock.advance(MINUTE)
    await t.upkeep({ events: { bank: SECOND, '': DAY }, runs: { mail: SECOND, '': DAY } })
    assert.deepEqual([await body(t, 'bank'), await body(t, 'shop')], [undefined, 'shop'])
    const flows = async (): Promise<readonly string[]> => (await t.all('runs')).map((run) => run.flow).toSorted()
    // The record of a run stays as long as one of its events: it is how a purge of its lane finds them.
    assert.deepEqual(await flows(), ['flow', 'mail'])
    await t.upkeep({ events: { '': SECOND }, runs: { mail: SECOND, '': DAY } })
    assert.deepEqual(await flows(), ['flow'])
  })

  rule('L23 what waits for a far deadline is kept, with its bytes', async (t) => {
    await t.append('a', { quiet: 400 * DAY })
    t.clock.advance(399 * DAY)
    assert.equal((await t.upkeep(greedy)).events, 0)
    const run = await t.dueIn(DAY)
    assert.equal(Buffer.from(run.events[0]?.body ?? []).toString(), 'a')
  })

  rule('L23 what runs, retries, is replayed, held or paused is kept', async (t) => {
    await t.append('replayed', { key: 'replay' })
    await t.end(await t.next())
    await t.append('running', { key: 'run' })
    const live = await t.next()
    await t.append('retrying', { key: 'retry' })
    await t.end(await t.next(), retry(2 * SECOND))
    await t.append('held', { key: 'held' })
    await t.hold('held', 2 * SECOND)
    const items = [
      { kind: 'replay', replay: 'r', event: t.id('replayed'), places: [place({ key: 'replay' })] },
    ] as const
    await t.store.place({ routes: t.routes, items })
    t.clock.advance(SECOND)
    await t.upkeep(greedy)
    await t.end(live, retry(SECOND))
    t.clock.advance(SECOND)
    const runs = await t.claim()
    assert.deepEqual(sorted(keys(runs)), ['held', 'replay', 'retry', 'run'])
    for (const run of runs) assert.ok(run.events[0]?.body, `${run.key} has its bytes`)
  })

  rule('L23 an event done in one lane is kept while it waits in another', async (t) => {
    await t.append('a', { places: [{ key: 'now' }, { key: 'later', quiet: DAY }] })
    await t.end(await t.next())
    t.clock.advance(DAY - 1)
    await t.upkeep(greedy)
    const run = await t.dueIn(1)
    assert.deepEqual([run.key, Buffer.from(run.events[0]?.body ?? []).toString()], ['later', 'a'])
  })

  rule('L23 an event that is marked is kept', async (t) => {
    await t.append('a', { marks: [mark('key-failed', 'flow')] })
    t.clock.advance(DAY)
    await t.upkeep(greedy)
    const { marks } = await t.store.unrouted({ n: 1, lease: SECOND, reasons: ['key-failed'], flows: ['flow'] })
    assert.deepEqual(
      marks.map((leased) => Buffer.from(leased.event.body).toString()),
      ['a'],
    )
  })

  rule('L23 a dead letter keeps its events past their age, and can still be run', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, dead)
    t.clock.advance(DAY)
    await t.upkeep({ ...ages, bytes: 0 })
    assert.equal(await t.steerDead(run.run, 'retry'), 'ok')
    assert.equal(Buffer.from((await t.next()).events[0]?.body ?? []).toString(), 'a')
  })

  rule('L23 dead letters go by their own age, and then their events', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, dead)
    t.clock.advance(DAY - SECOND)
    await t.upkeep({ ...ages, letters: DAY })
    assert.ok(await t.letter(run.run))
    t.clock.advance(2 * SECOND)
    const did = await t.upkeep({ ...ages, letters: DAY })
    assert.equal(did.letters, 1)
    assert.equal(await t.letter(run.run), undefined)
    await t.upkeep(ages)
    assert.equal(await body(t, 'a'), undefined)
  })

  rule('L23 a letter that blocks its lane, is queued or runs never goes by age', async (t) => {
    const letters: string[] = []
    for (const [key, outcome] of [
      ['blocks', blocking],
      ['queued', dead],
      ['runs', dead],
    ] as const) {
      await t.append(key, { key })
      const run = await t.next()
      letters.push(run.run)
      await t.end(run, outcome)
    }
    await t.steerDead(letters[1] ?? '', 'retry')
    await t.hold('queued', 400 * DAY)
    await t.steerDead(letters[2] ?? '', 'retry')
    const live = await t.next({ lease: 400 * DAY })
    assert.equal(live.key, 'runs')
    t.clock.advance(399 * DAY)
    assert.equal((await t.upkeep(greedy)).letters, 0)
    for (const id of letters) assert.ok(await t.letter(id))
    await t.end(live, dead)
    assert.ok(await body(t, 'runs'))
  })

  rule('L23 by bytes: the oldest finished events go first, and nothing that is not finished', async (t) => {
    const big = 'x'.repeat(200_000)
    const finished = Array.from({ length: 10 }, (_, n) => `done ${n}`)
    await t.append('waiting', { key: 'w', quiet: DAY, body: big })
    for (const name of finished) {
      await t.append(name, { body: big })
      await t.end(await t.next())
      t.clock.advance(SECOND)
    }
    await t.upkeep({ bytes: 1_500_000 })
    const kept: string[] = []
    for (const name of finished) if ((await body(t, name)) !== undefined) kept.push(name)
    assert.ok(kept.length < 10, 'some went')
    assert.ok((await t.store.stats()).bytes <= 1_500_000)
    assert.deepEqual(kept, finished.slice(finished.length - kept.length))
    assert.equal(await body(t, 'waiting'), big)
    await t.upkeep({ bytes: 0 })
    assert.equal(await body(t, 'done 9'), undefined)
    assert.equal(await body(t, 'waiting'), big)
  })

  rule('L23 by bytes: no more goes than is above', async (t) => {
    for (let n = 0; n < 10; n++) {
      await t.append(`e${n}`, { body: 'x'.repeat(200_000) })
      await t.end(await t.next())
    }
    const { events } = await t.upkeep({ bytes: (await t.store.stats()).bytes - 100_000 })
    assert.ok(events >= 1 && events <= 3, `${events} of 10 events went, one would have been enough`)
  })

  rule('L23 by bytes: nothing goes while the store takes less', async (t) => {
    await t.append('a')
    await t.end(await t.next())
    assert.equal((await t.upkeep({ bytes: 1e12 })).events, 0)
    assert.equal(await body(t, 'a'), 'a')
  })

  rule('L23 L10 an identity that was taken over stays with its new event when the old one goes', async (t) => {
    const words = { dedupe: 'x', body: '-', dedupeFor: 2 * MINUTE }
    await t.append('old', words)
    await t.end(await t.next())
    t.clock.advance(2 * MINUTE)
    await t.append('new', words)
    await t.upkeep(ages)
    assert.equal(await t.record('old'), undefined)
    assert.deepEqual(await t.append('again', words), { kind: 'duplicate', of: t.id('new') })
  })

  rule('L23 what is gone without a trace is new when it comes again', async (t) => {
    await t.append('a', { dedupeFor: SECOND })
    await t.end(await t.next())
    t.clock.advance(DAY)
    await t.upkeep(ages)
    assert.deepEqual(await t.append('a', { dedupeFor: SECOND }), { kind: 'stored' })
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L23 upkeep moves no deadline and ends no lease', async (t) => {
    await t.append('a', { key: 'a', quiet: SECOND })
    await t.append('b', { key: 'b' })
    const run = await t.next()
    await t.upkeep(greedy)
    assert.equal(await t.renew(run), 'ok')
    await t.upkeep(greedy)
    await t.end(run)
    assert.deepEqual(t.names(await t.dueIn(SECOND)), ['a'])
  })
}
