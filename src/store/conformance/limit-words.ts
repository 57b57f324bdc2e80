// How the tests of limits ask for a slot and give it back.
import assert from 'node:assert/strict'
import type { Millis } from '../../clock.ts'
import type { LimitNumbers } from '../../model/limit.ts'
import type { Reservation } from '../contract/index.ts'
import { only, type Stage } from './stage.ts'
import { request } from './vocabulary.ts'

export type Limits = Readonly<Record<string, LimitNumbers>>

/** How long this ticket has to wait. */
export async function wait(t: Stage, ticket: string, limits: Limits): Promise<Millis> {
  const answer = only((await t.store.reserve({ requests: [request(ticket, limits)] })).results)
  assert.ok(answer.kind === 'granted', `${ticket} is granted`)
  return answer.wait
}

/** When a ticket that can wait only a moment is told to come again. */
export async function far(t: Stage, ticket: string, limits: Limits): Promise<Millis> {
  return (await putOff(t, ticket, limits)).wait
}

/** The same, if it loses nothing by asking in vain. */
export async function farAgain(t: Stage, ticket: string, limits: Limits): Promise<Millis> {
  return (await putOff(t, ticket, limits)).again
}

async function putOff(t: Stage, ticket: string, limits: Limits): Promise<Extract<Reservation, { kind: 'far' }>> {
  const answer = only((await t.store.reserve({ requests: [{ ...request(ticket, limits), maxWait: 10 }] })).results)
  assert.ok(answer.kind === 'far', `${ticket} is put off`)
  return answer
}

export async function release(t: Stage, name: string, ticket: string): Promise<boolean> {
  return (await t.store.regulate({ name, act: { kind: 'release', ticket } })).released
}
