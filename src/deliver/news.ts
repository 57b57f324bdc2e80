// What happens to an endpoint, as an event that any flow or delivery can carry, and what keeps such news from going in circles.
import type { Millis } from '../clock.ts'
import type { EventInput } from '../model/event-input.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Moved } from './breaker.ts'
import type { Endpoint } from './endpoint.ts'

type Told = NonNullable<Moved['told']>

const SOURCE = 'sluice'
const TYPES: ReadonlySet<string> = new Set(
  (['opened', 'recovered', 'disabled'] satisfies readonly Told[]).map((told) => `endpoint.${told}`),
)
/** What a filter that asks for news begins with. */
const ASKS = /^(?:endpoint\.|sluice\/)/

export function newsOf(
  { id, name, tenant }: Endpoint,
  told: Told,
  { reason, at }: { reason: string; at: Millis },
): EventInput {
  const type = `endpoint.${told}`
  const named = { source: SOURCE, type, tenant, subject: id, dedupeId: `${type}:${id}@${at}` }
  return { ...named, data: { endpoint: id, name, reason } }
}

export function isNews({ source, type }: Pick<FlowEvent, 'source' | 'type'>): boolean {
  return source === SOURCE && TYPES.has(type)
}

/** Nobody hears of itself, for it does not answer; nor of others without having asked in so many words: `**` is no such word. */
export function mayHear({ id, eventFilter }: Pick<Endpoint, 'id' | 'eventFilter'>, event: FlowEvent): boolean {
  return !isNews(event) || (event.subject !== id && eventFilter.some((glob) => ASKS.test(glob)))
}
