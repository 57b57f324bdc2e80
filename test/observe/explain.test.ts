// explain for lanes that wait, are ready or are empty: one true sentence with its facts, on each embedded store.
import { describe, expect, it } from 'vitest'
import { keylessLaneId } from '../../src/model/identity.ts'
import type { WindowParameters } from '../../src/model/place.ts'
import { explain } from '../../src/observe/explain/explain.ts'
import { snoozed, dead, SECOND } from '../conformance/builders.ts'
import { partsOf, STORES, stageOn, explanationOf } from './scene.ts'

function windowOf(_event: unknown, level: number): WindowParameters {
  return { quiet: 10_000 + 40_000 * level, max: 60_000, maxEvents: 1, maxBytes: 1, jitter: 0, leading: false }
}

describe.each(STORES)('explain on %s', (name) => {
  it('empty: which events the flow takes', async () => {
    const t = await stageOn(name)
    const said = await explanationOf(t)
    expect(said).toMatchObject({ flow: 'flow', key: 'k', state: 'empty', facts: { waiting: 0, served: true, dead: 0 } })
    expect(said.text).toBe(
      'Lane "k" of flow "flow" is empty: an event with this key that matches "shop/order.*" opens it.',
    )
  })

  it('empty: how the last run ended, and the dead letters', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    t.clock.advance(180_000)
    const said = await explanationOf(t)
    expect(said.facts).toMatchObject({ lastRun: run.runId, lastRunKind: 'dead', dead: 1 })
    expect(said.text).toContain(`"${run.runId}", ended as dead 3 minutes ago, and it has 1 dead letter, and an event`)
  })

  it('unknown-flow: what the lane contains', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const said = await explain(partsOf(t.store, { flows: new Map(), isServed: () => false }), 'flow', 'k')
    expect(said).toMatchObject({ state: 'unknown-flow', facts: { laneState: 'ready', waiting: 1, declared: false } })
    expect(said.text).toBe(
      'Lane "k" of flow "flow", which is not declared here, has been ready for 0 ms with 1 event, first in the queue; no process serves this flow.',
    )
    expect((await explain(partsOf(t.store), 'nowhere', 'k')).text).toBe(
      'Lane "k" of flow "nowhere", which is not declared here, is empty: nothing waits in it.',
    )
  })

  it('waiting: the deadline, the events and the latest time', async () => {
    const t = await stageOn(name)
    const start = t.clock.now()
    await t.append('a', { quiet: 10 * SECOND, max: 60 * SECOND })
    t.clock.advance(2_800)
    await t.append('b', { quiet: 10 * SECOND, max: 60 * SECOND })
    t.clock.advance(2_800)
    const said = await explanationOf(t)
    expect(said.state).toBe('waiting')
    expect(said.facts).toMatchObject({ deadline: start + 12_800, in: 7_200, waiting: 2, latest: start + 60_000 })
    expect(said.text).toBe(
      'Lane "k" of flow "flow" waits for its window with 2 events: due in 7.2 s, at the latest in 54.4 s if more events arrive.',
    )
    expect((await explanationOf(t, { isServed: () => false })).text).toMatch(/; no process serves this flow\.$/)
  })

  it('waiting: a window that no event moves, and one without an end', async () => {
    const t = await stageOn(name)
    await t.append('a', { every: 60 * SECOND })
    expect((await explanationOf(t)).text).toContain('with 1 event: due in 1 minute, even if more events arrive.')
    await t.append('b', { key: 'b', quiet: 5_000, max: Infinity })
    expect((await explanationOf(t, {}, 'b')).text).toContain('due in 5 s, without a latest time if more events arrive.')
    await t.append('c', { key: 'c', quiet: Infinity, max: Infinity })
    const endless = await explanationOf(t, {}, 'c')
    expect(endless).toMatchObject({ state: 'idle', facts: { waiting: 1, deadline: undefined } })
    expect(endless.text).toContain(
      'has 1 event and no deadline: a full batch or an operator ends its window, or the end',
    )
  })

  it('ready: the permits of the flow, or of its group, are mentioned only if they are all taken', async () => {
    const t = await stageOn(name)
    for (const key of ['a', 'b', 'c']) await t.append(key, { key, group: key === 'c' ? 'other' : 'one' })
    const one = { flow: { concurrency: 1 } }
    expect((await explanationOf(t, one, 'b')).facts.full).toBe(false)
    const [run] = await t.claim({ maxRuns: 1 })
    expect((await explanationOf(t, one, 'b')).text).toMatch(
      /first in the queue; the one permit of the flow is taken\.$/,
    )
    expect((await explanationOf(t, {}, 'b')).facts.full).toBe(false)
    const shared = { flow: { concurrency: 1, share: 'tenant' } } as const
    expect((await explanationOf(t, shared, 'b')).text).toContain(
      '; the one permit that a group may have of the flow is taken.',
    )
    expect((await explanationOf(t, shared, 'c')).facts.full).toBe(false)
    expect(run?.key).toBe('a')
  })

  it('deferred: an earlier handler has not returned', async () => {
    const t = await stageOn(name)
    await t.append('a')
    await t.settleOk(await t.claimOne(), snoozed(5_000))
    expect((await explanationOf(t, { hasLingeringHandler: () => true })).text).toMatch(
      /; an earlier handler of it has not returned in this process\.$/,
    )
  })

  it('waiting: the pressure of an adaptive flow', async () => {
    const t = await stageOn(name)
    await t.append('a', { quiet: 10 * SECOND })
    await t.store.updatePressure({ flows: [{ flow: 'flow', raise: true }] })
    const said = await explanationOf(t, { flow: { adaptiveBaseQuiet: 10_000, computeWindow: windowOf } })
    expect(said.facts).toMatchObject({ pressure: 0.25, quiet: 20_000 })
    expect(said.text).toContain(', under a pressure of 0.25, which makes its quiet 20 s now.')
    const thrown = { adaptiveBaseQuiet: 10_000, computeWindow: (): never => expect.fail('no such event') }
    expect((await explanationOf(t, { flow: thrown })).facts).toMatchObject({ pressure: 0.25, quiet: undefined })
  })

  it('ready: its position, and why it is not claimed', async () => {
    const t = await stageOn(name)
    for (const key of ['a', 'b', 'c']) await t.append(key, { key })
    t.clock.advance(3_200)
    const said = await explanationOf(t, {}, 'c')
    expect(said).toMatchObject({ state: 'ready', facts: { in: -3_200, position: 3, ahead: 2, aheadExact: true } })
    expect(said.text).toBe('Lane "c" of flow "flow" has been ready for 3.2 s with 1 event, number 3 in the queue.')
    expect((await explanationOf(t, { isProcessFull: () => true }, 'a')).text).toMatch(
      /first in the queue; this process already has the maximum number of runs\.$/,
    )
    await t.pause()
    t.clock.advance(60_000)
    const paused = await explanationOf(t, { isServed: () => false }, 'a')
    expect(paused.facts).toMatchObject({ pausedBy: 'ada', pauseReason: 'deploy', served: false })
    expect(paused.text).toMatch(
      /; the flow was paused by "ada" 1 minute ago because of "deploy"; no process serves this flow\.$/,
    )
  })

  it('ready: each group has its own order', async () => {
    const t = await stageOn(name)
    await t.append('a', { key: 'a', group: 'x' })
    await t.append('b', { key: 'b', group: 'y' })
    await t.append('c', { key: 'c', group: 'y' })
    const said = await explanationOf(t, { flow: { share: 'tenant' } }, 'c')
    expect(said.facts).toMatchObject({ position: 2, group: 'y' })
    expect(said.text).toContain('number 2 in the queue of its group "y", which takes turns with other groups.')
  })

  it('ready: with replays, and with a dead letter that was queued by hand', async () => {
    const t = await stageOn(name)
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    await t.append('b')
    await t.steerDeadLetter(run.runId, 'retry')
    const said = await explanationOf(t)
    expect(said).toMatchObject({ state: 'ready', facts: { queued: 1, queuedDeadLetter: run.runId, waiting: 1 } })
    expect(said.text).toContain(
      `with 1 dead letter queued by hand (first "${run.runId}"), 1 event, first in the queue.`,
    )
    const event = t.event('c', { key: 'other' })
    await t.appendEvents(event)
    const items = [{ kind: 'replay', replay: 'r1', event: event.id, placements: t.event('x').placements }] as const
    await t.store.place({ routes: t.routes, items })
    expect((await explanationOf(t)).facts).toMatchObject({ replays: 1 })
    expect((await explanationOf(t)).text).toContain(', 1 event, 1 replay, first in the queue')
  })

  it('idle: what the store remembers of the lane', async () => {
    const t = await stageOn(name)
    await t.append('a')
    await t.settleOk(await t.claimOne(), undefined, { keep: 10_000 })
    t.clock.advance(3_000)
    const said = await explanationOf(t)
    expect(said).toMatchObject({ state: 'idle', facts: { keptUntil: t.clock.now() + 7_000 } })
    expect(said.text).toBe(
      'Lane "k" of flow "flow" has nothing to do: its last run ended 3 s ago, which it remembers for 7 s more.',
    )
  })

  it('if too many lanes are ready to count, the position is a minimum', async () => {
    const t = await stageOn(name)
    await t.appendEvents(...Array.from({ length: 2_600 }, (_, n) => t.event(`e${n}`, { key: `${n}` })))
    const said = await explanationOf(t, {}, '2599')
    expect(said.facts).toMatchObject({ aheadExact: false, ahead: 1_999, position: 2_000 })
    expect(said.text).toContain(', with at least 1999 lanes ahead in the queue.')
  })

  it('a lane of a flow without keys is found by its event', async () => {
    const t = await stageOn(name)
    const event = t.event('a')
    const [own] = event.placements
    if (own === undefined) expect.fail('it has a place')
    await t.appendEvents({ ...event, placements: [{ ...own, key: event.id, lane: keylessLaneId('flow', event.id) }] })
    expect((await explanationOf(t, { flow: { selectKeys: undefined } }, event.id)).state).toBe('ready')
    expect((await explanationOf(t, { flows: new Map() }, event.id)).facts.laneState).toBe('ready')
    expect((await explanationOf(t, { flow: { selectKeys: undefined } }, 'gone')).text).toContain('is a lane of its own')
  })
})
