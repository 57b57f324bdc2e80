// explain for lanes that have a run, or whose run is prevented: one true sentence with its facts, on each embedded store.
import { describe, expect, it } from 'vitest'
import { snoozed, deadAndBlocking, dead, LEASE, released, retry } from '../conformance/builders.ts'
import { STORES, stageOn, explanationOf } from './scene.ts'

const attempt = (error: string): { at: number; ms: number; error: string } => ({ at: 0, ms: 5, error })

describe.each(STORES)('explain on %s', (name) => {
  it('running: the run, its attempt, its lease, and the events that wait behind it', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    t.clock.advance(2_300)
    await t.append('b', { quiet: 1_000 })
    const said = await explanationOf(t)
    const started = t.clock.now() - 2_300
    expect(said.state).toBe('running')
    expect(said.facts).toMatchObject({ run: run.runId, attempt: 1, triesLeft: 4, events: 1, waiting: 1, started })
    expect(said.facts.leaseEnds).toBe(started + LEASE)
    expect(said.text).toBe(
      `Lane "k" of flow "flow" is running: run "${run.runId}" began 2.3 s ago, is at attempt 1 of 4 with 1 event, and its lease ends in 27.7 s unless it is renewed; behind it waits 1 event.`,
    )
  })

  it('running: a slot of a limit, a request to cancel, a pause and a hold', async () => {
    const t = await stageOn(name)
    await t.append('a', { quiet: 100, max: 60_000 })
    await t.claimOneAfter(100)
    await t.store.regulate({ name: 'api', act: { kind: 'pause', for: 2_000, slow: false } })
    const until = t.clock.now() + 2_400
    const said = await explanationOf(t, { findSlotWait: () => ({ limit: 'api', until }) })
    expect(said.facts).toMatchObject({ limit: 'api', limitIn: 2_400, limitPausedFor: 2_000 })
    expect(said.text).toContain(
      'waits for a slot of limit "api" (which is paused for 2 s more) in 2.4 s, and its lease',
    )
    await t.steer('k', 'cancel')
    await t.hold('k', 5 * 60_000)
    await t.pause()
    const later = await explanationOf(t, { isServed: () => false })
    expect(later).toMatchObject({ state: 'running', facts: { cancelAsked: true, heldBy: 'ada' } })
    expect(later.text).toMatch(
      /, was asked to cancel, .*; it is also held by "ada" for 5 minutes more; the flow was paused by "ada" now because of "deploy", which lets this run finish\.$/,
    )
  })

  it('running: events that a run left over are due when it ends', async () => {
    const t = await stageOn(name)
    await t.appendEach(['a', 'b', 'c'])
    await t.claimOne({ maxEvents: 1 })
    const said = await explanationOf(t)
    expect(said.facts).toMatchObject({ leftOver: true, waiting: 2, events: 1 })
    expect(said.text).toMatch(/; behind it wait 2 events, left over and due when that ends\.$/)
  })

  it('lapsed: how often the lease lapsed, and the consequence', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    t.expireLeases()
    t.clock.advance(3_000)
    const first = await explanationOf(t)
    expect(first).toMatchObject({ state: 'lapsed', facts: { lapses: 1, run: run.runId, attempt: 1 } })
    expect(first.text).toBe(
      `Lane "k" of flow "flow" has lapsed: the process of run "${run.runId}" stopped renewing the lease, which ended 3 s ago, lapse 1 of 4, and it comes back at once with its 1 event.`,
    )
    await t.claimOne()
    t.expireLeases()
    const second = await explanationOf(t)
    expect(second.facts).toMatchObject({ lapses: 2, line: 'suspect', position: 1 })
    expect(second.text).toContain(
      'lapse 2 of 4, and it comes back with its 1 event when it gets its turn, first in the queue among the suspect lanes, which have few slots.',
    )
    for (let more = 0; more < 2; more++) {
      await t.claimOne()
      t.expireLeases()
    }
    expect((await explanationOf(t)).text).toContain('lapse 4 of 4, and the next claim makes it a dead letter.')
  })

  it('retrying: the error, the next attempt, and how many attempts remain', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(5_000), { attempt: attempt('HTTP 500 with Bearer abc.def') })
    t.clock.advance(800)
    const said = await explanationOf(t)
    expect(said.state).toBe('retrying')
    expect(said.facts).toMatchObject({ attempt: 2, tries: 1, triesOf: 4, triesLeft: 3, nextTry: t.clock.now() + 4_200 })
    expect(said.text).toBe(
      `Lane "k" of flow "flow" is retrying: attempt 1 of 4 of run "${run.runId}" failed (the last error was "HTTP 500 with Bearer [redacted]"), and the next attempt is due in 4.2 s, with 3 attempts left.`,
    )
    t.clock.advance(5_000)
    const due = await explanationOf(t)
    expect(due).toMatchObject({ state: 'retrying', facts: { line: 'failing', position: 1, in: -800 } })
    expect(due.text).toContain(
      'has been due for 800 ms, first in the queue among the failing lanes, which have few slots',
    )
  })

  it('snoozed: since when, and until when; or given back', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, snoozed(10_000))
    const since = t.clock.now()
    t.clock.advance(1_000)
    const said = await explanationOf(t)
    expect(said).toMatchObject({ state: 'snoozed', facts: { snoozedSince: since, in: 9_000, attempt: 1 } })
    expect(said.text).toBe(
      `Lane "k" of flow "flow" is snoozed: run "${run.runId}" with 1 event first snoozed 1 s ago, and it is due in 9 s.`,
    )
    await t.append('b', { key: 'b' })
    await t.settleOk(await t.claimOne(), released)
    expect((await explanationOf(t, {}, 'b')).text).toContain('was given back, and it has been due for 0 ms, first in')
  })

  it('blocked: by which dead letter, and why it died', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, deadAndBlocking)
    await t.append('b')
    t.clock.advance(300_000)
    const said = await explanationOf(t)
    expect(said.facts).toMatchObject({ blockedBy: run.runId, blockedReason: 'broken', blockedTries: 1, waiting: 1 })
    expect(said).toMatchObject({ state: 'blocked' })
    expect(said.text).toBe(
      `Lane "k" of flow "flow" is blocked by dead letter "${run.runId}", which died 5 minutes ago after 1 attempt because of "broken"; behind it waits 1 event until that is retried, dropped or unblocked.`,
    )
    await t.hold('k', 1_000)
    expect((await explanationOf(t)).text).toContain(`without that it would be blocked by dead letter "${run.runId}"`)
  })

  it('not blocked: a dead letter that blocks nothing; queued: the one that died first', async () => {
    const t = await stageOn(name)
    const runs: string[] = []
    for (const outcome of [dead, dead, deadAndBlocking]) {
      await t.append(`e${runs.length}`)
      const run = await t.claimOne()
      await t.settleOk(run, outcome)
      runs.push(run.runId)
    }
    expect((await explanationOf(t)).facts.blockedBy).toBe(runs[2])
    await t.steerDeadLetter(runs[1] ?? '', 'retry')
    await t.steerDeadLetter(runs[0] ?? '', 'retry')
    expect((await explanationOf(t)).facts).toMatchObject({
      state: 'ready',
      queued: 2,
      queuedDeadLetter: runs[0],
      blockedBy: undefined,
    })
    expect((await t.claimOne()).runId).toBe(runs[0])
  })

  it('held: by whom, why, for how long, and what happens afterwards', async () => {
    const t = await stageOn(name)
    await t.append('a')
    await t.hold('k', 90_000)
    const said = await explanationOf(t)
    expect(said).toMatchObject({ state: 'held', facts: { heldBy: 'ada', holdReason: 'looking', behindHold: 'ready' } })
    expect(said.facts.heldUntil).toBe(t.clock.now() + 90_000)
    expect(said.text).toBe(
      'Lane "k" of flow "flow" is held by "ada" because of "looking" for 1.5 minutes more; without that it would be ready with 1 event.',
    )
    t.clock.advance(91_000)
    const over = await explanationOf(t)
    expect(over).toMatchObject({ state: 'ready', facts: { holdOver: true, position: 1 } })
    expect(over.text).toMatch(/first in the queue; a hold by "ada" ended 1 s ago\.$/)
    await t.hold('k', Infinity)
    expect((await explanationOf(t)).text).toContain('because of "looking" until an operator lifts it; without that')
  })

  it('held: a run that waits behind the hold', async () => {
    const t = await stageOn(name)
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(100), { attempt: attempt('no') })
    await t.hold('k', 1_000)
    expect((await explanationOf(t)).text).toContain('it would be retrying: attempt 1 of 4 of run')
    await t.append('b', { key: 'b' })
    await t.claimOne()
    await t.hold('b', 2 * LEASE)
    t.expireLeases()
    expect((await explanationOf(t, {}, 'b')).text).toContain('it would come back after lapse 1 of 4 of run')
  })
})
