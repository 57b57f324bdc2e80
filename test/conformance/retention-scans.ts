// L23: maintenance finds old rows even among many that are young, that must stay, or that are out of order.
import assert from 'node:assert/strict'
import { SHORT_RETENTION, readBodyText, finishEvents, maintainOnce } from './retention-helpers.ts'
import type { Suite } from './stage.ts'
import { DAY, dead, MINUTE, SECOND } from './builders.ts'

export const retentionScans: Suite = (rule) => {
  rule('L23 many finished events are removed in steps, until maintenance reports no more', async (t) => {
    await finishEvents(t, 1_200, { dedupeFor: SECOND })
    await t.append('waiting', { quiet: 400 * DAY })
    t.clock.advance(DAY)
    const did = await t.maintain(SHORT_RETENTION)
    assert.deepEqual([did.events, did.runs], [1_200, 1_200])
    assert.equal((await t.store.count({ kind: 'events', filter: {}, cursor: '', atMost: 2_000 })).count, 1)
  })

  rule('L23 run records are removed with the last of their events, however many there are', async (t) => {
    await finishEvents(t, 4_600, { dedupeFor: SECOND }, 2)
    t.clock.advance(DAY)
    const did = await t.maintain(SHORT_RETENTION)
    assert.deepEqual([did.events, did.runs], [4_600, 2_300])
  })

  rule('L23 maintenance does not scan young events, however many there are', async (t) => {
    await finishEvents(t, 1_200, { dedupeFor: SECOND })
    assert.deepEqual(await maintainOnce(t), [0, 0, false])
  })

  rule('L23 L10 maintenance does not rescan known identities each time', async (t) => {
    await finishEvents(t, 2_200, { dedupeFor: DAY })
    t.clock.advance(2 * MINUTE)
    assert.equal((await t.maintain(SHORT_RETENTION)).events, 2_200)
    await finishEvents(t, 1, { dedupeFor: DAY })
    assert.deepEqual(await maintainOnce(t), [0, 0, false])
    t.clock.advance(2 * MINUTE)
    assert.deepEqual(await maintainOnce(t), [1, 1, false])
    t.clock.advance(DAY)
    assert.equal((await t.maintain(SHORT_RETENTION)).events, 2_201)
    assert.equal((await t.store.count({ kind: 'events', filter: {}, cursor: '', atMost: 10 })).count, 0)
  })

  rule('L23 L10 identities are removed in time, also beside much longer ones', async (t) => {
    const count = async (): Promise<number> =>
      (await t.store.count({ kind: 'events', filter: {}, cursor: '', atMost: 5_000 })).count
    await finishEvents(t, 3, { dedupeFor: DAY })
    await finishEvents(t, 2_200, { dedupeFor: 10 * MINUTE })
    t.clock.advance(2 * MINUTE)
    await t.maintain(SHORT_RETENTION)
    await finishEvents(t, 600, { dedupeFor: 10 * MINUTE })
    t.clock.advance(9 * MINUTE)
    assert.equal((await t.maintain(SHORT_RETENTION)).events, 2_200 + 600)
    assert.equal(await count(), 3 + 600)
    t.clock.advance(2 * MINUTE)
    await t.maintain(SHORT_RETENTION)
    assert.equal(await count(), 3)
  })

  rule('L23 above its bytes, with many known identities, maintenance ends and removes run records', async (t) => {
    await finishEvents(t, 600, { dedupeFor: 30 * DAY })
    t.clock.advance(8 * DAY)
    await finishEvents(t, 2_200, { dedupeFor: 7 * DAY })
    await t.append('waiting', { key: 'w', quiet: 400 * DAY, body: 'x'.repeat(100_000) })
    t.clock.advance(2 * MINUTE)
    const policy = { ...SHORT_RETENTION, deadLetters: Infinity, bytes: 0, lanesPerTenant: {} }
    let [pieces, runs] = [0, 0]
    for (let more = true; more; pieces++) {
      const reply = await t.store.maintain({ policy, budget: 0 })
      runs += reply.counts.runs
      more = reply.more
      assert.ok(pieces < 30, 'maintenance never ends')
    }
    assert.equal(runs, 2_800)
  })

  rule('L23 L9 a dead letter that ran again keeps no older record', async (t) => {
    await t.append('dead', { key: 'd' })
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    const [first] = await t.findAll('runs')
    await finishEvents(t, 2, { dedupeFor: SECOND })
    t.clock.advance(DAY)
    await t.steerDeadLetter(run.runId, 'retry')
    await t.settleOk(await t.claimOne())
    const again = (await t.findAll('runs')).find(({ id }) => id === run.runId)
    assert.deepEqual([again?.kind, again?.started], ['done', first?.started])
    assert.deepEqual((await t.maintain(SHORT_RETENTION)).runs, 2)
    assert.deepEqual(
      (await t.findAll('runs')).map(({ id }) => id),
      [run.runId],
    )
  })

  rule('L23 events stored while the clock was far ahead keep no later events', async (t) => {
    t.clock.advance(400 * DAY)
    await finishEvents(t, 3, { dedupeFor: SECOND })
    t.clock.set(t.clock.now() - 400 * DAY)
    await finishEvents(t, 600, { dedupeFor: SECOND })
    t.clock.advance(2 * MINUTE)
    const did = await t.maintain(SHORT_RETENTION)
    assert.deepEqual([did.events, did.runs], [600, 600])
  })

  rule('L23 events stored a little ahead of time keep no later events', async (t) => {
    t.clock.advance(10 * SECOND)
    await finishEvents(t, 3, { dedupeFor: SECOND })
    t.clock.set(t.clock.now() - 10 * SECOND)
    await finishEvents(t, 5, { dedupeFor: SECOND })
    t.clock.advance(MINUTE + SECOND)
    const did = await t.maintain(SHORT_RETENTION)
    assert.deepEqual([did.events, did.runs], [5, 5])
    t.clock.advance(10 * SECOND)
    assert.equal((await t.maintain(SHORT_RETENTION)).events, 3)
  })

  rule('L23 by bytes: a store in which nothing can be removed is not rescanned all the time', async (t) => {
    await t.appendEvents(...Array.from({ length: 1_200 }, (_, n) => t.event(`w${n}`, { key: `w${n}`, quiet: DAY })))
    const policy = { ...SHORT_RETENTION, deadLetters: Infinity, bytes: 0, lanesPerTenant: {} }
    const pieces = async (): Promise<number> => {
      for (let n = 1; ; n++) if (!(await t.store.maintain({ policy, budget: 0 })).more) return n
    }
    assert.equal(await pieces(), 3)
    t.clock.advance(10 * SECOND)
    assert.equal(await pieces(), 1)
    t.clock.advance(MINUTE)
    assert.equal(await pieces(), 3)
  })

  rule('L23 by bytes: the oldest are removed first, even during another scan', async (t) => {
    const big = 'x'.repeat(200_000)
    const policy = { events: { '': DAY, bank: SECOND }, runs: {}, deadLetters: Infinity, lanesPerTenant: {} }
    await t.append('oldest', { body: big })
    await t.settleOk(await t.claimOne())
    for (let n = 0; n < 2_100; n += 700) {
      const some = Array.from({ length: 700 }, (_, at) => t.event(`b${n + at}`, { key: `b${n + at}`, source: 'bank' }))
      await t.appendEvents(...some)
      const end = {
        outcome: { kind: 'done' },
        whileRunning: 'window',
        keep: 0,
        attempt: undefined,
        publish: [],
      } as const
      const runs = await t.claim({ maxRuns: 700 })
      await t.settleAndClaim({ settle: runs.map(({ lane, token }) => ({ lane, token, ...end })) })
    }
    await t.append('newest', { body: big })
    await t.settleOk(await t.claimOne())
    t.clock.advance(MINUTE)
    const { more } = await t.store.maintain({ policy: { ...policy, bytes: Infinity }, budget: 0 })
    assert.equal(more, true)
    const { bytes } = await t.store.stats()
    await t.maintain({ ...policy, bytes: bytes - 100_000 })
    assert.deepEqual([await readBodyText(t, 'oldest'), await readBodyText(t, 'newest')], [undefined, big])
  })
}
