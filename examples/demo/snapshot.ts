// One moment of the demo as plain data: what the store says of the lanes, and what the ledger adds.
import { NEVER, type Millis } from 'sluice'
import type { Lane, Lanes } from './census.ts'
import type { Ledger } from './ledger.ts'

export type RowState = 'idle' | 'waiting' | 'ready' | 'running' | 'retrying'

export interface Row {
  readonly user: string
  readonly state: RowState
  /** Events that wait for a run, without those of the run in progress. */
  readonly events: number
  /** Until the next turn is due; 0 when it is, undefined when nothing is to come. */
  readonly dueIn: Millis | undefined
  /** Place among the lanes that are ready, from 1. */
  readonly position: number | undefined
  readonly runs: number
  readonly last: string
}

export interface Snapshot {
  readonly elapsed: Millis
  /** How long it goes on in all; undefined for ever. */
  readonly until: Millis | undefined
  readonly received: number
  readonly runs: number
  readonly eventsPerRun: number
  readonly callsNow: number
  readonly callsMost: number
  readonly dead: number
  readonly rows: readonly Row[]
}

export interface Moments {
  readonly elapsed: Millis
  readonly until: Millis | undefined
  readonly monotonic: Millis
  /** Shown from the beginning; others once they have something. */
  readonly users: readonly string[]
}

export function snapshot(seen: Lanes, ledger: Ledger, moments: Moments): Snapshot {
  const line = inLine(seen)
  const byUser = new Map(seen.lanes.map((lane) => [lane.key, lane]))
  return {
    elapsed: moments.elapsed,
    until: moments.until,
    received: ledger.received,
    runs: ledger.runs,
    eventsPerRun: ledger.runs === 0 ? 0 : ledger.handled / ledger.runs,
    callsNow: ledger.calls.within(moments.monotonic),
    callsMost: ledger.calls.most,
    dead: ledger.dead,
    rows: [...new Set([...moments.users, ...ledger.users, ...byUser.keys()])].map((user) => {
      const lane = byUser.get(user)
      const past = ledger.past(user)
      const position = lane === undefined ? -1 : line.indexOf(lane)
      return {
        user,
        state: stateOf(lane, seen.now),
        events: lane === undefined ? 0 : eventsOf(lane, seen.now),
        dueIn: lane === undefined ? undefined : dueIn(lane, seen.now),
        position: position === -1 ? undefined : position + 1,
        runs: past.runs,
        last: past.last,
      }
    }),
  }
}

/** The lanes whose turn is due, in the order in which they will be served (L5). */
export function inLine({ lanes, now }: Lanes): readonly Lane[] {
  return lanes
    .filter((lane) => !isRunning(lane, now) && lane.due <= now)
    .toSorted((one, other) => one.due - other.due || one.ticket - other.ticket)
}

/** What the next run has to do with, or, beside a run in progress, what came after its claim. */
export function eventsOf(lane: Lane, now: Millis): number {
  return isRunning(lane, now) ? lane.waiting : lane.waiting + (lane.run?.events ?? 0)
}

function isRunning({ run }: Lane, now: Millis): boolean {
  return run !== undefined && run.state === 'running' && run.until > now
}

function stateOf(lane: Lane | undefined, now: Millis): RowState {
  if (lane === undefined) return 'idle'
  if (isRunning(lane, now)) return 'running'
  if (lane.run?.failed === true) return 'retrying'
  return lane.due <= now ? 'ready' : 'waiting'
}

function dueIn(lane: Lane, now: Millis): Millis | undefined {
  return isRunning(lane, now) || lane.due >= NEVER ? undefined : Math.max(0, lane.due - now)
}
