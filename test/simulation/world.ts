// The world of one history: the store under test, its clock, the processes that call it, and the two checkers of its
// replies (the reference model, and the ledger, which trusts nothing but the replies).
import { createHash } from 'node:crypto'
import { computeIdentity } from '../../src/model/identity.ts'
import type {
  AppendCall,
  LeasedUnroutedEvent,
  LeasedRun,
  EventToStore,
  Placement,
  PlaceCall,
  Reply,
  Store,
  SettleAndClaimCall,
} from '../../src/store/contract/index.ts'
import type { EventPick, Setup } from './commands.ts'
import { clockShows, newLedger, type Ledger } from './ledger/state.ts'
import { newModel, type Model } from './model/state.ts'
import { FLOWS, START, placeIn, tenantOf, type FlowSettings } from './settings.ts'
import { demand } from './violation.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** A call that is about to be sent, with the check of its reply. */
export interface Issued {
  readonly label: string
  readonly send: () => Promise<unknown>
  readonly check: (reply: unknown) => void | Promise<void>
}

/** A working process: it counts its requests, and knows its leases. */
export interface Process {
  name: string
  incarnation: number
  request: number
  held: LeasedRun[]
  lastTurn: SettleAndClaimCall | undefined
}

export interface Ground {
  readonly store: Store
  /** Closes the store like a crash, and opens it again from disk. Undefined if nothing is on disk. */
  readonly reopen: (() => Promise<Store>) | undefined
  readonly clock: VirtualClock
}

export class World {
  store: Store
  readonly reopen: (() => Promise<Store>) | undefined
  readonly clock: VirtualClock
  readonly model: Model
  readonly ledger: Ledger
  readonly flows: readonly FlowSettings[]
  readonly keys: number
  readonly processes: readonly Process[]
  /** Leases that were settled, lapsed or forgotten: their tokens must be invalid. */
  spent: LeasedRun[] = []
  events: EventToStore[] = []
  unrouted: LeasedUnroutedEvent[] = []
  lastAppend: AppendCall | undefined
  /** Removed by a purge or by age. */
  recordsWereRemoved = false
  lastPlace: PlaceCall | undefined
  /** How often a case was really reached: a history that never reaches it proves nothing about it. */
  readonly reached = new Map<string, number>()
  readonly runIds = new Set<string>()
  /** The calls and replies, for readers of a counterexample. */
  readonly log: string[] = []
  #events = 0
  #trace = createHash('sha1')

  constructor(ground: Ground, setup: Setup) {
    this.store = ground.store
    this.reopen = ground.reopen
    this.clock = ground.clock
    this.model = newModel(START)
    this.ledger = newLedger()
    const chosen = [...new Set(setup.flows)].flatMap((index) => FLOWS[index] ?? [])
    this.flows = chosen
    this.keys = setup.keys
    this.processes = [0, 1, 2].map((n) => ({
      name: `process-${n}`,
      incarnation: 0,
      request: 0,
      held: [],
      lastTurn: undefined,
    }))
  }

  flow(index: number): FlowSettings {
    const flow = this.flows[index % this.flows.length]
    demand(flow !== undefined, 'a history has at least one flow')
    return flow
  }

  process(index: number): Process {
    const process = this.processes[index % this.processes.length]
    demand(process !== undefined, 'there are three processes')
    return process
  }

  /** A process that has a lease, if any has. */
  holder(index: number): Process {
    const holders = this.processes.filter((process) => process.held.length > 0)
    return holders[index % holders.length] ?? this.process(index)
  }

  reach(what: string, times = 1): void {
    if (times > 0) this.reached.set(what, (this.reached.get(what) ?? 0) + times)
  }

  /** Must be the same each time a seed is run, so it leaves out ids that the store draws at random. */
  note(line: string): void {
    this.#trace.update(`${line}\n`)
    this.log.push(`    → ${line}`)
  }

  trace(): string {
    return this.#trace.copy().digest('hex')
  }

  /** Every reply has the store's time and the epoch of its routes. */
  checkReply(reply: Reply): void {
    this.model.now = this.clock.now()
    clockShows(this.ledger, reply.now)
    demand(reply.now === this.clock.now(), `a reply says ${reply.now} and the store's clock ${this.clock.now()}`)
    demand(reply.routes === this.model.routes, `a reply has routes ${reply.routes} instead of ${this.model.routes}`)
  }

  newEvent(pick: EventPick): EventToStore {
    const key = pick.key % this.keys
    const flow = this.flow(pick.flow)
    const next = this.flow(pick.flow + 1)
    const sibling = key ^ 1
    const tenant = tenantOf(key)
    const places: Placement[] = [placeIn(flow, key, pick.window)]
    if (pick.also % 2 === 1 && next !== flow) places.push(placeIn(next, key, pick.window))
    if (pick.also >= 2 && sibling < this.keys && tenantOf(sibling) === tenant)
      places.push(placeIn(flow, sibling, pick.window))
    if (pick.also === 3) places.push(placeIn(flow, key, pick.window))
    const n = this.#events++
    const fault = n % 2 === 0 ? ('key-failed' as const) : ('schema-failed' as const)
    const reason = pick.unrouted === 2 ? fault : ('unknown-flow' as const)
    const unrouted = pick.unrouted === 0 ? [] : [{ flow: next.name, reason, error: `no ${n}` }]
    return {
      ...this.bareEvent(tenant, `body${'-'.repeat(pick.size)}`),
      dedupeFor: pick.forgetSoon ? 200 : 1_000_000,
      placements: pick.unrouted === 1 ? [] : places,
      unrouted,
    }
  }

  /** An event without placements. */
  bareEvent(tenant: string, body: string): EventToStore {
    const id = `event${String(this.#events++).padStart(21, '0')}`
    return {
      id,
      source: 'simulation',
      type: 'thing.happened',
      time: START,
      tenant,
      subject: '',
      attributes: '',
      body: new TextEncoder().encode(body),
      identity: computeIdentity('simulation', tenant, id),
      dedupeFor: 1_000_000,
      request: new Uint8Array(),
      placements: [],
      unrouted: [],
    }
  }
}
