// What is looked at before anything is stored: who may speak, and to whom.
import { SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event-input.ts'
import { isOurs, OUR_SOURCES, type Routes } from './route.ts'

/** Nobody can speak for the engine: such an event would reach no flow but the engine's own. */
export function mustBeTheirs(events: readonly EventInput[]): void {
  const ours = events.find((one) => typeof one?.source === 'string' && isOurs(one))
  if (ours === undefined) return
  throw new SluiceError(
    'EVENT_INVALID',
    `source must not begin with '${OUR_SOURCES}': ${ours.source}; nothing was stored.`,
  )
}

/** The flows that `to` names, all of them known. The engine's own are not to be had. */
export function addressees(to: unknown, { flows, foreign }: Routes): ReadonlySet<string> {
  const names: readonly unknown[] = Array.isArray(to) ? to : [to]
  if (names.length === 0) {
    throw new SluiceError('EVENT_INVALID', 'to is an empty list; name a flow, or leave it out. Nothing was stored.')
  }
  const known = new Set([...flows.filter((flow) => !flow.internal), ...foreign].map(({ name }) => name))
  const named = new Set<string>()
  for (const name of names) {
    if (typeof name !== 'string' || !known.has(name)) {
      throw new SluiceError('EVENT_INVALID', `to names ${JSON.stringify(name)}, which is no flow; nothing was stored.`)
    }
    named.add(name)
  }
  return named
}
