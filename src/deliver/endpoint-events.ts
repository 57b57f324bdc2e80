// The `endpoint.*` events that any flow or delivery can carry, and the rule that keeps them from circulating forever.
import type { Millis } from '../clock.ts'
import { ENGINE_SOURCE, type EventInput } from '../model/event.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { BreakerTransition } from './health/breaker.ts'
import type { Endpoint } from './endpoint.ts'

type EndpointChange = NonNullable<BreakerTransition['event']>

const TYPES: ReadonlySet<string> = new Set(
  (['opened', 'recovered', 'disabled'] satisfies readonly EndpointChange[]).map((change) => `endpoint.${change}`),
)
/** The start of a filter that explicitly asks for endpoint events. */
const ASKS_FOR_ENDPOINT_EVENTS = /^(?:endpoint\.|sluice\/)/

export function createEndpointEvent(
  { id, name, tenant }: Endpoint,
  change: EndpointChange,
  { reason, at }: { reason: string; at: Millis },
): EventInput {
  const type = `endpoint.${change}`
  const named = { source: ENGINE_SOURCE, type, tenant, subject: id, dedupeId: `${type}:${id}@${at}` }
  return { ...named, data: { endpoint: id, name, reason } }
}

export function isEndpointEvent({ source, type }: Pick<FlowEvent, 'source' | 'type'>): boolean {
  return source === ENGINE_SOURCE && TYPES.has(type)
}

/** `mayReceive` keeps an endpoint from events about itself. For others, its filter must name them; `**` does not. */
export function mayReceive({ id, eventFilter }: Pick<Endpoint, 'id' | 'eventFilter'>, event: FlowEvent): boolean {
  return (
    !isEndpointEvent(event) || (event.subject !== id && eventFilter.some((glob) => ASKS_FOR_ENDPOINT_EVENTS.test(glob)))
  )
}
