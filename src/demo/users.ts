// Simulated people who edit their tasks in bursts. Each edit is an event, stored before the next one is made.
import type { Clock, Sluice } from '../index.ts'
import { chance } from './chance.ts'
import { FLOW, USERS } from './flow.ts'
import type { Tell } from './life.ts'
import { sleep } from './sleep.ts'

export interface UsersParts {
  readonly app: Sluice
  readonly clock: Clock
  readonly seed: number
  readonly tell: Tell
}

/** Until the signal: everybody edits, each by an own chance, so that nobody's pace depends on another's. */
export async function simulateUsers(parts: UsersParts, stop: AbortSignal): Promise<void> {
  await Promise.all(USERS.map((user, at) => bursts(parts, { user, seed: parts.seed * 1_000 + at }, stop)))
}

interface Person {
  readonly user: string
  readonly seed: number
}

async function bursts(parts: UsersParts, { user, seed }: Person, stop: AbortSignal): Promise<void> {
  const luck = chance(seed)
  const rest = (least: number, most: number): Promise<boolean> => sleep(parts.clock, luck.between(least, most), stop)
  let on = await rest(0, 4_000)
  while (on) {
    // Now and then somebody does not stop editing for longer than the window's max.
    const edits = luck.hits(0.15) ? luck.between(16, 24) : luck.between(1, 8)
    for (let n = 0; n < edits && on; n++) {
      await edit(parts, user)
      on = await rest(120, 900)
    }
    on = on && (await rest(4_000, 12_000))
  }
}

async function edit({ app, clock, tell }: UsersParts, user: string): Promise<void> {
  const event = { source: 'tasks', type: 'task.edited', subject: user, data: { assignee: user } }
  const [published] = await app.publish(event)
  if (published?.kind !== 'stored') throw new Error(`The app answered ${JSON.stringify(published)} to an edit.`)
  const lane = await app.lanes.get(FLOW, user)
  const at = clock.now()
  const waiting = lane?.waiting ?? 0
  const dueIn = Math.max(0, (lane?.window ?? at) - at)
  tell({ kind: 'received', at, user, id: published.id, waiting, dueIn, running: lane?.run !== undefined })
}
