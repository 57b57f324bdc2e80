// L23: how upkeep comes by what is old, however much there is that is young, has to stay, or does not stand where it belongs.
import assert from 'node:assert/strict'
import { ages, body, finish, onePiece } from './retention-scene.ts'
import type { Suite } from './stage.ts'
import { DAY, dead, MINUTE, SECOND } from './vocabulary.ts'

export const retentionLooks: Suite = (rule) => {
  rule('L23 many finished events go in steps, and upkeep says when there is no more', async (t) => {
    await finish(t, 1_200, { dedupeFor: SECOND })
    await t.append('waiting', { quiet: 400 * DAY })
    t.clock.advance(DAY)
    const did = await t.upkeep(ages)
    assert.deepEqual([did.events, did.runs], [1_200, 1_200])
    assert.equal((await t.store.count({ kind: 'events', filter: {}, cursor: '', atMost: 2_000 })).count, 1)
  })

  rule('L23 the records of runs go at once with the last of their events, however many these are', async (t) => {
    await finish(t, 4_600, { dedupeFor: SECOND }, 2)
    t.clock.advance(DAY)
    const did = await t.upkeep(ages)
    assert.deepEqual([did.events, did.runs], [4_600, 2_300])
  })

  rule('L23 however much is too young to go, upkeep does not look through it', async (t) => {
    await finish(t, 1_200, { dedupeFor: SECOND })
    assert.deepEqual(await onePiece(t), [0, 0, false])
  })

  rule('L23 L10 however much has to stay known, upkeep does not look through it each time', async (t) => {
    await finish(t, 2_200, { dedupeFor: DAY })
    t.clock.advance(2 * MINUTE)
    assert.equal((await t.upkeep(ages)).events, 2_200)
    await finish(t, 1, { dedupeFor: DAY })
    assert.deepEqual(await onePiece(t), [0, 0, false])
    t.clock.advance(2 * MINUTE)
    assert.deepEqual(await onePiece(t), [1, 1, false])
    t.clock.advance(DAY)
    assert.equal((await t.upkeep(ages)).events, 2_201)
    assert.equal((await t.store.count({ kind: 'events', filter: {}, cursor: '', atMost: 10 })).count, 0)
  })

  rule('L23 L10 what has to stay known goes when it need not, also beside what has to for much longer', async (t) => {
    const count = async (): Promise<number> =>
      (await t.store.count({ kind: 'events', filter: {}, cursor: '', atMost: 5_000 })).count
    await finish(t, 3, { dedupeFor: DAY })
    await finish(t, 2_200, { dedupeFor: 10 * MINUTE })
    t.clock.advance(2 * MINUTE)
    await t.upkeep(ages)
    await finish(t, 600, { dedupeFor: 10 * MINUTE })
    t.clock.advance(9 * MINUTE)
    assert.equal((await t.upkeep(ages)).events, 2_200 + 600)
    assert.equal(await count(), 3 + 600)
    t.clock.advance(2 * MINUTE)
    await t.upkeep(ages)
    assert.equal(await count(), 3)
  })

  rule('L23 above its bytes, with much that has to stay known, upkeep ends, and the records of runs go', async (t) => {
    await finish(t, 600, { dedupeFor: 30 * DAY })
    t.clock.advance(8 * DAY)
    await finish(t, 2_200, { dedupeFor: 7 * DAY })
    await t.append('waiting', { key: 'w', quiet: 400 * DAY, body: 'x'.repeat(100_000) })
    t.clock.advance(2 * MINUTE)
    const policy = { ...ages, letters: Infinity, bytes: 0, lanesPerTenant: {} }
    let [pieces, runs] = [0, 0]
    for (let more = true; more; pieces++) {
      const reply = await t.store.upkeep({ policy, budget: 0 })
      runs += reply.did.runs
      more = reply.more
      assert.ok(pieces < 30, 'upkeep finds no end')
    }
    assert.equal(runs, 2_800)
  })

  rule('L23 L9 a dead letter that ran again keeps no older record', async (t) => {
    await t.append('dead', { key: 'd' })
    const run = await t.next()
    await t.end(run, dead)
    const [first] = await t.all('runs')
    await finish(t, 2, { dedupeFor: SECOND })
    t.clock.advance(DAY)
    await t.steerDead(run.run, 'retry')
    await t.end(await t.next())
    const again = (await t.all('runs')).find(({ id }) => id === run.run)
    assert.deepEqual([again?.kind, again?.started], ['done', first?.started])
    assert.deepEqual((await t.upkeep(ages)).runs, 2)
    assert.deepEqual(
      (await t.all('runs')).map(({ id }) => id),
      [run.run],
    )
  })

  rule('L23 what came while the clock was far ahead keeps nothing that came after', async (t) => {
    t.clock.advance(400 * DAY)
    await finish(t, 3, { dedupeFor: SECOND })
    t.clock.set(t.clock.now() - 400 * DAY)
    await finish(t, 600, { dedupeFor: SECOND })
    t.clock.advance(2 * MINUTE)
    const did = await t.upkeep(ages)
    assert.deepEqual([did.events, did.runs], [600, 600])
  })

  rule('L23 what came a little ahead of its time keeps nothing that came after', async (t) => {
    t.clock.advance(10 * SECOND)
    await finish(t, 3, { dedupeFor: SECOND })
    t.clock.set(t.clock.now() - 10 * SECOND)
    await finish(t, 5, { dedupeFor: SECOND })
    t.clock.advance(MINUTE + SECOND)
    const did = await t.upkeep(ages)
    assert.deepEqual([did.events, did.runs], [5, 5])
    t.clock.advance(10 * SECOND)
    assert.equal((await t.upkeep(ages)).events, 3)
  })

  rule('L23 by bytes: a store in which nothing can go is not looked through again and again', async (t) => {
    await t.send(...Array.from({ length: 1_200 }, (_, n) => t.event(`w${n}`, { key: `w${n}`, quiet: DAY })))
    const policy = { ...ages, letters: Infinity, bytes: 0, lanesPerTenant: {} }
    const pieces = async (): Promise<number> => {
      for (let n = 1; ; n++) if (!(await t.store.upkeep({ policy, budget: 0 })).more) return n
    }
    assert.equal(await pieces(), 3)
    t.clock.advance(10 * SECOND)
    assert.equal(await pieces(), 1)
    t.clock.advance(MINUTE)
    assert.equal(await pieces(), 3)
  })

  rule('L23 by bytes: the oldest go first, also where a look for others is under way', async (t) => {
    const big = 'x'.repeat(200_000)
    const policy = { events: { '': DAY, bank: SECOND }, runs: {}, letters: Infinity, lanesPerTenant: {} }
    await t.append('oldest', { body: big })
    await t.end(await t.next())
    for (let n = 0; n < 2_100; n += 700) {
      const some = Array.from({ length: 700 }, (_, at) => t.event(`b${n + at}`, { key: `b${n + at}`, source: 'bank' }))
      await t.send(...some)
      const end = {
        outcome: { kind: 'done' },
        whileRunning: 'window',
        keep: 0,
        attempt: undefined,
        publish: [],
      } as const
      const runs = await t.claim({ slots: 700 })
      await t.turn({ settle: runs.map(({ lane, token }) => ({ lane, token, ...end })) })
    }
    await t.append('newest', { body: big })
    await t.end(await t.next())
    t.clock.advance(MINUTE)
    const { more } = await t.store.upkeep({ policy: { ...policy, bytes: Infinity }, budget: 0 })
    assert.equal(more, true)
    const { bytes } = await t.store.stats()
    await t.upkeep({ ...policy, bytes: bytes - 100_000 })
    assert.deepEqual([await body(t, 'oldest'), await body(t, 'newest')], [undefined, big])
  })
}
