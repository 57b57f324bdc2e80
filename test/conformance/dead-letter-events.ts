// A run that dies is announced by an event in the same commit: once for each death, and never about events of the engine itself.
import assert from 'node:assert/strict'
import type { ClaimUnroutedReply, EventRecord, LeasedRun } from '../../src/store/contract/index.ts'
import type { RunOutcome } from '../../src/model/settle.ts'
import type { DeadLetterData } from '../../src/model/dead-letter-event.ts'
import { assertSingle, sorted, type ConformanceStage, type Suite } from './stage.ts'
import { createClaimRequest, dead, done, partial, retry } from './builders.ts'

const ALWAYS = -1

async function announced(t: ConformanceStage): Promise<readonly EventRecord[]> {
  return (await t.findAll('events', { source: 'sluice' })).toReversed()
}

async function unrouted(t: ConformanceStage): Promise<ClaimUnroutedReply['unrouted']> {
  const call = { n: 100, lease: 1_000, reasons: ['routes-old'], flows: [] } as const
  return (await t.store.claimUnrouted(call)).unrouted
}

async function dataOf(t: ConformanceStage, { id }: Pick<EventRecord, 'id'>): Promise<DeadLetterData> {
  const { item } = await t.store.get({ kind: 'events', id })
  assert.ok(item?.body)
  return JSON.parse(Buffer.from(item.body).toString()) as DeadLetterData
}

function die(t: ConformanceStage, run: LeasedRun, outcome: RunOutcome = dead, after: number = ALWAYS): Promise<void> {
  const attempt = { at: t.clock.now(), ms: 1, error: 'Error: broken' }
  return t.settleOk(run, outcome, { attempt, announceDeadAfter: after })
}

async function crash(t: ConformanceStage, announceDeadAfter?: number): Promise<LeasedRun> {
  const run = await t.claimOne()
  for (let lapse = 1; lapse < 4; lapse++) {
    t.expireLeases()
    await t.claimOne()
  }
  t.expireLeases()
  const { crashed } = await t.settleAndClaim({ claim: [createClaimRequest({ announceDeadAfter })] })
  assert.deepEqual(crashed, [{ lane: run.lane, run: run.runId }])
  return run
}

