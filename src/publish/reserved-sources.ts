// This file checks, before anything is stored, that an event has no reserved source and that its target flows exist.
import { SluiceError } from '../errors.ts'
import { type EventInput, OWN_SOURCES } from '../model/event.ts'
import { isReservedSource, type Routes } from './route.ts'

/** `assertSourceNotReserved` rejects the engine's own sources: such an event would reach only internal flows. */
export function assertSourceNotReserved(events: readonly EventInput[]): void {
  const ours = events.find((one) => typeof one?.source === 'string' && isReservedSource(one))
  if (ours === undefined) return
  throw new SluiceError(
    'EVENT_INVALID',
    `source must not begin with '${OWN_SOURCES}': ${ours.source}; nothing was stored.`,
  )
}

/** `parseTargetFlows` returns the flows that `to` names, and rejects unknown and internal ones. */
export function parseTargetFlows(to: unknown, { flows, foreign }: Routes): ReadonlySet<string> {
  const names: readonly unknown[] = Array.isArray(to) ? to : [to]
  if (names.length === 0) {
    throw new SluiceError('EVENT_INVALID', 'to must not be an empty list. Name a flow, or omit to. Nothing was stored.')
  }
  const known = new Set([...flows.filter((flow) => !flow.isInternal), ...foreign].map(({ name }) => name))
  const named = new Set<string>()
  for (const name of names) {
    if (typeof name !== 'string' || !known.has(name)) {
      throw new SluiceError(
        'EVENT_INVALID',
        `to must name existing flows; got ${JSON.stringify(name)}. Nothing was stored.`,
      )
    }
    named.add(name)
  }
  return named
}
