// The events of a dead letter, as far as they are still there.
import { FlowEvent } from '../model/flow-event.ts'
import type { Store } from '../store/contract/index.ts'

/** As JSON, with the bytes as they came. */
export type ExportedEvent = Readonly<Record<string, unknown>> & { readonly body64: string }

export async function contentsOf(store: Store, events: readonly string[]): Promise<readonly FlowEvent[]> {
  const found = await Promise.all(events.map((id) => store.get({ kind: 'events', id })))
  return found.flatMap(({ item }) => {
    return item?.body === undefined ? [] : new FlowEvent({ ...item, body: item.body })
  })
}

export function exported(event: FlowEvent): ExportedEvent {
  return { ...event.toJSON(), body64: Buffer.from(event.body).toString('base64') }
}
