// What the tests of figures share: an emitter, a store and a clock that moves when told, without an app around them.
import { onTestFinished } from 'vitest'
import type { Outcome } from '../../src/model/settle.ts'
import { Emitter } from '../../src/observe/events.ts'
import { Tallies } from '../../src/observe/tallies.ts'
import { emitWithFacts, type RunFacts } from '../../src/observe/tallies-facts.ts'
import { stats, type StatsAnswer, type StatsAsked } from '../../src/operate/stats.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { Quiet } from '../../src/testing/quiet.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export const STORES = ['memory:', 'sqlite::memory:'] as const
export const START = Date.UTC(2026, 0, 1)
export const MINUTE = 60_000

/** One process that counts. */
export interface Counting {
  readonly events: Emitter
  readonly tallies: Tallies
  receive(source: string, type: string, flows?: readonly string[]): void
  end(flow: string, outcome: Outcome, ended?: Ended): void
  stats(asked?: StatsAsked): Promise<StatsAnswer>
}

interface Ended {
  readonly source?: string
  readonly type?: string
  /** How long ago each event came. */
  readonly ago?: readonly number[]
  readonly tries?: number
  readonly rank?: 0 | 1
  /** Of a dead letter that is tried again. */
  readonly letter?: boolean
}

export interface Scene {
  readonly clock: VirtualClock
  readonly store: Store
  process(store?: Store): Counting
  /** Lets time pass, and all that comes of it happen. */
  advance(by: number): Promise<void>
}

export async function scene(address: string): Promise<Scene> {
  const clock = new VirtualClock(START)
  const quiet = new Quiet()
  const opened = await openStore(address, { clock })
  onTestFinished(() => opened.close())
  const store = quiet.watched(opened)
  return {
    clock,
    store,
    process: (its = store) => counting(clock, its),
    advance: (by) => quiet.pass(clock, by),
  }
}

function counting(clock: VirtualClock, store: Store): Counting {
  const events = new Emitter()
  const now = (): number => clock.now()
  const open = async (): Promise<Store> => store
  const tallies = new Tallies({ events, clock, now, store: open })
  return {
    events,
    tallies,
    receive: (source, type, flows = []) =>
      events.emit('event.received', { event: 'e', source, type, lanes: flows.length, flows }),
    end: (flow, outcome, ended) => emitEnd(events, factsOf(flow, outcome, { now: now(), ...ended })),
    stats: (asked) => stats({ store: open, tallies, now }, asked),
  }
}

function factsOf(flow: string, outcome: Outcome, ended: Ended & { readonly now: number }): RunFacts {
  const { source = 'shop', type = 'order.paid', ago = [0], tries = 0, rank = 0, letter = false, now } = ended
  const events = ago.map((ms, n) => ({ id: `e${n}`, source, type, arrived: now - ms }))
  return { lease: { lane: 'l', flow, tries, lapses: 0, rank, letter, events }, outcome }
}

/** As the engine does. */
export function emitEnd(events: Emitter, facts: RunFacts): void {
  const { lease, outcome } = facts
  const { flow, tries } = lease
  const told = { flow, key: 'k', tenant: '', run: 'r', attempt: tries + 1, events: lease.events.length, ms: 0 }
  const error = 'no'
  switch (outcome?.kind) {
    case 'retry':
      return emitWithFacts(events.emit, 'run.retry', { ...told, error, after: 0 }, facts)
    case 'dead':
      return emitWithFacts(events.emit, 'run.dead', { ...told, error }, facts)
    case 'partial':
      return emitWithFacts(events.emit, 'run.partial', { ...told, error, failed: 1 }, facts)
    case 'dropped':
      return emitWithFacts(events.emit, 'run.dropped', { ...told, reason: '' }, facts)
    case 'done':
    case 'again':
    case 'released':
    case 'cancelled':
    case undefined:
      return emitWithFacts(events.emit, 'run.done', { ...told, counts: {} }, facts)
  }
}
