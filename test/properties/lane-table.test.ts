// The table of lane states against the code: random walks through the memory store take every arrow, and no other.
import { afterAll, describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { laneId } from '../../src/model/identity.ts'
import { LANE_TRANSITIONS, getLaneState, type LaneState, type LaneTransition } from '../../src/model/lane-states.ts'
import type { ClaimRequest, LeasedRun, EventToStore, Settlement, Store } from '../../src/store/contract/index.ts'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const FLOW = 'flow'
const LANE = laneId(FLOW, 'key')
const LEASE = 1000
const seen = new Set<string>()

class Walk {
  readonly clock = new VirtualClock()
  readonly store: Store = openMemoryStore({ clock: this.clock })
  lease: LeasedRun | undefined
  events = 0
  requests = 0

  async state(): Promise<LaneState> {
    const { item } = await this.store.get({ kind: 'lanes', id: LANE })
    return item === undefined ? 'idle' : getLaneState(item, this.clock.now())
  }

  async step(transition: LaneTransition, act: () => Promise<boolean | void>): Promise<void> {
    const before = await this.state()
    if ((await act()) === false) return
    const after = await this.state()
    if (transition === 'time' && before === after) return
    this.arrow(transition, before, after)
  }

  append(quiet: number, cancel: boolean): Promise<unknown> {
    const id = String(++this.events)
    const window = { quiet, max: 300, maxEvents: 4, maxBytes: 1e6, jitter: 0, leading: false }
    const place = { ...window, lane: LANE, flow: FLOW, key: 'key', group: '', cancel }
    const none = new Uint8Array()
    const facts = { source: 's', type: 't', time: 0, tenant: '', subject: '', attributes: '' }
    const event: EventToStore = {
      ...facts,
      id,
      identity: id.padStart(22, 'A'),
      dedupeFor: 1e9,
      body: none,
      request: none,
      placements: [place],
      unrouted: [],
    }
    return this.store.append({ routes: 1, events: [event] })
  }

  async turn(settle: readonly Settlement[], claim: readonly ClaimRequest[]): ReturnType<Store['settleAndClaim']> {
    return this.store.settleAndClaim({ process: 'p', request: ++this.requests, routes: 1, settle, claim, budget: 1e6 })
  }

  async claim(block: boolean): Promise<void> {
    const caps = { maxEvents: 2, maxBytes: 1e6, lease: LEASE, take: 'all' } as const
    const claim: ClaimRequest = {
      ...caps,
      flow: FLOW,
      maxRuns: 1,
      maxFailing: 1,
      maxSuspects: 1,
      maxPerGroup: undefined,
      blockOnCrash: block,
    }
    const before = await this.state()
    const reply = await this.turn([], [claim])
    const after = await this.state()
    this.took(before, after, reply)
    this.lease = reply.claimed[0] ?? this.lease
  }

  /** A crash may make the lane ready, and the same call then claims it. */
  took(before: LaneState, after: LaneState, reply: { crashed: readonly unknown[]; claimed: readonly unknown[] }): void {
    const [crashed, claimed] = [reply.crashed.length > 0, reply.claimed.length > 0]
    if (crashed) this.arrow('crash', before, claimed ? 'ready' : after)
    if (claimed) this.arrow('claim', crashed ? 'ready' : before, after)
  }

  arrow(transition: LaneTransition, before: LaneState, after: LaneState): void {
    expect(LANE_TRANSITIONS[transition][before] ?? [], `${transition} from ${before}`).toContain(after)
    seen.add(`${transition}: ${before} → ${after}`)
  }

  async settle(outcome: Settlement['outcome'], whileRunning: 'window' | 'requeue'): Promise<boolean> {
    if (this.lease === undefined) return false
    const { lane, token } = this.lease
    const { settled } = await this.turn(
      [{ lane, token, outcome, attempt: undefined, publish: [], whileRunning, keep: 0 }],
      [],
    )
    return settled[0] === 'ok'
  }

  async deadLetter(act: 'retry' | 'drop', at: number): Promise<boolean> {
    const { items } = await this.store.find({ kind: 'dead', filter: {}, cursor: '', n: 10 })
    const open = items.filter((one) => (act === 'retry' ? one.state === 'dead' : one.state !== 'running'))
    const wanted = open[at % open.length]
    if (wanted === undefined) return false
    const { results } = await this.store.steer({ what: 'dead', ids: [wanted.id], act })
    return results[0] === 'ok'
  }

  async steer(
    act: { kind: 'run-now' | 'unhold' } | { kind: 'hold'; reason: string; by: string; for: number },
  ): Promise<boolean> {
    const { results } = await this.store.steer({ what: 'lanes', ids: [LANE], act })
    return results[0] === 'ok'
  }
}

type Act = (walk: Walk, chance: number) => Promise<void>

function pick<T>(list: readonly [T, ...T[]], chance: number): T {
  return list[chance % list.length] ?? list[0]
}

const ACTS: Readonly<Record<string, Act>> = {
  place: (walk, chance) =>
    walk.step('place', async () => void (await walk.append(pick([0, 50, 200], chance), chance % 2 === 0))),
  claim: (walk, chance) => walk.claim(chance % 2 === 0),
  time: (walk, chance) =>
    walk.step('time', async () => walk.clock.advance(pick([1, 60, 300, LEASE, 3 * LEASE], chance))),
  // Four lapses in a row are too rare to wait for.
  lapses: async (walk, chance) => {
    for (let lapse = 0; lapse < 4; lapse++) {
      await walk.claim(chance % 2 === 0)
      await walk.step('time', async () => walk.clock.advance(LEASE))
    }
  },
  // One dead letter, then one that blocks, then a retry of the first: also too rare.
  deadLetters: async (walk, chance) => {
    for (const block of [false, true]) {
      await walk.step('place', async () => void (await walk.append(0, false)))
      await walk.claim(false)
      await walk.step('dead', () => walk.settle({ kind: 'dead', reason: 'test', block }, 'window'))
    }
    await walk.step('retry-dead-letter', () => walk.deadLetter('retry', chance))
    await walk.claim(false)
  },
  done: (walk, chance) => walk.step('done', () => walk.settle({ kind: 'done' }, pick(['window', 'requeue'], chance))),
  retry: (walk) => walk.step('retry', () => walk.settle({ kind: 'retry', after: 100 }, 'window')),
  snoozed: (walk) => walk.step('snoozed', () => walk.settle({ kind: 'snoozed', after: 100, state64: '' }, 'window')),
  cancelled: (walk) => walk.step('cancelled', () => walk.settle({ kind: 'cancelled' }, 'window')),
  dead: (walk, chance) =>
    walk.step('dead', () => walk.settle({ kind: 'dead', reason: 'test', block: chance % 2 === 0 }, 'window')),
  runNow: (walk) => walk.step('run-now', () => walk.steer({ kind: 'run-now' })),
  hold: (walk, chance) =>
    walk.step('hold', () => walk.steer({ kind: 'hold', reason: 'r', by: 'b', for: pick([40, 100, Infinity], chance) })),
  unhold: (walk) => walk.step('unhold', () => walk.steer({ kind: 'unhold' })),
  retryDeadLetter: (walk, chance) => walk.step('retry-dead-letter', () => walk.deadLetter('retry', chance)),
  dropDeadLetter: (walk, chance) => walk.step('drop-dead-letter', () => walk.deadLetter('drop', chance)),
}

const OFTEN = ['place', 'place', 'claim', 'claim', 'claim', 'time', 'time', 'dead', 'retryDeadLetter', 'unhold']
const step = fc.record({ act: fc.constantFrom(...Object.keys(ACTS), ...OFTEN), chance: fc.nat(59) })

describe('the table of lane states', () => {
  it('has every arrow that a lane takes', async () => {
    const walks = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const walk = new Walk()
      for (const { act, chance } of steps) await ACTS[act]?.(walk, chance)
    })
    // Enough steps to take every arrow, which the next test checks.
    await fc.assert(walks, { numRuns: 5_000, seed: 7 })
  })

  it('has no arrow that no lane takes', () => {
    const listed = Object.entries(LANE_TRANSITIONS).flatMap(([transition, arrows]) =>
      Object.entries(arrows).flatMap(([from, to]) => to.map((state) => `${transition}: ${from} → ${state}`)),
    )
    expect(listed.filter((arrow) => !seen.has(arrow))).toEqual([])
  })

  afterAll(() => seen.clear())
})
