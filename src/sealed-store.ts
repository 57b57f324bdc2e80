// A store whose keeper cannot read what is in it: bodies and requests of some sources are sealed on their way in, and
// opened on their way out. All other code sees them as they came.
import { SEALED } from './model/event.ts'
import type { Seal } from './seal.ts'
import type { ClaimedEvent, EventRecord, GetReply, RecordKind, Store } from './store/contract/index.ts'

interface Bytes {
  readonly source: string
  readonly attributes: string
  readonly body: Uint8Array
  readonly request: Uint8Array
}

export function sealedStore(store: Store, seal: Seal, isSealed: (source: string) => boolean): Store {
  const closed = <E extends Bytes>(event: E): E => {
    if (!isSealed(event.source)) return event
    const attributes = event.attributes === '' ? {} : (JSON.parse(event.attributes) as object)
    return {
      ...event,
      attributes: JSON.stringify({ ...attributes, [SEALED]: true }),
      // Alike for alike: a duplicate is told from a conflict by its bytes (L10).
      body: seal.sealAlike(event.body, bodyOf(event.source)),
      request: seal.seal(event.request, requestOf(event.source)),
    }
  }
  const opened = <E extends Pick<Bytes, 'source' | 'attributes'> & { readonly body?: Uint8Array | undefined }>(
    event: E,
  ): E =>
    event.body === undefined || !isMarked(event)
      ? event
      : { ...event, body: seal.open(event.body, bodyOf(event.source)) }

  // A claim is made: what cannot be opened fails its own run, when that asks for the bytes.
  const openedOrLeft = (event: ClaimedEvent): ClaimedEvent => {
    try {
      return opened(event)
    } catch {
      return { ...event, body: undefined }
    }
  }

  const members: Partial<Store> = {
    append: (call) => store.append({ ...call, events: call.events.map(closed) }),
    turn: async (call) => {
      const settle = call.settle.map((one) =>
        one.publish.length === 0 ? one : { ...one, publish: one.publish.map(closed) },
      )
      const reply = await store.turn({ ...call, settle })
      return { ...reply, claimed: reply.claimed.map((lease) => ({ ...lease, events: lease.events.map(openedOrLeft) })) }
    },
    unrouted: async (call) => {
      const reply = await store.unrouted(call)
      const marks = reply.marks.flatMap((mark) => {
        const event = openedOrLeft(mark.event)
        // It stays marked, for a process that has the key.
        return event.body === undefined ? [] : { ...mark, event: { ...mark.event, body: event.body } }
      })
      return { ...reply, marks }
    },
    bodies: async (call) => {
      const reply = await store.bodies(call)
      const bodies = await Promise.all(
        reply.bodies.map(async (body, at) => {
          const { item } = await store.get({ kind: 'events', id: call.events[at] ?? '' })
          return body === undefined || item === undefined ? body : opened({ ...item, body }).body
        }),
      )
      return { ...reply, bodies }
    },
    get: async <K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<GetReply<K>> => {
      const reply = await store.get(call)
      if (call.kind !== 'events' || reply.item === undefined) return reply
      const item = reply.item as EventRecord
      if (!isMarked(item) || item.request === undefined) return reply
      const whole = { ...opened(item), request: seal.open(item.request, requestOf(item.source)) }
      return { ...reply, item: whole as never }
    },
  }
  return new Proxy(store, {
    get: (target, name): unknown => {
      const own = members[name as keyof Store]
      if (own !== undefined) return own
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

function isMarked({ attributes }: Pick<Bytes, 'attributes'>): boolean {
  return attributes.includes(SEALED) && (JSON.parse(attributes) as Record<string, unknown>)[SEALED] === true
}

function bodyOf(source: string): string {
  return `body of an event of ${source}`
}

function requestOf(source: string): string {
  return `request of an event of ${source}`
}
