// In every random history of a lane, explain agrees with the records. The facts are computed a second time here, by brute force.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import type { Lane } from '../../src/model/lane.ts'
import { getLaneState } from '../../src/model/lane-states.ts'
import type { RunOutcome } from '../../src/model/settle.ts'
import type { Explanation } from '../../src/observe/explain/explain.ts'
import type { ConformanceStage } from '../conformance/stage.ts'
import { snoozed, deadAndBlocking, dead, done, dropped, released, retry } from '../conformance/builders.ts'
import type { LaneAction, LeasedRun } from '../../src/store/contract/index.ts'
import { stageOn, explanationOf } from './scene.ts'

const KEYS = ['a', 'b', 'c', 'd'] as const
const LEASE = 100
const TRIES = 4

type Step =
  | { readonly kind: 'append'; readonly key: string; readonly quiet: number; readonly max: number }
  | { readonly kind: 'replay'; readonly key: string }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'turn'; readonly slots: number; readonly failing: number; readonly maxEvents: number }
  | { readonly kind: 'settle'; readonly which: number; readonly outcome: RunOutcome; readonly keep: number }
  | { readonly kind: 'steer'; readonly key: string; readonly act: LaneAction }
  | { readonly kind: 'dead-letter'; readonly which: number; readonly act: 'retry' | 'drop' | 'unblock' }

const key = fc.constantFrom(...KEYS)
const short = fc.constantFrom(0, 10, 50, 120)
const outcome = fc.oneof(
  fc.constantFrom<RunOutcome>(done, done, dead, deadAndBlocking, dropped, released, { kind: 'cancelled' }),
  short.map(retry),
  short.map((after) => snoozed(after)),
)
const act = fc.oneof(
  fc.constantFrom<LaneAction>({ kind: 'run-now' }, { kind: 'cancel' }, { kind: 'unhold' }, { kind: 'drop' }),
  fc.constantFrom(10, 50, 200, NEVER).map((ms): LaneAction => ({ kind: 'hold', reason: 'r', by: 'ada', for: ms })),
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('append'),
      key,
      quiet: short,
      max: fc.constantFrom(0, 60, 400, Infinity),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('replay'), key }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance'), ms: fc.constantFrom(1, 10, 50, LEASE) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('turn'),
      slots: fc.constantFrom(1, 1, 4),
      failing: fc.constantFrom(0, 1, 4),
      maxEvents: fc.constantFrom(1, 1_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('settle'), which: fc.nat(3), outcome, keep: fc.constantFrom(0, 50) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('steer'), key, act }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('dead-letter'),
      which: fc.nat(3),
      act: fc.constantFrom('retry', 'drop', 'unblock'),
    }),
  },
)

class History {
  readonly #t: ConformanceStage
  #runs: LeasedRun[] = []
  #named = 0

  constructor(t: ConformanceStage) {
    this.#t = t
  }

  async perform(what: Step): Promise<void> {
    const t = this.#t
    switch (what.kind) {
      case 'append':
        return void (await t.append(`e${this.#named++}`, what))
      case 'replay': {
        const event = t.event(`e${this.#named++}`, { key: 'elsewhere', flow: 'other' })
        await t.appendEvents(event)
        const places = t.event('unsent', { key: what.key }).placements
        const items = [{ kind: 'replay', replay: event.id, event: event.id, placements: places }] as const
        return void (await t.store.place({ routes: t.routes, items }))
      }
      case 'advance':
        return t.clock.advance(what.ms)
      case 'turn':
        return void this.#runs.push(...(await t.claim({ ...what, lease: LEASE })))
      case 'settle': {
        const run = this.#runs.splice(what.which % Math.max(1, this.#runs.length), 1)[0]
        const attempt = what.outcome.kind === 'retry' ? { attempt: { at: t.clock.now(), ms: 1, error: 'no' } } : {}
        return run && void (await t.settle(run, what.outcome, { keep: what.keep, ...attempt }))
      }
      case 'steer':
        return void (await t.steer(what.key, what.act))
      case 'dead-letter': {
        const deadLetters = await t.findAll('dead')
        const deadLetter = deadLetters[what.which % Math.max(1, deadLetters.length)]
        return deadLetter && void (await t.steerDeadLetter(deadLetter.id, what.act))
      }
    }
  }
}

