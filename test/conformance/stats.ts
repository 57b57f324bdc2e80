// Stats per flow, the feed of changes, and hints on which nothing depends: what a dashboard shows.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import { NEVER } from '../../src/clock.ts'
import type { FeedEntry, FlowStats } from '../../src/store/contract/index.ts'
import type { ConformanceStage, Suite } from './stage.ts'
import { dead, done, LEASE, createUnrouted, retry } from './builders.ts'

async function getFlowStats(t: ConformanceStage, name = 'flow'): Promise<FlowStats | undefined> {
  return (await t.store.stats()).flows.find((each) => each.flow === name)
}

/** A store that counts pages may already have had room for this many bytes. */
const PAGE = 8_192

export const stats: Suite = (rule) => {
  rule('stats: lanes, live runs and the next deadline of each flow', async (t) => {
    const start = t.clock.now()
    await t.append('a', { key: 'a', quiet: 100 })
    await t.append('b', { key: 'b', quiet: 200 })
    await t.append('c', { flow: 'mail', key: 'c', quiet: 300 })
    const before = await getFlowStats(t)
    assert.deepEqual([before?.lanes, before?.live, before?.due], [2, 0, start + 100])
    const run = await t.claimOneAfter(100)
    const during = await getFlowStats(t)
    assert.deepEqual([during?.lanes, during?.live, during?.due], [2, 1, start + 200])
    await t.settleOk(run)
    const after = await getFlowStats(t)
    assert.deepEqual([after?.lanes, after?.live], [1, 0])
    const mail = await getFlowStats(t, 'mail')
    assert.deepEqual([mail?.lanes, mail?.live, mail?.due], [1, 0, start + 300])
  })

  rule('stats: numbers stay right over failures, lapses and dead letters', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    t.expireLeases()
    await t.settleOk(await t.claimOne(), { kind: 'retry', after: 10 })
    assert.deepEqual([(await getFlowStats(t))?.lanes, (await getFlowStats(t))?.live], [1, 0])
    await t.settleOk(await t.claimOneAfter(10), dead)
    assert.equal((await t.store.stats()).deadLetters, 1)
    assert.equal((await getFlowStats(t))?.live ?? 0, 0)
    await t.steerDeadLetter(run.runId, 'retry')
    await t.settleOk(await t.claimOne(), done)
    assert.equal((await t.store.stats()).deadLetters, 0)
    assert.deepEqual([(await getFlowStats(t))?.lanes ?? 0, (await getFlowStats(t))?.live ?? 0], [0, 0])
  })

  for (const [hold, duration] of [
    ['for a while', 10 * LEASE],
    ['without an end', NEVER],
  ] as const) {
    rule(`stats: a live run counts while its lane is held ${hold}`, async (t) => {
      await t.append('a')
      const run = await t.claimOne()
      assert.equal(await t.hold('k', duration), 'ok')
      assert.equal((await getFlowStats(t))?.live, 1)
      assert.equal(await t.renew(run), 'ok')
      assert.equal((await getFlowStats(t))?.live, 1)
      await t.append('b', { key: 'other' })
      assert.deepEqual([(await getFlowStats(t))?.live, (await getFlowStats(t))?.due], [1, t.clock.now()])
      await t.settleOk(run)
      assert.equal((await getFlowStats(t))?.live, 0)
    })

    rule(`stats: a second attempt counts while its lane is held ${hold}, and no longer than its lease`, async (t) => {
      await t.append('a')
      await t.settleOk(await t.claimOne(), retry(10))
      await t.claimOneAfter(10)
      assert.equal(await t.hold('k', duration), 'ok')
      assert.equal((await getFlowStats(t))?.live, 1)
      t.expireLeases()
      assert.equal((await getFlowStats(t))?.live ?? 0, 0)
    })
  }

  rule('stats: unrouted events by reason', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox'), createUnrouted('slot', 'mail')] })
    await t.append('b', { unrouted: [createUnrouted('outbox')] })
    const { unrouted } = await t.store.stats()
    assert.deepEqual(unrouted.map(({ reason, count }) => `${reason} ${count}`).toSorted(), ['outbox 2', 'slot 1'])
  })

  rule('stats: bytes grow with what is stored', async (t) => {
    const before = (await t.store.stats()).bytes
    await t.append('a', { body: 'x'.repeat(1_000_000) })
    assert.ok((await t.store.stats()).bytes >= before + 1_000_000 - PAGE)
  })

  rule('feed: changes are in order, with rising numbers, and continue after the last one read', async (t) => {
    const read: FeedEntry[] = []
    let after = (await t.store.readFeed({ after: 0, n: 1_000 })).next
    const follow = async (n: number): Promise<void> => {
      for (let more = true; more;) {
        const page = await t.store.readFeed({ after, n })
        assert.equal(page.skipped, false, 'nothing is skipped without load')
        assert.ok(page.changes.length <= n)
        read.push(...page.changes)
        more = page.changes.length > 0
        after = page.next
      }
    }
    await t.append('a')
    await follow(1)
    const run = await t.claimOne()
    await t.settleOk(run)
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

  rule('feed: an event names the first eight lanes that it entered, and leaves out a long key', async (t) => {
    const { next: after } = await t.store.readFeed({ after: 0, n: 1_000 })
    const long = 'k'.repeat(1_000)
    await t.append('a', { keys: ['x', long], quiet: 60_000 })
    await t.append('b', { keys: Array.from({ length: 12 }, (_, n) => `${n}`), quiet: 60_000 })
    await t.append('c', { keys: [] })
    const { changes } = await t.store.readFeed({ after, n: 10 })
    const [a, b, c] = changes.map(({ lanes }) => lanes)
    assert.deepEqual(a, [
      { lane: laneId('flow', 'x'), flow: 'flow', key: 'x' },
      { lane: laneId('flow', long), flow: 'flow' },
    ])
    assert.deepEqual(
      b?.map(({ key }) => key),
      ['0', '1', '2', '3', '4', '5', '6', '7'],
    )
    assert.equal(c, undefined)
  })

  rule('feed: a reader that is far behind learns that it missed something, or misses nothing', async (t) => {
    const from = (await t.store.readFeed({ after: 0, n: 1 })).next
    for (let n = 0; n < 30; n++)
      await t.appendEvents(...Array.from({ length: 100 }, (_, k) => t.event(`e${n} ${k}`, { key: `${k}` })))
    let seen = 0
    let skipped = false
    for (let after = from, more = true; more;) {
      const page = await t.store.readFeed({ after, n: 500 })
      seen += page.changes.filter((change) => change.kind === 'event').length
      skipped ||= page.skipped
      more = page.changes.length > 0
      after = page.next
    }
    assert.ok(skipped || seen === 3_000, `${seen} of 3,000 changes were read, and none was reported as skipped`)
  })

  rule('hints: a lane is opened by an event when it has none, waiting or running', async (t) => {
    const opened: string[] = []
    t.store.listen((hint) => void (hint.kind === 'opened' && opened.push(`${hint.flow}/${hint.key}`)))
    await t.append('a', { key: 'k' })
    await t.append('b', { key: 'k' })
    const run = await t.claimOne()
    await t.append('c', { key: 'k' })
    assert.deepEqual(opened, ['flow/k'])
    await t.settleOk(run)
    await t.settleOk(await t.claimOne())
    await t.append('d', { key: 'k' })
    assert.deepEqual(opened, ['flow/k', 'flow/k'])
  })

  rule('hints: an earlier deadline emits a hint, a later one does not', async (t) => {
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
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c', 'd'])
  })

  rule('hints stop on request, and a listener that throws has no effect', async (t) => {
    let heard = 0
    const stop = t.store.listen(() => heard++)
    const stopThrowing = t.store.listen(() => {
      throw new Error('a listener of its own')
    })
    await t.append('a')
    stop()
    const before = heard
    assert.deepEqual(await t.append('b'), { kind: 'stored' })
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b'])
    assert.equal(heard, before)
    stopThrowing()
  })
}
