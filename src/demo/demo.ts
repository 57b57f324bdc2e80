// The demo itself: users, worker and watcher on one store and one clock, until its time is up or somebody stops it.
import type { Clock, Millis, Store } from '../index.ts'
import { deadSince, lanesOf, waitingIn, type Lanes } from './census.ts'
import { chance } from './chance.ts'
import type { Facts } from './checks.ts'
import { Ledger } from './ledger.ts'
import { News } from './news.ts'
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
  readonly lost: number
}

const FRAME: Millis = 100

export async function runDemo(parts: DemoParts): Promise<Outcome> {
  const { store, clock, screen } = parts
  const before = await lanesOf(store)
  const began = clock.monotonic()
  const ledger = new Ledger(before.now)
  const news = new News((life) => {
    ledger.note(life)
    screen.news(life, before.now)
  })
  const shot = (seen: Lanes): Snapshot => {
    const monotonic = clock.monotonic()
    return snapshot(seen, ledger, { elapsed: monotonic - began, until: parts.lasts, monotonic })
  }
  const watch = async (stop: AbortSignal): Promise<void> => {
    do {
      const seen = await lanesOf(store)
      for (const [at, lane] of inLine(seen).entries()) {
        news.due(lane.key, lane.due, { events: eventsOf(lane, seen.now), position: at + 1 })
      }
      screen.show(shot(seen))
    } while (await sleep(clock, FRAME, stop))
  }

  await together(parts, [
    (stop) => simulateUsers({ ...parts, tell: news.tell }, stop),
    (stop) => work({ ...parts, luck: chance(parts.seed), tell: news.tell }, stop),
    watch,
  ])

  const after = await lanesOf(store)
  const { retries, dead: deadRuns, lost } = ledger
  const facts: Facts = {
    ...ledger.facts(),
    waitedBefore: waitingIn(before.lanes),
    waiting: waitingIn(after.lanes),
    dead: await deadSince(store, before.now),
  }
  return { facts, last: shot(after), retries, deadRuns, lost }
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
