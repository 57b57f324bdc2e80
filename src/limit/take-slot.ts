// How one call gets its moment: it reserves, sleeps, and has the store confirm before use (M1, M2, M6, M7).
import { randomUUID } from 'node:crypto'
import { NEVER, type Clock, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { PutOff } from '../scope.ts'
import type { Caller } from './caller.ts'
import type { Slot, SlotRequest, Slots } from './slots.ts'

/** The share of a slot's freshness that may go by before it is confirmed. */
const GRACE = 0.1

/** When to ask again for a slot that was moved far away. */
const MOVED: Millis = 60_000
/** Also a pause without end is looked at again. */
const MIDWAY_MAX: Millis = 86_400_000

export interface Wish {
  /** All limits of the call, for messages: the store does not say which of them is the far one. */
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
export function takeSlot(parts: TakeParts, wish: Wish): Promise<Slot> {
  return parts.slots.tracked(taken(parts, wish))
}

async function taken(parts: TakeParts, wish: Wish): Promise<Slot> {
  const { slots } = parts
  const { caller, limits, maxWait } = wish
  const ticket = randomUUID()
  let isHeld = false
  try {
    for (;;) {
      const slot = await slots.reserve({ ticket, limits, maxWait: caller.mayBePutOff ? maxWait : NEVER })
      isHeld ||= 'wait' in slot && slot.wait > 0
      slots.check()
      caller.check()
      if ('away' in slot) {
        if (caller.mayBePutOff) throw putOff(wish, slot.away, slot.again)
      } else if (slot.wait === 0) {
        caller.called()
        return slot
      } else await sleepUntil(parts, slot, wish)
      // The same ticket even after a long stall: a pause may have moved its slot, and it keeps its place in the line.
    }
  } catch (error) {
    if (isHeld) await slots.release(limits, ticket)
    throw error
  }
}

/** Before its first call it loses nothing by asking again; after one it would make that in vain. */
function putOff({ caller, name }: Wish, away: Millis, again: Millis): PutOff {
  return new PutOff(name, away, caller.hasCalled ? Math.min(away, MIDWAY_MAX) : again)
}

async function sleepUntil({ clock, slots }: TakeParts, slot: Slot, wish: Wish): Promise<void> {
  const { caller, limits, maxWait } = wish
  // It was near enough when it was given: the limit was paused since, and that may be ended.
  if (caller.mayBePutOff && slot.wait > maxWait) throw putOff(wish, slot.wait, Math.min(slot.wait, MOVED))
  // Counted from when it was asked, but for a little: a confirmation that comes a moment early has to be asked for twice,
  // one that comes late leaves its answer less time.
  const late = Math.max(0, clock.monotonic() - slot.sent - slot.freshFor * GRACE)
  const left = slot.wait - late
  const names = limits.map((limit) => limit.name)
  const { over, wake } = slots.sleepers.sleep(left, caller.signal, names)
  const noLonger = caller.waits(clock.monotonic() + left, wake)
  await over
  noLonger()
  caller.check()
}
