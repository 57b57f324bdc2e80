// `takeSlot` gets one call its slot: it reserves, sleeps, and lets the store confirm the slot before use (M1, M2, M6, M7).
import { randomUUID } from 'node:crypto'
import { NEVER, type Clock, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { RateLimitDeferred } from './run-context.ts'
import type { LimitCaller } from './caller.ts'
import type { Slot, SlotRequest, SlotReservations } from './reservations.ts'

/** The share of a slot's freshness that may pass before the confirmation. */
const CONFIRM_SHARE = 0.1

/** The delay until the next request for a slot that was moved far away. */
const MOVED_RETRY: Millis = 60_000
/** Even an endless pause is checked again after this time. */
const MIDWAY_MAX: Millis = 86_400_000

export interface TakeSlotRequest {
  /** All limits of the call, for messages: the store does not report which of them has the distant slot. */
  readonly name: string
  readonly limits: SlotRequest['limits']
  readonly maxWait: Millis
  readonly caller: LimitCaller
}

/** `SlotsMissedError` ends a call whose slots all expired: so slow a store or event loop would waste the slots of others. */
export class SlotsMissedError extends SluiceError {
  readonly limit: string

  constructor(limit: string, times: number) {
    super('LIMIT_TOO_SLOW', `${times} slots of ${limit} in a row had expired when the reply of the store arrived.`)
    this.limit = limit
  }
}

export interface TakeSlotDependencies {
  readonly slots: SlotReservations
  readonly clock: Clock
}

/** `takeSlot` resolves at the time of the slot. The caller must check right before the call that the slot is still fresh. */
export function takeSlot(deps: TakeSlotDependencies, request: TakeSlotRequest): Promise<Slot> {
  return deps.slots.track(reserveAndSleep(deps, request))
}

async function reserveAndSleep(deps: TakeSlotDependencies, request: TakeSlotRequest): Promise<Slot> {
  const { slots } = deps
  const { caller, limits, maxWait } = request
  const ticket = randomUUID()
  let isHeld = false
  try {
    for (;;) {
      const slot = await slots.reserve({ ticket, limits, maxWait: caller.mayBeDeferred ? maxWait : NEVER })
      isHeld ||= 'wait' in slot && slot.wait > 0
      slots.assertOpen()
      caller.assertLive()
      if ('away' in slot) {
        if (caller.mayBeDeferred) throw createDeferral(request, slot.away, slot.again)
      } else if (slot.wait === 0) {
        caller.markCalled()
        return slot
      } else await sleepUntil(deps, slot, request)
      // The loop keeps the ticket even after a long block, so a slot that a pause moved keeps its order.
    }
  } catch (error) {
    if (isHeld) await slots.release(limits, ticket)
    throw error
  }
}

/** Before its first call, a run loses nothing by asking again early. After a call, each deferral repeats that call without progress. */
function createDeferral({ caller, name }: TakeSlotRequest, away: Millis, again: Millis): RateLimitDeferred {
  return new RateLimitDeferred(name, away, caller.hasCalled ? Math.min(away, MIDWAY_MAX) : again)
}

async function sleepUntil({ clock, slots }: TakeSlotDependencies, slot: Slot, request: TakeSlotRequest): Promise<void> {
  const { caller, limits, maxWait } = request
  // The slot was near enough when it was reserved. A pause has moved it since, and the pause may end early.
  if (caller.mayBeDeferred && slot.wait > maxWait)
    throw createDeferral(request, slot.wait, Math.min(slot.wait, MOVED_RETRY))
  // The wait counts from the request, plus a small share: too early a confirmation must be repeated, and a late one leaves less
  // time for its reply.
  const late = Math.max(0, clock.monotonic() - slot.sent - slot.freshFor * CONFIRM_SHARE)
  const delay = slot.wait - late
  const names = limits.map((limit) => limit.name)
  const { done, wake } = slots.sleepers.sleep(delay, caller.signal, names)
  const removeWait = caller.trackWait(clock.monotonic() + delay, wake)
  await done
  removeWait()
  caller.assertLive()
}
