// How one call gets its moment: it reserves, sleeps, and has the store confirm before use (M1, M2, M6, M7).
import { randomUUID } from 'node:crypto'
import { NEVER, type Clock, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { PutOff } from '../scope.ts'
import type { Caller } from './caller.ts'
import type { Slot, SlotRequest, Slots } from './slots.ts'

/** The share of a slot's freshness that may go by before it is confirmed. */
const GRACE = 0.1

export interface Wish {
  /** The limit that was called, for messages. */
  readonly name: string
  readonly limits: SlotRequest['limits']
  readonly maxWait: Millis
  readonly caller: Caller
}

/** A store, or an event loop, this slow would use up the slots of all others and never make a call. */
export class SlotsMissed extends SluiceError {
  readonly limit: string

  constructor(limit: string, times: number) {
    super('LIMIT_TOO_SLOW', `${times} slots of ${limit} in a row were old when the store had answered.`)
    this.limit = limit
  }
}

export interface TakeParts {
  readonly slots: Slots
  readonly clock: Clock
}

/** Resolves when the slot's time has come. Whether it is still fresh is to be looked at right before the call. */
export async function takeSlot(parts: TakeParts, wish: Wish): Promise<Slot> {
  const { slots } = parts
  const ticket = randomUUID()
  for (;;) {
    // Outside a run nobody can be put off: it waits as long as it takes.
    const maxWait = wish.caller.inRun ? wish.maxWait : NEVER
    const slot = await slots.reserve({ ticket, limits: wish.limits, maxWait })
    if ('away' in slot) throw new PutOff(wish.name, slot.away)
    if (slot.wait === 0) return slot
    try {
      await sleepUntil(parts.clock, slot, wish)
    } catch (error) {
      await slots.release(wish.name, ticket)
      throw error
    }
    // The same ticket even after a long stall: a pause may have moved its slot, and it keeps its place in the line.
  }
}

async function sleepUntil(clock: Clock, slot: Slot, wish: Wish): Promise<void> {
  const { caller, maxWait, name } = wish
  caller.check()
  if (caller.inRun && slot.wait > maxWait) throw new PutOff(name, slot.wait)
  // Counted from when it was asked, but for a little: a confirmation that comes a moment early has to be asked for twice,
  // one that comes late leaves its answer less time.
  const late = Math.max(0, clock.monotonic() - slot.sent - slot.freshFor * GRACE)
  caller.waits(clock.monotonic() + slot.wait - late)
  await sleep(clock, slot.wait - late, caller.signal)
  caller.waits(undefined)
  caller.check()
}

/** Also ends when the signal is aborted. */
export function sleep(clock: Clock, delay: Millis, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      cancel()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = clock.after(Math.max(0, delay), wake)
    signal?.addEventListener('abort', wake, { once: true })
  })
}
