// The commands of a history. A command is a small record of small numbers. Its meaning depends on the state in which it runs
// (an index counts modulo the number of candidates), so any shorter list is a history too, and shrinking works.
import fc from 'fast-check'
import { TICK } from './settings.ts'

export interface EventPick {
  readonly flow: number
  readonly key: number
  readonly window: number
  readonly size: number
  /** Further lanes of the event: 0 none, 1 the key in the next flow, 2 the tenant's other key, 3 both, and the first again. */
  readonly also: number
  /** 0 placed, 1 unrouted instead, 2 placed and unrouted. */
  readonly unrouted: number
  readonly forgetSoon: boolean
}

export interface SettlePick {
  readonly lease: number
  /** Uses a lease that is no longer held: a stale or used token. */
  readonly stale: boolean
  readonly outcome: OutcomeKind
  /** The delay for runs that wait, and the events that a partial outcome names. */
  readonly number: number
  readonly publish: boolean
}

const OUTCOMES = ['done', 'retry', 'snoozed', 'dead', 'dropped', 'cancelled', 'released', 'partial'] as const
type OutcomeKind = (typeof OUTCOMES)[number]

export interface ClaimPick {
  readonly flow: number
  readonly slots: number
  readonly failing: number
  readonly suspects: number
}

export type Command =
  | { readonly kind: 'append'; readonly events: readonly EventPick[]; readonly oldRoutes: boolean }
  | { readonly kind: 'duplicate'; readonly event: number; readonly otherBody: boolean; readonly twice: boolean }
  | { readonly kind: 'repeat'; readonly what: 'append' | 'turn' | 'place' | 'older-turn'; readonly who: number }
  | { readonly kind: 'advance'; readonly by: number }
  | { readonly kind: 'jump'; readonly by: number }
  | {
      readonly kind: 'turn'
      readonly who: number
      readonly settles: readonly SettlePick[]
      readonly claims: readonly ClaimPick[]
      readonly smallBudget: boolean
      readonly oldRoutes: boolean
    }
  /** A whole step of a simple worker: all of its runs end in the same way, and it claims again. */
  | { readonly kind: 'work'; readonly who: number; readonly outcome: OutcomeKind; readonly claim: ClaimPick }
  | {
      readonly kind: 'renew'
      readonly who: number
      readonly lease: number
      readonly commit: boolean
      readonly stale: boolean
    }
  /** Beyond the end of every lease, without a call of the store. */
  | { readonly kind: 'stall' }
  | { readonly kind: 'crash'; readonly who: number }
  /** A lane that exists; the last number means a lane that never had an event. */
  | { readonly kind: 'steer-lane'; readonly lane: number; readonly act: LaneAct; readonly for: number }
  | { readonly kind: 'steer-dead'; readonly deadLetter: number; readonly act: 'retry' | 'drop' | 'unblock' }
  | { readonly kind: 'steer-unrouted'; readonly entry: number; readonly act: 'retry' | 'drop' }
  | { readonly kind: 'steer-flow'; readonly flow: number; readonly pause: boolean }
  | {
      readonly kind: 'purge'
      readonly what: 'lane' | 'tenant' | 'event'
      readonly pick: number
      readonly atOnce: boolean
    }
  | { readonly kind: 'unrouted'; readonly n: number; readonly fewer: boolean }
  | { readonly kind: 'place-unrouted'; readonly entry: number; readonly key: number; readonly fails: boolean }
  | { readonly kind: 'replay'; readonly event: number; readonly replay: number; readonly n: number }
  | { readonly kind: 'raise-routes' }
  | { readonly kind: 'permits'; readonly who: number; readonly name: number; readonly want: number }
  | { readonly kind: 'maintain'; readonly keepNothing: boolean }
  | { readonly kind: 'inspect' }
  | { readonly kind: 'reopen' }
  | { readonly kind: 'both'; readonly first: Command; readonly second: Command }
  /** Several plain commands in a row that are unlikely to occur by chance. */
  | {
      readonly kind: 'row'
      readonly what: RowKind
      readonly flow: number
      readonly key: number
      readonly times: number
    }

/** `poison`: claimed and never heard of again. `busy`: an event, and its run. `interrupt`: an event during a run. */
type RowKind = 'poison' | 'busy' | 'interrupt'

type LaneAct = 'run-now' | 'cancel' | 'hold' | 'unhold' | 'drop'

export interface Setup {
  /** Indices of the flows that this history uses; the first one is used most. */
  readonly flows: readonly number[]
  readonly keys: number
}

export interface History {
  readonly setup: Setup
  readonly commands: readonly Command[]
}

const small = fc.nat({ max: 7 })
const rarely = (chance: number): fc.Arbitrary<boolean> =>
  fc.oneof({ arbitrary: fc.constant(false), weight: chance }, { arbitrary: fc.constant(true), weight: 1 })
