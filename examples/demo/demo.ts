// `runDemo` runs the app, the simulated users and the watcher on one store and one clock, until the time is over or it is stopped.
import type { Clock, Millis, Sluice, Store } from 'sluice'
import { rankingApp } from './app.ts'
import { deadSince, lanesOf, waitingIn, type Lanes } from './census.ts'
import { chance } from '../kit/chance.ts'
import type { Facts } from './checks.ts'
import { USERS } from './flow.ts'
import { Ledger } from './ledger.ts'
import { News } from './news.ts'
import type { Screen } from './screen.ts'
import { sleep } from './sleep.ts'
import { eventsOf, inLine, snapshot, type Snapshot } from './snapshot.ts'
import { simulateUsers, type Deliver } from './users.ts'

export interface DemoParts {
  readonly store: Store
  readonly clock: Clock
  readonly screen: Screen
  readonly seed: number
  /** Undefined until it is stopped. */
  readonly lasts: Millis | undefined
  readonly stop: AbortSignal
  /** Whether simulated users send webhooks. */
  readonly play: boolean
  /** Makes the app reachable, and returns how to send it a webhook. */
  readonly serve: (app: Sluice) => Promise<Deliver>
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
  const { store, clock, screen, seed } = parts
  const since = clock.now()
  const began = clock.monotonic()
  const ledger = new Ledger(since)
  const news = new News((life) => {
    ledger.note(life)
    screen.news(life, since)
  })
  const shot = (seen: Lanes): Snapshot => {
    const monotonic = clock.monotonic()
    return snapshot(seen, ledger, {
      elapsed: monotonic - began,
      until: parts.lasts,
      monotonic,
      users: parts.play ? USERS : [],
    })
  }
  const { app, witness } = rankingApp({ store, clock, luck: chance(seed), tell: news.tell })
  const watch = async (stop: AbortSignal): Promise<void> => {
    do {
      const seen = await lanesOf(app, clock)
      for (const [at, lane] of inLine(seen).entries()) {
        news.due(lane.key, lane.due, { events: eventsOf(lane, seen.now), position: at + 1 })
      }
      screen.show(shot(seen))
    } while (await sleep(clock, FRAME, stop))
  }

  const before = await lanesOf(app, clock)
  await app.start()
  try {
    const deliver = await parts.serve(app)
    const users = (stop: AbortSignal): Promise<void> => simulateUsers({ deliver, clock, seed }, stop)
    await together(parts, parts.play ? [users, watch] : [watch])
  } finally {
    await app.stop()
    await witness.seenAll()
  }

  const after = await lanesOf(app, clock)
  const { retries, dead: deadRuns, lost } = ledger
  const facts: Facts = {
    ...ledger.facts(),
    waitedBefore: waitingIn(before.lanes),
    waiting: waitingIn(after.lanes),
    dead: await deadSince(app, since),
  }
  return { facts, last: shot(after), retries, deadRuns, lost }
}

/** Runs the tasks until the time is over, the demo is stopped or one of them fails. Then it stops all, and waits for them. */
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
