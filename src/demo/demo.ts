// The demo itself: users, worker and watcher on one store and one clock, until its time is up or somebody stops it.
import type { Clock, Millis, Store } from '../index.ts'
import { deadSince, lanesOf, waitingIn } from './census.ts'
import { chance } from './chance.ts'
import type { Facts } from './checks.ts'
import { Ledger } from './ledger.ts'
import type { Life, Tell } from './life.ts'
import type { Screen } from './screen.ts'
import { sleep } from './sleep.ts'
import { eventsOf, inLine, snapshot, type Snapshot } from './snapshot.ts'
import { simulateUsers } from './users.ts'
import { work } from './worker.ts'

export interface DemoParts {
  readonly store: Store
  readonly clock: Clock
  readonly screen: Screen
  readonly seed: number
  /** A name that no other process on this store has. */
  readonly process: string
  /** Undefined: until it is stopped. */
  readonly lasts: Millis | undefined
  readonly stop: AbortSignal
}

export interface Outcome {
  readonly facts: Facts
  readonly last: Snapshot
  readonly retries: number
  readonly deadRuns: number
}

const FRAME: Millis = 100

export async function runDemo(parts: DemoParts): Promise<Outcome> {
  const { store, clock } = parts
  const before = await lanesOf(store)
  const ledger = new Ledger(before.now)
  const began = clock.monotonic()
  const look = async (): Promise<{ readonly seen: typeof before; readonly shot: Snapshot }> => {
    const seen = await lanesOf(store)
    const monotonic = clock.monotonic()
    return { seen, shot: snapshot(seen, ledger, { elapsed: monotonic - began, until: parts.lasts, monotonic }) }
  }

  const told = new Map<string, Millis>()
  const tell: Tell = (life) => {
    // Nothing is served before it is due: if the watcher has not seen it yet, it is told now.
    if (life.kind === 'claimed') tellDue(life.user, life.due, life.events.length, 1)
    ledger.note(life)
    parts.screen.news(life, before.now)
  }
  const tellDue = (user: string, due: Millis, events: number, position: number): void => {
    if (told.get(user) === due) return
    told.set(user, due)
    const life: Life = { kind: 'due', at: due, user, events, position }
    ledger.note(life)
    parts.screen.news(life, before.now)
  }
  const watch = async (stop: AbortSignal): Promise<void> => {
    do {
      const { seen, shot } = await look()
      for (const [at, lane] of inLine(seen).entries()) tellDue(lane.key, lane.due, eventsOf(lane, seen.now), at + 1)
      parts.screen.show(shot)
    } while (await sleep(clock, FRAME, stop))
  }

  const luck = chance(parts.seed)
  await together(parts, [
    (stop) => simulateUsers({ ...parts, tell }, stop),
    (stop) => work({ ...parts, luck, tell }, stop),
    watch,
  ])
  const { seen, shot } = await look()
  return {
    facts: {
      ...factsOf(ledger),
      waitedBefore: waitingIn(before.lanes),
      waiting: waitingIn(seen.lanes),
      dead: await deadSince(store, before.now),
    },
    last: shot,
    retries: ledger.retries,
    deadRuns: ledger.dead,
  }
}

function factsOf(ledger: Ledger): Omit<Facts, 'waitedBefore' | 'waiting' | 'dead'> {
  const { received, handled, strays, claims, overlaps, mostAtOnce, inversions, calls } = ledger
  return {
    received,
    handled,
    strays,
    claims,
    overlaps,
    mostAtOnce,
    inversions,
    calls: calls.total,
    mostCalls: calls.most,
  }
}

/** Runs all until the time is up, the signal comes or one of them fails; then stops all, and waits for all. */
async function together(
  { clock, lasts, stop }: DemoParts,
  tasks: readonly ((stop: AbortSignal) => Promise<void>)[],
): Promise<void> {
  const over = new AbortController()
  const end = (): void => over.abort()
  const signal = AbortSignal.any([stop, over.signal])
  const disarm = lasts === undefined ? () => {} : clock.after(lasts, end)
  const running = tasks.map((task) => task(signal).finally(end))
  await Promise.allSettled(running)
  disarm()
  await Promise.all(running)
}
