// Simulated people who edit their tasks in bursts. Each edit is an event, stored before the next one is made.
import { identity, laneId, newEventId, type Clock, type NewEvent, type Store } from '../index.ts'
import { chance, type Chance } from './chance.ts'
import { FLOW, USERS, WINDOW } from './flow.ts'
import type { Tell } from './life.ts'
import { sleep } from './sleep.ts'

export interface UsersParts {
  readonly store: Store
  readonly clock: Clock
  readonly seed: number
  readonly tell: Tell
}

const SOURCE = 'tasks'
const DAY = 86_400_000

/** Until the signal: everybody edits, each by an own chance, so that nobody's pace depends on another's. */
export async function simulateUsers(parts: UsersParts, stop: AbortSignal): Promise<void> {
  const { routes } = await parts.store.stats()
  await Promise.all(USERS.map((user, at) => bursts(parts, chance(parts.seed * 1_000 + at), { user, routes, stop })))
}

interface Person {
  readonly user: string
  readonly routes: number
  readonly stop: AbortSignal
}

async function bursts(parts: UsersParts, luck: Chance, person: Person): Promise<void> {
  const rest = (least: number, most: number): Promise<boolean> =>
    sleep(parts.clock, luck.between(least, most), person.stop)
  let on = await rest(0, 4_000)
  while (on) {
    // Now and then somebody does not stop editing for longer than the window's max.
    const edits = luck.hits(0.15) ? luck.between(16, 24) : luck.between(1, 8)
    for (let n = 0; n < edits && on; n++) {
      await edit(parts, person)
      on = await rest(120, 900)
    }
    on = on && (await rest(4_000, 12_000))
  }
}

async function edit({ store, clock, tell }: UsersParts, { user, routes }: Person): Promise<void> {
  const event = editBy(user, newEventId(clock.now()), clock.now())
  const { results, now } = await store.append({ routes, events: [event] })
  if (results[0]?.kind !== 'stored') throw new Error(`The store answered ${JSON.stringify(results[0])} to an edit.`)
  const { item: lane } = await store.get({ kind: 'lanes', id: laneId(FLOW, user) })
  const waiting = lane?.waiting ?? 0
  const dueIn = Math.max(0, (lane?.window ?? now) - now)
  tell({ kind: 'received', at: now, user, id: event.id, waiting, dueIn, running: lane?.run !== undefined })
}

function editBy(user: string, id: string, time: number): NewEvent {
  return {
    id,
    source: SOURCE,
    type: 'task.edited',
    time,
    tenant: '',
    subject: user,
    attributes: '',
    body: new TextEncoder().encode(JSON.stringify({ assignee: user })),
    identity: identity(SOURCE, '', id),
    dedupeFor: 7 * DAY,
    request: new Uint8Array(),
    places: [{ ...WINDOW, lane: laneId(FLOW, user), flow: FLOW, key: user, group: '', cancel: false }],
    marks: [],
  }
}
