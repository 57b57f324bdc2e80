// Helpers that reserve and release slots for the limit tests.
import assert from 'node:assert/strict'
import type { Millis } from '../../src/clock.ts'
import type { LimitParameters } from '../../src/model/limit.ts'
import type { Reservation } from '../../src/store/contract/index.ts'
import { assertSingle, type ConformanceStage } from './stage.ts'
import { createReserveRequest } from './builders.ts'

export type LimitsByName = Readonly<Record<string, LimitParameters>>

/** Returns how long this ticket must wait. */
export async function reserveWait(t: ConformanceStage, ticket: string, limits: LimitsByName): Promise<Millis> {
  const answer = assertSingle((await t.store.reserve({ requests: [createReserveRequest(ticket, limits)] })).results)
  assert.ok(answer.kind === 'granted', `${ticket} is granted`)
  return answer.wait
}

/** Returns when a ticket with a short `maxWait` is to ask again. */
export async function reserveTooFar(t: ConformanceStage, ticket: string, limits: LimitsByName): Promise<Millis> {
  return (await assertTooFar(t, ticket, limits)).wait
}

/** The same, for a caller to which an early request costs nothing. */
export async function reserveTooFarRecheck(t: ConformanceStage, ticket: string, limits: LimitsByName): Promise<Millis> {
  return (await assertTooFar(t, ticket, limits)).recheckAfter
}

async function assertTooFar(
  t: ConformanceStage,
  ticket: string,
  limits: LimitsByName,
): Promise<Extract<Reservation, { kind: 'far' }>> {
  const answer = assertSingle(
    (await t.store.reserve({ requests: [{ ...createReserveRequest(ticket, limits), maxWait: 10 }] })).results,
  )
  assert.ok(answer.kind === 'far', `${ticket} is deferred`)
  return answer
}

export async function releaseSlot(t: ConformanceStage, name: string, ticket: string): Promise<boolean> {
  return (await t.store.regulate({ name, act: { kind: 'release', ticket } })).released
}
