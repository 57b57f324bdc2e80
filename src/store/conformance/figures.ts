// What a dashboard shows: figures per flow, the feed of changes, and hints on which nothing depends.
import assert from 'node:assert/strict'
import type { Change, FlowStats } from '../contract/index.ts'
import type { Stage, Suite } from './stage.ts'
import { dead, done, mark } from './vocabulary.ts'

async function flow(t: Stage, name = 'flow'): Promise<FlowStats | undefined> {
  return (await t.store.stats()).flows.find((each) => each.flow === name)
}

/** A store that counts pages may already have had room for so much. */
const PAGE = 8_192

export const figures: Suite = (rule) => {
  rule('stats: lanes, live runs and the next deadline of each flow', async (t) => {
    const start = t.clock.now()
    await t.append('a', { key: 'a', quiet: 100 })
    await t.append('b', { key: 'b', quiet: 200 })
    await t.append('c', { flow: 'mail', key: 'c', quiet: 300 })
    const before = await flow(t)
    assert.deepEqual([before?.lanes, before?.live, before?.due], [2, 0, start + 100])
    const run = await t.dueIn(100)
    const during = await flow(t)
    assert.deepEqual([during?.lanes, during?.live, during?.due], [2, 1, start + 200])
    await t.end(run)
    const after = await flow(t)
    assert.deepEqual([after?.lanes, after?.live], [1, 0])
    const mail = await flow(t, 'mail')
    assert.deepEqual([mail?.lanes, mail?.live, mail?.due], [1, 0, start + 300])
  })

  rule('stats: figures stay right over failures, lapses and dead letters', async (t) => {
    await t.append('a')
    const run = await t.next()
    t.lapse()
    await t.end(await t.next(), { kind: 'retry', after: 10 })
    assert.deepEqual([(await flow(t))?.lanes, (await flow(t))?.live], [1, 0])
    await t.end(await t.dueIn(10), dead)
    assert.equal((await t.store.stats()).letters, 1)
    assert.equal((await flow(t))?.live ?? 0, 0)
    await t.steerDead(run.run, 'retry')
    await t.end(await t.next(), done)
    assert.equal((await t.store.stats()).letters, 0)
    assert.deepEqual([(await flow(t))?.lanes ?? 0, (await flow(t))?.live ?? 0], [0, 0])
  })

  rule('stats: marks by reason', async (t) => {
    await t.append('a', { marks: [mark('outbox'), mark('slot', 'mail')] })
    await t.append('b', { marks: [mark('outbox')] })
    const { marks } = await t.store.stats()
    assert.deepEqual(marks.map(({ reason, count }) => `${reason} ${count}`).toSorted(), ['outbox 2', 'slot 1'])
  })

  rule('stats: bytes grow with what is stored', async (t) => {
    const before = (await t.store.stats()).bytes
    await t.append('a', { body: 'x'.repeat(1_000_000) })
    assert.ok((await t.store.stats()).bytes >= before + 1_000_000 - PAGE)
  })

  rule('feed: what changed comes in its order, with rising numbers, from where one left off', async (t) => {
    const read: Change[] = []
    let after = (await t.store.feed({ after: 0, n: 1_000 })).next
    const follow = async (n: number): Promise<void> => {
      for (let more = true; more;) {
        const page = await t.store.feed({ after, n })
        assert.equal(page.skipped, false, 'nothing is skipped without load')
        assert.ok(page.changes.length <= n)
        read.push(...page.changes)
        more = page.changes.length > 0
        after = page.next
      }
    }
    await t.append('a')
    await follow(1)
    const run = await t.next()
    await t.end(run)
    await follow(1)
    await t.append('b')
    await t.steer('k', 'drop')
    await t.store.purge({ what: { kind: 'event', id: t.id('a') }, n: 10 })
    await follow(10)
    assert.deepEqual(
      read.map((change) => change.kind),
      ['event', 'claimed', 'settled', 'event', 'steered', 'purged'],
    )
    assert.equal(read[0]?.id, t.id('a'))
    for (const [n, change] of read.entries()) assert.ok(n === 0 || change.seq > (read[n - 1]?.seq ?? Infinity))
  })

  rule('feed: a reader that is far behind is told that it missed something, or misses nothing', async (t) => {
    const from = (await t.store.feed({ after: 0, n: 1 })).next
    for (let n = 0; n < 30; n++)
      await t.send(...Array.from({ length: 100 }, (_, k) => t.event(`e${n} ${k}`, { key: `${k}` })))
    let seen = 0
    let skipped = false
    for (let after = from, more = true; more;) {
      const page = await t.store.feed({ after, n: 500 })
      seen += page.changes.filter((change) => change.kind === 'event').length
      skipped ||= page.skipped
      more = page.changes.length > 0
      after = page.next
    }
    assert.ok(skipped || seen === 3_000, `${seen} of 3,000 changes were read, and none was said to be skipped`)
  })

  rule('hints: a lane is opened by an event when it has none, waiting or running', async (t) => {
    const opened: string[] = []
    t.store.listen((hint) => void (hint.kind === 'opened' && opened.push(`${hint.flow}/${hint.key}`)))
    await t.append('a', { key: 'k' })
    await t.append('b', { key: 'k' })
    const run = await t.next()
    await t.append('c', { key: 'k' })
    assert.deepEqual(opened, ['flow/k'])
    await t.end(run)
    await t.end(await t.next())
    await t.append('d', { key: 'k' })
    assert.deepEqual(opened, ['flow/k', 'flow/k'])
  })

  rule('hints: a deadline that comes sooner is news, one that is only pushed back is not', async (t) => {
    const news: string[] = []
    t.store.listen((hint) => void (hint.kind === 'due' && news.push(hint.flow)))
    await t.append('a', { key: 'k', quiet: 100 })
    assert.deepEqual(news, ['flow'])
    await t.append('b', { key: 'k', quiet: 200 })
    assert.deepEqual(news, ['flow'])
    await t.append('c', { key: 'k', quiet: 50 })
    assert.deepEqual(news, ['flow', 'flow'])
    await t.append('d', { key: 'k', quiet: 50, maxEvents: 4 })
    assert.deepEqual(news, ['flow', 'flow', 'flow'])
    assert.deepEqual(t.names(await t.next()), ['a', 'b', 'c', 'd'])
  })

  rule('hints stop when told to, and a listener that throws hurts nobody', async (t) => {
    let heard = 0
    const stop = t.store.listen(() => heard++)
    const stopThrowing = t.store.listen(() => {
      throw new Error('a listener of its own')
    })
    await t.append('a')
    stop()
    const before = heard
    assert.deepEqual(await t.append('b'), { kind: 'stored' })
    assert.deepEqual(t.names(await t.next()), ['a', 'b'])
    assert.equal(heard, before)
    stopThrowing()
  })
}
