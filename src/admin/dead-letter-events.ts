// Loads the events of a dead letter, as far as they are still stored.
import { FlowEvent } from '../model/flow-event.ts'
import type { Store } from '../store/contract/index.ts'

/** An event as JSON, with its original bytes in base64. */
export type ExportedEvent = Readonly<Record<string, unknown>> & { readonly body64: string }

export async function readDeadLetterEvents(store: Store, events: readonly string[]): Promise<readonly FlowEvent[]> {
  const found = await Promise.all(events.map((id) => store.get({ kind: 'events', id })))
  return found.flatMap(({ item }) => {
    return item?.body === undefined ? [] : new FlowEvent({ ...item, body: item.body })
  })
}

export function toExportedEvent(event: FlowEvent): ExportedEvent {
  return { ...event.toJSON(), body64: Buffer.from(event.body).toString('base64') }
}
