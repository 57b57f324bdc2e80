// What the app says is there: the lanes of the flow, and the dead letters since a moment.
import type { Clock, DeadLetter, Millis, Page, Sluice } from 'sluice'
import { FLOW } from './flow.ts'

export type Lane = Awaited<ReturnType<Sluice['admin']['lanes']['list']>>['items'][number]

export interface Lanes {
  /** An embedded store has this machine's time. */
  readonly now: Millis
  readonly lanes: readonly Lane[]
}

/** There are no more users than fit on one page. */
export async function lanesOf(app: Sluice, clock: Clock): Promise<Lanes> {
  const { items } = await app.admin.lanes.list({ flow: FLOW })
  return { now: clock.now(), lanes: items }
}

/** All events that have not ended: those that wait, and those of runs. */
export function waitingIn(lanes: readonly Lane[]): number {
  return lanes.reduce((sum, lane) => sum + lane.waiting + (lane.run?.events ?? 0), 0)
}

export async function deadSince(app: Sluice, from: Millis): Promise<number> {
  let count = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: Page<DeadLetter> = await app.admin.deadLetters.list({ flow: FLOW, from }, cursor)
    count += page.items.reduce((sum, deadLetter) => sum + deadLetter.events.length, 0)
    cursor = page.next
  }
  return count
}