export const deadLetterEvents: Suite = (rule) => {
  rule('L9 a dead run is announced by an event that waits to be routed, with all about it', async (t) => {
    await t.appendEach(['a', 'b'], { tenant: 'acme', subject: 's' })
    const first = await t.claimOne()
    const failedAt = t.clock.now()
    await t.settleOk(first, retry(0), { attempt: { at: failedAt, ms: 1, error: 'Error: before' } })
    t.clock.advance(500)
    const run = await t.claimOne()
    await die(t, run)
    const event = assertSingle(await announced(t))
    assert.deepEqual([event.type, event.tenant, event.subject, event.time], ['run.dead', 'acme', 'k', t.clock.now()])
    assert.deepEqual(await dataOf(t, event), {
      deadLetter: run.runId,
      run: run.runId,
      flow: 'flow',
      key: 'k',
      tenant: 'acme',
      reason: 'broken',
      error: 'Error: broken',
      attempts: 2,
      crashes: 0,
      events: ['a', 'b'].map((name) => ({ id: t.id(name), source: 'shop', type: 'order.paid', subject: 's' })),
      eventCount: 2,
      firstFailedAt: failedAt,
      at: t.clock.now(),
    })
    const [leased] = await unrouted(t)
    assert.deepEqual([leased?.event.id, leased?.flow, leased?.reason], [event.id, '', 'routes-old'])
  })

  rule('L12 a run that crashes once too often is announced too', async (t) => {
    await t.append('a')
    const run = await crash(t, ALWAYS)
    const event = assertSingle(await announced(t))
    const data = await dataOf(t, event)
    assert.deepEqual(
      [data.deadLetter, data.reason, data.error, data.attempts, data.crashes, data.firstFailedAt],
      [run.runId, 'crashed', null, 0, 4, null],
    )
    assert.equal((await unrouted(t)).length, 1)
  })

  rule('L8 of a run that accepted a part, the event names the dead letter and its events only', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.claimOne()
    await die(t, run, partial({ dead: [t.id('b')], retry: [t.id('c')] }))
    const data = await dataOf(t, assertSingle(await announced(t)))
    const deadLetter = assertSingle(await t.findAll('dead'))
    assert.deepEqual(
      [data.run, data.deadLetter, data.reason, t.names(data.events.map(({ id }) => id)), data.eventCount],
      [run.runId, deadLetter.id, 'refused', ['b'], 1],
    )
    assert.notEqual(deadLetter.id, run.runId)
  })

  rule('L8 a run that accepted a part, with nothing dead, is not announced', async (t) => {
    await t.appendEach(['a', 'b'])
    await die(t, await t.claimOne(), partial({ retry: [t.id('b')] }))
    assert.deepEqual(await announced(t), [])
  })

  rule('L9 without a subscriber up to these routes, no event is stored', async (t) => {
    await t.appendEach(['a'])
    await die(t, await t.claimOne(), dead, t.routes)
    await t.append('b', { key: 'other' })
    await crash(t, t.routes)
    await t.append('c', { key: 'third' })
    await crash(t)
    assert.deepEqual(await announced(t), [])
    assert.deepEqual(await unrouted(t), [])
  })

  rule('L18 a store whose routes are newer announces, because a flow may take the event by now', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    const before = t.routes
    const doc = { kind: 'flow', id: 'new', ifRev: 0, body: Buffer.from('{}') }
    await t.store.writeDocs({ writes: [doc], raiseRoutes: true, audit: undefined })
    await die(t, run, dead, before)
    assert.equal((await announced(t)).length, 1)
  })

  rule('L9 a dead letter that is retried and dies again is announced again', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await die(t, run)
    await t.steerDeadLetter(run.runId, 'retry')
    // The same millisecond, the same number of attempts.
    await die(t, await t.claimOne())
    const both = await announced(t)
    assert.equal(new Set(both.map(({ id }) => id)).size, 2)
    assert.deepEqual(await Promise.all(both.map(async (one) => (await dataOf(t, one)).deadLetter)), [
      run.runId,
      run.runId,
    ])
    await t.steerDeadLetter(run.runId, 'retry')
    await t.settleOk(await t.claimOne(), done)
    assert.equal((await announced(t)).length, 2)
  })

  rule('L12 a repeated call announces nothing twice', async (t) => {
    await t.append('a')
    const { lane, token } = await t.claimOne()
    const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [], announceDeadAfter: ALWAYS } as const
    const call = { process: 'p1', request: 50, settle: [{ lane, token, outcome: dead, ...end }] }
    assert.deepEqual((await t.settleAndClaim(call)).settled, ['ok'])
    assert.deepEqual((await t.settleAndClaim(call)).settled, ['ok'])
    assert.deepEqual((await t.settleAndClaim({ ...call, request: 51 })).settled, ['lost'])
    assert.equal((await announced(t)).length, 1)
  })

  rule('L9 a run that took an event of the engine is not announced, however it dies', async (t) => {
    await t.append('news', { source: 'sluice' })
    await t.append('a')
    await die(t, await t.claimOne())
    await t.append('news 2', { source: 'sluice', key: 'other' })
    await crash(t, ALWAYS)
    await t.append('news 3', { source: 'sluice', key: 'third' })
    await t.append('b', { key: 'third' })
    await die(t, await t.claimOne(), partial({ dead: [t.id('b')] }))
    assert.deepEqual(
      sorted((await announced(t)).map(({ type }) => type)),
      Array.from({ length: 3 }, () => 'order.paid'),
    )
  })

  rule('L9 the event about a run with an encrypted event quotes neither its key nor its errors', async (t) => {
    await t.append('a', { attributes: '{"sluicesealed":true}', subject: 'secret', key: 'secret', tenant: 'acme' })
    await t.append('b', { subject: 'clear', key: 'secret', tenant: 'acme' })
    await die(t, await t.claimOne(), partial({ dead: [t.id('b')] }))
    const event = assertSingle(await announced(t))
    const { key, reason, error, events, flow } = await dataOf(t, event)
    assert.deepEqual([event.subject, event.tenant, key, reason, error, flow], ['', 'acme', null, null, null, 'flow'])
    assert.deepEqual(events, [{ id: t.id('b'), source: 'shop', type: 'order.paid', subject: null }])
  })

  rule('L9 the event names at most a hundred events, and how many there are', async (t) => {
    await t.appendEvents(...Array.from({ length: 120 }, (_, n) => t.event(`e${n}`)))
    await die(t, await t.claimOne())
    const { events, eventCount } = await dataOf(t, assertSingle(await announced(t)))
    assert.deepEqual([events.length, eventCount, events.at(-1)?.id], [100, 120, t.id('e99')])
  })
}
