// Finds out why nothing arrived: what a flow skipped lately, and what became of an event whose id was given as the key.
import { OWN_SOURCES } from '../../model/event.ts'
import { formatRoutingNote } from '../../model/routing.ts'
import type { Store } from '../../store/contract/index.ts'
import type { SkipFacts } from './facts.ts'

/** How many of the newest events are read. */
const MAX_EVENTS = 100

export const NO_SKIP_FACTS: SkipFacts = {
  skipped: undefined,
  skippedOf: undefined,
  skippedLast: undefined,
  skippedAt: undefined,
  event: undefined,
  eventNote: undefined,
}

/** `collectSkipFacts` looks for a reason why a flow has nothing under a key. The key may also be the id of an event. */
export async function collectSkipFacts(store: Store, flow: string, key: string): Promise<SkipFacts> {
  const [newest, named] = await Promise.all([
    store.find({ kind: 'events', filter: { withoutSource: OWN_SOURCES }, cursor: '', n: MAX_EVENTS }),
    store.get({ kind: 'events', id: key }),
  ])
  const skipped = newest.items.filter(({ skips }) =>
    skips.some((skip) => skip.flow === flow && skip.reason === 'no-key'),
  )
  const [last] = skipped
  const { item } = named
  return {
    skipped: skipped.length,
    skippedOf: newest.items.length,
    skippedLast: last?.id,
    skippedAt: last?.arrived,
    event: item?.id,
    eventNote: item === undefined || item.purged ? undefined : formatRoutingNote(item),
  }
}