const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 6 }, { arbitrary: fc.constantFrom(...others, usual), weight: 2 })
const of = <K extends string>(kind: K): { kind: fc.Arbitrary<K> } => ({ kind: fc.constant(kind) })

const eventPick: fc.Arbitrary<EventPick> = fc.record({
  flow: mostly(0, 1, 2),
  key: fc.nat({ max: 3 }),
  window: fc.nat({ max: 3 }),
  size: fc.nat({ max: 4 }),
  also: mostly(0, 1, 2, 3),
  unrouted: mostly(0, 0, 0, 1, 2),
  forgetSoon: rarely(10),
})

const outcome = (usual: readonly OutcomeKind[]): fc.Arbitrary<OutcomeKind> =>
  fc.oneof({ arbitrary: fc.constantFrom(...usual), weight: 3 }, { arbitrary: fc.constantFrom(...OUTCOMES), weight: 1 })

const claimPick: fc.Arbitrary<ClaimPick> = fc.record({
  flow: mostly(0, 1, 2),
  slots: mostly(1, 2, 3),
  failing: mostly(1, 0),
  suspects: mostly(1, 0),
})

const append = fc.record({
  ...of('append'),
  events: fc.array(eventPick, { minLength: 1, maxLength: 4 }),
  oldRoutes: rarely(30),
})
const advance = fc.record({
  ...of('advance'),
  by: fc.constantFrom(0, 1, TICK, TICK, 2 * TICK, 2 * TICK - 1, 3 * TICK, 4 * TICK, 6 * TICK, 1000),
})
const jump = fc.record({ ...of('jump'), by: fc.constantFrom(-TICK, -3 * TICK, -1000, 3 * TICK, 1000) })
const settlePick = (usual: readonly OutcomeKind[]): fc.Arbitrary<SettlePick> =>
  fc.record({ lease: small, stale: rarely(8), outcome: outcome(usual), number: small, publish: rarely(12) })
const turn = (usual: readonly OutcomeKind[]): fc.Arbitrary<Command> =>
  fc.record({
    ...of('turn'),
    who: fc.nat({ max: 2 }),
    settles: fc.array(settlePick(usual), { maxLength: 2 }),
    claims: fc.array(claimPick, { maxLength: 2 }),
    smallBudget: rarely(12),
    oldRoutes: rarely(10),
  })
const work = (usual: readonly OutcomeKind[]): fc.Arbitrary<Command> =>
  fc.record({ ...of('work'), who: fc.nat({ max: 2 }), outcome: outcome(usual), claim: claimPick })
const renew = fc.record({
  ...of('renew'),
  who: fc.nat({ max: 2 }),
  lease: small,
  commit: fc.boolean(),
  stale: rarely(6),
})
const steerLane = (acts: readonly LaneAct[]): fc.Arbitrary<Command> =>
  fc.record({
    ...of('steer-lane'),
    lane: small,
    act: fc.constantFrom(...acts),
    for: fc.constantFrom(TICK, 3 * TICK, 6 * TICK, -1),
  })
const steerDead = fc.record({
  ...of('steer-dead'),
  deadLetter: small,
  act: fc.constantFrom('retry' as const, 'retry' as const, 'drop' as const, 'unblock' as const),
})
const replay = fc.record({ ...of('replay'), event: small, replay: fc.nat({ max: 3 }), n: fc.nat({ max: 2 }) })
const anyOutcome: readonly OutcomeKind[] = ['done', 'retry', 'dead', 'cancelled', 'partial']

const allSteers: readonly LaneAct[] = ['run-now', 'cancel', 'hold', 'unhold', 'drop']
const rare: readonly fc.WeightedArbitrary<Command>[] = [
  {
    arbitrary: fc.record({ ...of('duplicate'), event: small, otherBody: fc.boolean(), twice: fc.boolean() }),
    weight: 3,
  },
  {
    arbitrary: fc.record({
      ...of('repeat'),
      what: fc.constantFrom(
        'append' as const,
        'turn' as const,
        'turn' as const,
        'place' as const,
        'older-turn' as const,
      ),
      who: fc.nat({ max: 2 }),
    }),
    weight: 4,
  },
  { arbitrary: jump, weight: 1 },
  { arbitrary: renew, weight: 4 },
  { arbitrary: fc.record(of('stall')), weight: 2 },
  { arbitrary: fc.record({ ...of('crash'), who: fc.nat({ max: 2 }) }), weight: 1 },
  { arbitrary: steerLane(allSteers), weight: 4 },
  { arbitrary: steerDead, weight: 3 },
  {
    arbitrary: fc.record({ ...of('steer-flow'), flow: fc.nat({ max: 2 }), pause: fc.boolean() }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      ...of('purge'),
      what: fc.constantFrom('lane' as const, 'tenant' as const, 'event' as const, 'event' as const),
      pick: small,
      atOnce: fc.boolean(),
    }),
    weight: 2,
  },
  { arbitrary: fc.record({ ...of('unrouted'), n: fc.integer({ min: 1, max: 3 }), fewer: rarely(4) }), weight: 2 },
  {
    arbitrary: fc.record({ ...of('place-unrouted'), entry: small, key: fc.nat({ max: 3 }), fails: rarely(3) }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      ...of('steer-unrouted'),
      entry: small,
      act: fc.constantFrom('retry' as const, 'drop' as const),
    }),
    weight: 1,
  },
  { arbitrary: replay, weight: 2 },
  { arbitrary: fc.record(of('raise-routes')), weight: 1 },
  {
    arbitrary: fc.record({ ...of('permits'), who: fc.nat({ max: 2 }), name: fc.nat({ max: 1 }), want: small }),
    weight: 1,
  },
  { arbitrary: fc.record({ ...of('maintain'), keepNothing: fc.boolean() }), weight: 1 },
  { arbitrary: fc.record(of('inspect')), weight: 2 },
  { arbitrary: fc.record(of('reopen')), weight: 1 },
]