function deadlineOf(lane: Lane): number | undefined {
  const soonest =
    lane.run?.until ??
    (lane.queuedDeadLetters > 0 ? lane.deadLetterDue : lane.blocks > 0 ? NEVER : Math.min(lane.window, lane.replayDue))
  const due = Math.max(soonest, lane.hold?.until ?? 0)
  return due === NEVER ? undefined : due
}

/** The position, by sorting all lanes that could be claimed. */
function positionOf(lane: Lane, all: readonly Lane[], now: number): number | undefined {
  const line = all
    .filter((each) => each.due <= now && each.health === lane.health)
    .toSorted((one, other) => one.due - other.due || one.ticket - other.ticket)
  const at = line.findIndex((each) => each.id === lane.id)
  return at === -1 ? undefined : at + 1
}

function check(said: Explanation, lane: Lane | undefined, all: readonly Lane[], now: number): void {
  expect(said.text).toMatch(/^Lane "[abcd]" of flow "flow" [^\n]+\.$/)
  expect(said.text).not.toMatch(/undefined|NaN|Infinity|null|9007199254|-\d+(?:\.\d)? (?:ms|s)\b|that was not found/)
  expect(said.state).toBe(lane === undefined ? 'empty' : getLaneState(lane, now))
  expect(said.facts).toMatchObject({ state: said.state, laneState: said.state, flow: said.flow, key: said.key, now })
  if (lane === undefined) return
  const deadline = deadlineOf(lane)
  const { run, hold } = lane
  const live = run?.state === 'running' && run.until > now
  const wanted = {
    deadline,
    in: deadline === undefined ? undefined : deadline - now,
    position: positionOf(lane, all, now),
    waiting: lane.waiting,
    replays: lane.replays,
    queued: lane.queuedDeadLetters,
    leftOver: lane.hasRemaining,
    run: run?.id,
    attempt: run && run.tries + 1,
    triesLeft: run && Math.max(0, TRIES - run.tries),
    started: run?.started,
    leaseEnds: run?.state === 'running' ? run.until : undefined,
    nextTry: run === undefined || run.state === 'running' ? undefined : deadline,
    lapses: run && run.lapses + (run.state === 'running' && !live ? 1 : 0),
    events: run?.events,
    heldBy: hold?.by,
    holdOver: hold !== undefined && hold.until <= now,
  }
  for (const [name, value] of Object.entries(wanted)) expect(said.facts[name as keyof typeof wanted], name).toBe(value)
  if (said.state === 'blocked') expect(said.facts.blockedBy).toBeTypeOf('string')
}

/** The lane that explain reports as first is served next. */
async function checkFirst(t: ConformanceStage, sayings: readonly Explanation[]): Promise<void> {
  const first = sayings.filter((said) => said.facts.line === 'healthy' && said.facts.position === 1)
  const served = await t.claim({ maxRuns: 1, maxFailing: 0, maxSuspects: 0 })
  expect(served.map((run) => run.key)).toEqual(first.map((said) => said.key))
}

it('explain is right after every step of a random history, for every lane', async () => {
  const met = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 18 }), async (steps) => {
      const t = await stageOn('memory')
      const history = new History(t)
      let sayings: Explanation[] = []
      for (const each of steps) {
        await history.perform(each)
        const all = await t.findAll('lanes', { flow: 'flow' })
        sayings = []
        for (const name of KEYS) {
          const lane = all.find((one) => one.id === laneId('flow', name))
          const said = await explanationOf(t, {}, name)
          met.add(said.state)
          check(said, lane, all, t.clock.now())
          sayings.push(said)
        }
      }
      await checkFirst(t, sayings)
    }),
    // Twice as many histories as it takes to reach every state.
    { numRuns: 600 },
  )
  const every = ['blocked', 'empty', 'held', 'idle', 'lapsed', 'ready', 'retrying', 'running', 'snoozed', 'waiting']
  expect([...met].toSorted()).toEqual(every)
})
