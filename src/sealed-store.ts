// A store whose keeper cannot read what is in it: bodies and requests of some sources are sealed on their way in, and
// opened on their way out. All other code sees them as they came.
import { DataKeys } from './data-keys.ts'
import { SEALED } from './model/event.ts'
import { looksSealed, type Seal } from './seal.ts'
import type { ClaimedEvent, EventRecord, GetReply, RecordKind, Store } from './store/contract/index.ts'

interface Bytes {
  readonly id: string
  readonly source: string
  readonly tenant: string
  readonly attributes: string
  readonly body: Uint8Array
  readonly request: Uint8Array
}

type Sealable = Pick<Bytes, 'source' | 'tenant' | 'attributes'> & { readonly body?: Uint8Array | undefined }

export function sealedStore(store: Store, master: Seal, isSealed: (source: string) => boolean): Store {
  const keys = new DataKeys(store, master)
  const isOfSealed = ({ source }: Pick<Bytes, 'source'>): boolean => isSealed(source)
  const closed = async <E extends Bytes>(events: readonly E[]): Promise<readonly E[]> => {
    if (!events.some(isOfSealed)) return events
    const seal = await keys.toSeal()
    return events.map((event) => (isOfSealed(event) ? closedBy(seal, event) : event))
  }
  const opened = async <E extends Sealable>(event: E): Promise<E> =>
    event.body === undefined || !isMarked(event)
      ? event
      : { ...event, body: await keys.open(event.body, bodyOf(event)) }

  // A claim is made: what cannot be opened fails its own run, when that asks for the bytes.
  const openedOrLeft = (event: ClaimedEvent): Promise<ClaimedEvent> =>
    opened(event).catch(() => ({ ...event, body: undefined }))

  const members: Partial<Store> = {
    append: async (call) =>
      store.append(call.events.some(isOfSealed) ? { ...call, events: await closed(call.events) } : call),
    turn: async (call) => {
      const settle = call.settle.some(({ publish }) => publish.some(isOfSealed))
        ? await Promise.all(call.settle.map(async (one) => ({ ...one, publish: await closed(one.publish) })))
        : call.settle
      const reply = await store.turn({ ...call, settle })
      if (!reply.claimed.some(({ events }) => events.some(isMarked))) return reply
      const claimed = reply.claimed.map(async (lease) => ({
        ...lease,
        events: await Promise.all(lease.events.map(openedOrLeft)),
      }))
      return { ...reply, claimed: await Promise.all(claimed) }
    },
    unrouted: async (call) => {
      const reply = await store.unrouted(call)
      const marks = await Promise.all(
        reply.marks.map(async (mark) => {
          const event = await openedOrLeft(mark.event)
          // It stays marked, for a process that has the key.
          return event.body === undefined ? [] : [{ ...mark, event: { ...mark.event, body: event.body } }]
        }),
      )
      return { ...reply, marks: marks.flat() }
    },
    bodies: async (call) => {
      const reply = await store.bodies(call)
      const bodies = await Promise.all(
        reply.bodies.map(async (body, at) => {
          if (body === undefined || !looksSealed(body)) return body
          const { item } = await store.get({ kind: 'events', id: call.events[at] ?? '' })
          return item === undefined ? body : (await opened({ ...item, body })).body
        }),
      )
      return { ...reply, bodies }
    },
    get: async <K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<GetReply<K>> => {
      const reply = await store.get(call)
      if (call.kind !== 'events' || reply.item === undefined) return reply
      const item = reply.item as EventRecord
      if (!isMarked(item) || item.request === undefined) return reply
      const whole = { ...(await opened(item)), request: await keys.open(item.request, requestOf(item)) }
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

function closedBy<E extends Bytes>(seal: Seal, event: E): E {
  const attributes = event.attributes === '' ? {} : (JSON.parse(event.attributes) as object)
  return {
    ...event,
    attributes: JSON.stringify({ ...attributes, [SEALED]: true }),
    // Alike for alike: a duplicate is told from a conflict by its bytes (L10).
    body: seal.sealAlike(event.body, bodyOf(event)),
    request: seal.seal(event.request, requestOf(event)),
  }
}

/** Without its id: that of a duplicate is another. */
function bodyOf({ source, tenant }: Pick<Bytes, 'source' | 'tenant'>): string {
  return `body of an event of ${JSON.stringify([source, tenant])}`
}

function requestOf({ id, source, tenant }: Pick<Bytes, 'id' | 'source' | 'tenant'>): string {
  return `request of event ${JSON.stringify([id, source, tenant])}`
}
