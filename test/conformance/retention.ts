// L23: finished work is removed by age and by bytes. Nothing that waits, runs or blocks is ever removed.
import assert from 'node:assert/strict'
import { SHORT_RETENTION, readBodyText } from './retention-helpers.ts'
import { getKeys, sorted, type Suite } from './stage.ts'
import { deadAndBlocking, DAY, dead, createUnrouted, MINUTE, createPlacement, retry, SECOND } from './builders.ts'

const KEEP_NOTHING = { events: { '': 0 }, runs: { '': 0 }, deadLetters: 0, bytes: 0 } as const

export const retention: Suite = (rule) => {
  rule('L23 done events and runs are removed by age, younger ones stay', async (t) => {
    await t.append('old', { dedupeFor: SECOND })
    await t.settleOk(await t.claimOne())
    t.clock.advance(MINUTE + SECOND)
    await t.append('young')
    await t.settleOk(await t.claimOne())
    const did = await t.maintain(SHORT_RETENTION)
    assert.deepEqual([did.events, did.runs], [1, 1])
    assert.equal(await readBodyText(t, 'old'), undefined)
    assert.equal(await t.getEventRecord('old'), undefined)
    assert.equal(await readBodyText(t, 'young'), 'young')
    assert.deepEqual(
      (await t.findAll('runs')).map((run) => t.names(run.events)),
      [['young']],
    )
  })

  rule('L23 L10 an event removed by age is still known: the same event is a duplicate', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-' })
    await t.settleOk(await t.claimOne())
    t.clock.advance(DAY)
    await t.maintain(SHORT_RETENTION)
    assert.equal(await readBodyText(t, 'a'), undefined)
    assert.deepEqual(await t.append('b', { dedupe: 'x', body: '-' }), { kind: 'duplicate', of: t.id('a') })
    assert.deepEqual(await t.append('c', { dedupe: 'x', body: '+' }), { kind: 'conflict', of: t.id('a') })
    await t.assertNothingReady()
  })

  rule('L23 nothing is removed before its age', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne())
    t.clock.advance(MINUTE - SECOND)
    assert.deepEqual(await t.maintain(SHORT_RETENTION), { events: 0, runs: 0, deadLetters: 0, lanes: 0 })
    assert.equal(await readBodyText(t, 'a'), 'a')
  })

  rule('L23 ages are by source for events and by flow for runs, with one for all others', async (t) => {
    await t.append('bank', { source: 'bank', key: 'a' })
    await t.append('shop', { source: 'shop', key: 'b', flow: 'mail' })
    await t.settleOk(await t.claimOne())
    await t.settleOk(await t.claimOne({ flow: 'mail' }))
    t.clock.advance(MINUTE)
    await t.maintain({ events: { bank: SECOND, '': DAY }, runs: { mail: SECOND, '': DAY } })
    assert.deepEqual([await readBodyText(t, 'bank'), await readBodyText(t, 'shop')], [undefined, 'shop'])
    const flows = async (): Promise<readonly string[]> => (await t.findAll('runs')).map((run) => run.flow).toSorted()
    // The record of a run stays as long as one of its events, because a purge of the lane finds the events through it.
    assert.deepEqual(await flows(), ['flow', 'mail'])
    await t.maintain({ events: { '': SECOND }, runs: { mail: SECOND, '': DAY } })
    assert.deepEqual(await flows(), ['flow'])
  })

  rule('L23 events that wait for a far deadline are kept, with their bytes', async (t) => {
    await t.append('a', { quiet: 400 * DAY })
    t.clock.advance(399 * DAY)
    assert.equal((await t.maintain(KEEP_NOTHING)).events, 0)
    const run = await t.claimOneAfter(DAY)
    assert.equal(Buffer.from(run.events[0]?.body ?? []).toString(), 'a')
  })

  rule('L23 events that run, retry, are replayed, held or paused are kept', async (t) => {
    await t.append('replayed', { key: 'replay' })
    await t.settleOk(await t.claimOne())
    await t.append('running', { key: 'run' })
    const live = await t.claimOne()
    await t.append('retrying', { key: 'retry' })
    await t.settleOk(await t.claimOne(), retry(2 * SECOND))
    await t.append('held', { key: 'held' })
    await t.hold('held', 2 * SECOND)
    const items = [
      { kind: 'replay', replay: 'r', event: t.id('replayed'), placements: [createPlacement({ key: 'replay' })] },
    ] as const
    await t.store.place({ routes: t.routes, items })
    t.clock.advance(SECOND)
    await t.maintain(KEEP_NOTHING)
    await t.settleOk(live, retry(SECOND))
    t.clock.advance(SECOND)
    const runs = await t.claim()
    assert.deepEqual(sorted(getKeys(runs)), ['held', 'replay', 'retry', 'run'])
    for (const run of runs) assert.ok(run.events[0]?.body, `${run.key} has its bytes`)
  })

  rule('L23 an event done in one lane is kept while it waits in another', async (t) => {
    await t.append('a', { placements: [{ key: 'now' }, { key: 'later', quiet: DAY }] })
    await t.settleOk(await t.claimOne())
    t.clock.advance(DAY - 1)
    await t.maintain(KEEP_NOTHING)
    const run = await t.claimOneAfter(1)
    assert.deepEqual([run.key, Buffer.from(run.events[0]?.body ?? []).toString()], ['later', 'a'])
  })

  rule('L23 an unrouted event is kept', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('key-failed', 'flow')] })
    t.clock.advance(DAY)
    await t.maintain(KEEP_NOTHING)
    const { unrouted } = await t.store.claimUnrouted({
      n: 1,
      lease: SECOND,
      reasons: ['key-failed'],
      flows: ['flow'],
    })
    assert.deepEqual(
      unrouted.map((leased) => Buffer.from(leased.event.body).toString()),
      ['a'],
    )
  })

  rule('L23 a dead letter keeps its events past their age, and can still be run', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    t.clock.advance(DAY)
    await t.maintain({ ...SHORT_RETENTION, bytes: 0 })
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'ok')
    assert.equal(Buffer.from((await t.claimOne()).events[0]?.body ?? []).toString(), 'a')
  })

  rule('L23 dead letters are removed by their own age, and then their events', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    t.clock.advance(DAY - SECOND)
    await t.maintain({ ...SHORT_RETENTION, deadLetters: DAY })
    assert.ok(await t.getDeadLetter(run.runId))
    t.clock.advance(2 * SECOND)
    const did = await t.maintain({ ...SHORT_RETENTION, deadLetters: DAY })
    assert.equal(did.deadLetters, 1)
    assert.equal(await t.getDeadLetter(run.runId), undefined)
    await t.maintain(SHORT_RETENTION)
    assert.equal(await readBodyText(t, 'a'), undefined)
  })

  rule('L23 a dead letter that blocks, is queued or runs is never removed by age', async (t) => {
    const deadLetters: string[] = []
    for (const [key, outcome] of [
      ['blocks', deadAndBlocking],
      ['queued', dead],
      ['runs', dead],
    ] as const) {
      await t.append(key, { key })
      const run = await t.claimOne()
      deadLetters.push(run.runId)
      await t.settleOk(run, outcome)
    }
    await t.steerDeadLetter(deadLetters[1] ?? '', 'retry')
    await t.hold('queued', 400 * DAY)
    await t.steerDeadLetter(deadLetters[2] ?? '', 'retry')
    const live = await t.claimOne({ lease: 400 * DAY })
    assert.equal(live.key, 'runs')
    t.clock.advance(399 * DAY)
    assert.equal((await t.maintain(KEEP_NOTHING)).deadLetters, 0)
    for (const id of deadLetters) assert.ok(await t.getDeadLetter(id))
    await t.settleOk(live, dead)
    assert.ok(await readBodyText(t, 'runs'))
  })

  rule('L23 by bytes: the oldest finished events are removed first, and nothing unfinished', async (t) => {
    const big = 'x'.repeat(200_000)
    const finished = Array.from({ length: 10 }, (_, n) => `done ${n}`)
    await t.append('waiting', { key: 'w', quiet: DAY, body: big })
    for (const name of finished) {
      await t.append(name, { body: big })
      await t.settleOk(await t.claimOne())
      t.clock.advance(SECOND)
    }
    await t.maintain({ bytes: 1_500_000 })
    const kept: string[] = []
    for (const name of finished) if ((await readBodyText(t, name)) !== undefined) kept.push(name)
    assert.ok(kept.length < 10, 'some went')
    assert.ok((await t.store.stats()).bytes <= 1_500_000)
    assert.deepEqual(kept, finished.slice(finished.length - kept.length))
    assert.equal(await readBodyText(t, 'waiting'), big)
    await t.maintain({ bytes: 0 })
    assert.equal(await readBodyText(t, 'done 9'), undefined)
    assert.equal(await readBodyText(t, 'waiting'), big)
  })

  rule('L23 by bytes: no more is removed than the excess', async (t) => {
    for (let n = 0; n < 10; n++) {
      await t.append(`e${n}`, { body: 'x'.repeat(200_000) })
      await t.settleOk(await t.claimOne())
    }
    const { events } = await t.maintain({ bytes: (await t.store.stats()).bytes - 100_000 })
    assert.ok(events >= 1 && events <= 3, `${events} of 10 events went, one would have been enough`)
  })

  rule('L23 by bytes: nothing is removed while the store takes less', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne())
    assert.equal((await t.maintain({ bytes: 1e12 })).events, 0)
    assert.equal(await readBodyText(t, 'a'), 'a')
  })

  rule('L23 L10 an identity that was taken over stays with its new event when the old one goes', async (t) => {
    const words = { dedupe: 'x', body: '-', dedupeFor: 2 * MINUTE }
    await t.append('old', words)
    await t.settleOk(await t.claimOne())
    t.clock.advance(2 * MINUTE)
    await t.append('new', words)
    await t.maintain(SHORT_RETENTION)
    assert.equal(await t.getEventRecord('old'), undefined)
    assert.deepEqual(await t.append('snoozed', words), { kind: 'duplicate', of: t.id('new') })
  })

  rule('L23 an event that was removed completely is new when it arrives again', async (t) => {
    await t.append('a', { dedupeFor: SECOND })
    await t.settleOk(await t.claimOne())
    t.clock.advance(DAY)
    await t.maintain(SHORT_RETENTION)
    assert.deepEqual(await t.append('a', { dedupeFor: SECOND }), { kind: 'stored' })
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L23 maintenance moves no deadline and ends no lease', async (t) => {
    await t.append('a', { key: 'a', quiet: SECOND })
    await t.append('b', { key: 'b' })
    const run = await t.claimOne()
    await t.maintain(KEEP_NOTHING)
    assert.equal(await t.renew(run), 'ok')
    await t.maintain(KEEP_NOTHING)
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOneAfter(SECOND)), ['a'])
  })
}
