// Shared by the tests of stats: an emitter, a store and a clock that the test moves, without an app around them.
import { onTestFinished } from 'vitest'
import type { RunOutcome } from '../../src/model/settle.ts'
import { Emitter } from '../../src/observe/emitter.ts'
import { StatsRecorder } from '../../src/observe/stats/recorder.ts'
import { emitWithFacts, type RunFacts } from '../../src/observe/stats/run-facts.ts'
import { readStats, type StatsResult, type StatsOptions } from '../../src/admin/stats.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { IdleTracker } from '../../src/testing/idle-tracker.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export const STORES = ['memory:', 'sqlite::memory:'] as const
export const START = Date.UTC(2026, 0, 1)
export const MINUTE = 60_000

/** One process that records stats. */
export interface Counting {
  readonly events: Emitter
  readonly recorder: StatsRecorder
  receive(source: string, type: string, flows?: readonly string[]): void
  end(flow: string, outcome: RunOutcome, ended?: Ended): void
  stats(asked?: StatsOptions): Promise<StatsResult>
}

interface Ended {
  readonly source?: string
  readonly type?: string
  /** How long ago each event arrived. */
  readonly ago?: readonly number[]
  readonly tries?: number
  readonly rank?: 0 | 1
  /** Whether the run is a dead letter that is retried. */
  readonly deadLetter?: boolean
}

export interface Scene {
  readonly clock: VirtualClock
  readonly store: Store
  process(store?: Store): Counting
  /** Advances the clock, and waits for all consequences. */
  advance(by: number): Promise<void>
}

export async function scene(address: string): Promise<Scene> {
  const clock = new VirtualClock(START)
  const quiet = new IdleTracker(clock)
  const opened = await openStore(address, { clock })
  onTestFinished(() => opened.close())
  const store = clock.watch(opened)
  return {
    clock,
    store,
    process: (its = store) => counting(clock, its),
    advance: (by) => quiet.advance(by),
  }
}

function counting(clock: VirtualClock, store: Store): Counting {
  const events = new Emitter()
  const now = (): number => clock.now()
  const open = async (): Promise<Store> => store
  const recorder = new StatsRecorder({ events, clock, now, store: open })
  return {
    events,
    recorder,
    receive: (source, type, flows = []) =>
      events.emit('event.received', { event: 'e', source, type, lanes: flows.length, flows }),
    end: (flow, outcome, ended) => emitEnd(events, factsOf(flow, outcome, { now: now(), ...ended })),
    stats: (asked) => readStats({ store: open, recorder, now }, asked),
  }
}

function factsOf(flow: string, outcome: RunOutcome, ended: Ended & { readonly now: number }): RunFacts {
  const { source = 'shop', type = 'order.paid', ago = [0], tries = 0, rank = 0, deadLetter = false, now } = ended
  const events = ago.map((ms, n) => ({ id: `e${n}`, source, type, arrived: now - ms }))
  return { lease: { lane: 'l', flow, tries, lapses: 0, rank, isDeadLetter: deadLetter, events }, outcome }
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
      return emitWithFacts(events.emit, 'run.dropped', { ...told, reason: '', counts: {} }, facts)
    case 'done':
    case 'snoozed':
    case 'released':
    case 'cancelled':
    case undefined:
      return emitWithFacts(events.emit, 'run.done', { ...told, counts: {} }, facts)
  }
}
