// Calls under the shared limit: a call is handed over only in a slot that the store has confirmed and that is still fresh.
import type { Clock, Millis, Store } from '../index.ts'
import { slack } from '../model/limit.ts'
import { API } from './flow.ts'
import { sleep } from './sleep.ts'

/** Beyond it a call could fall into the next window. Two less: the store's clock and its rounding count whole ones. */
const FRESH: Millis = slack(API.per) - 2

export interface LimitParts {
  readonly store: Store
  readonly clock: Clock
}

/**
 * Waits for a slot of the limit. Answers when, on the monotonic clock, it may be used, which is now; or undefined when
 * the signal came first.
 */
export async function slot(parts: LimitParts, ticket: string, signal: AbortSignal): Promise<Millis | undefined> {
  for (let n = 0; ; n++) {
    const taken = await confirmed(parts, n === 0 ? ticket : `${ticket}~${n}`, signal)
    if (taken === undefined) return undefined
    const now = parts.clock.monotonic()
    // The answer itself may have taken long, on a slow disk: then the slot goes by unused.
    if (now - taken <= FRESH) return now
  }
}

/** Reserves, sleeps, and asks again with the same ticket until the answer is 0. Says the earliest its slot can have been. */
async function confirmed(parts: LimitParts, ticket: string, signal: AbortSignal): Promise<Millis | undefined> {
  const { store, clock } = parts
  let earliest: Millis | undefined
  while (!signal.aborted) {
    const sent = clock.monotonic()
    const { results } = await store.reserve({ requests: [{ ticket, limits: [API] }] })
    const answer = results[0]
    if (answer?.kind !== 'granted') throw new Error(`The limit ${API.name} refuses a single call.`)
    if (answer.wait === 0) return earliest ?? sent
    // By the store's clock the slot is `wait` after a moment that was not before we asked.
    earliest = sent + answer.wait
    await sleep(clock, answer.wait, signal)
  }
  return undefined
}
