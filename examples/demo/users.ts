// Simulated people who edit their tasks in bursts. Each edit is a signed webhook, answered before the next one is made.
import { randomUUID } from 'node:crypto'
import type { Clock } from 'sluice'
import { chance } from '../kit/chance.ts'
import { USERS } from './flow.ts'
import { sleep } from './sleep.ts'
import { taskEdited, type Webhook } from './webhooks.ts'

export type Deliver = (webhook: Webhook) => Promise<Response>

export interface UsersParts {
  /** Sends a webhook to the app as a task service would. */
  readonly deliver: Deliver
  readonly clock: Clock
  readonly seed: number
}

/** Until the signal: each user edits at random times of her own, so that no user's rate depends on another's. */
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

async function edit({ clock, deliver }: UsersParts, user: string): Promise<void> {
  const response = await deliver(taskEdited(user, `msg_${randomUUID()}`, clock.now()))
  const answer = await response.text()
  if (response.status !== 202) throw new Error(`The app answered ${response.status} to an edit: ${answer}`)
}