type Weighted = fc.WeightedArbitrary<Command>

const row = (what: RowKind, most: number): fc.Arbitrary<Command> =>
  fc.record({
    ...of('row'),
    what: fc.constant(what),
    flow: mostly(0, 1, 2),
    key: fc.nat({ max: 3 }),
    times: fc.integer({ min: 1, max: most }),
  })

/** A profile prefers the commands of its subject: deep states (four lapses, nine claims) need the same few commands often. */
function profile(usual: readonly OutcomeKind[], emphasis: readonly Weighted[]): fc.Arbitrary<Command> {
  const base: Weighted[] = [
    { arbitrary: append, weight: 22 },
    { arbitrary: advance, weight: 16 },
    { arbitrary: turn(usual), weight: 24 },
    { arbitrary: work(usual), weight: 16 },
    ...rare,
    ...emphasis,
  ]
  const single = fc.oneof(...base)
  const both = fc.record({ ...of('both'), first: single, second: single })
  return fc.oneof({ arbitrary: single, weight: 24 }, { arbitrary: both, weight: 1 })
}

interface Profile {
  readonly commands: fc.Arbitrary<Command>
  /** The flows that it is about; every other history has any flows. */
  readonly flows: readonly string[]
}

const PROFILES: readonly Profile[] = [
  { commands: profile(anyOutcome, []), flows: [] },
  {
    commands: profile(
      ['done'],
      [
        { arbitrary: replay, weight: 8 },
        { arbitrary: row('busy', 9), weight: 6 },
      ],
    ),
    flows: ['plain', 'singles', 'pairs', 'requeue'],
  },
  {
    commands: profile(
      ['done', 'retry'],
      [
        { arbitrary: fc.record(of('stall')), weight: 12 },
        { arbitrary: row('poison', 4), weight: 8 },
      ],
    ),
    flows: ['plain', 'blocking', 'shared', 'cancel'],
  },
  {
    commands: profile(['dead', 'partial', 'retry'], [{ arbitrary: steerDead, weight: 16 }]),
    flows: ['blocking', 'plain', 'pairs'],
  },
  {
    commands: profile(
      ['cancelled', 'cancelled', 'done'],
      [
        { arbitrary: steerLane(['cancel', 'run-now', 'drop']), weight: 6 },
        { arbitrary: renew, weight: 6 },
        { arbitrary: row('interrupt', 2), weight: 14 },
      ],
    ),
    flows: ['cancel', 'cancel-pairs', 'take-first'],
  },
  { commands: profile(['snoozed', 'released', 'retry'], [{ arbitrary: steerLane(allSteers), weight: 8 }]), flows: [] },
]

function setupOf(about: readonly string[], flows: readonly string[]): fc.Arbitrary<Setup> {
  const any = fc.array(fc.nat({ max: flows.length - 1 }), { minLength: 1, maxLength: 3 })
  const chosen = about.map((name) => flows.indexOf(name))
  const keys = fc.integer({ min: 1, max: 4 })
  if (chosen.length === 0) return fc.record({ flows: any, keys })
  const some = fc.array(fc.constantFrom(...chosen), { minLength: 1, maxLength: 2 })
  return fc.record({ flows: fc.oneof(some, any), keys })
}

/** Generates histories of at most the given number of commands, over the named flows. */
export function histories(steps: number, flows: readonly string[]): fc.Arbitrary<History> {
  const kinds = PROFILES.map((one) => {
    const commands = fc.array(one.commands, { minLength: 1, maxLength: steps, size: 'max' })
    return fc.record({ setup: setupOf(one.flows, flows), commands })
  })
  return fc.oneof(...kinds)
}
