// `encryptedStore` wraps a store: it encrypts the bodies and requests of some sources on writes and decrypts them on reads.
// All other code sees plaintext. A plaintext event of a source with `encrypt` is rejected.
import { DataKeys } from './data-keys.ts'
import { SluiceError } from '../errors.ts'
import { isEncrypted, ENCRYPTED_ATTRIBUTE } from '../model/event.ts'
import {
  decryptUnrouted,
  decryptRecord,
  encryptUnrouted,
  encryptPlaceItem,
  encryptSettle,
} from './encrypted-records.ts'
import { EncryptedTexts } from './encrypted-texts.ts'
import { looksEncrypted, type Keyring } from './keyring.ts'
import type {
  ClaimedEvent,
  EventRecord,
  FindCall,
  FindReply,
  GetReply,
  EventToStore,
  RecordKind,
  Settlement,
  Store,
} from '../store/contract/index.ts'

interface EncryptableEvent {
  readonly id: string
  readonly source: string
  readonly tenant: string
  readonly attributes: string
  readonly body: Uint8Array
  readonly request: Uint8Array
}

type EncryptableContent = Pick<EncryptableEvent, 'source' | 'tenant' | 'attributes'> & {
  readonly body?: Uint8Array | undefined
}

export interface EncryptedSources {
  /** Whether new events of the source are encrypted. */
  encrypts(source: string): boolean
  /** Whether stored events of the source must be encrypted. A plaintext one was forged, or is older than `encrypt`. */
  requires(source: string): boolean
  /** Whether any source requires encrypted events. */
  readonly requiresAny: boolean
}

export function encryptedStore(store: Store, keyring: Keyring, sources: EncryptedSources): Store {
  const keys = new DataKeys(store, keyring)
  const mustEncrypt = ({ source }: Pick<EncryptableEvent, 'source'>): boolean => sources.encrypts(source)
  const texts = new EncryptedTexts(keys)
  const encryptEvents = async (events: readonly EventToStore[]): Promise<readonly EventToStore[]> => {
    if (!events.some(mustEncrypt)) return events
    const dataKey = await keys.encryptionKeyring()
    const one = async (event: EventToStore): Promise<EventToStore> => {
      if (!mustEncrypt(event)) return event
      const unrouted = event.unrouted.map((entry) => encryptUnrouted(texts, entry))
      return { ...encryptEvent(dataKey, event), unrouted: await Promise.all(unrouted) }
    }
    return Promise.all(events.map(one))
  }
  const mustEncryptSettlement = (one: Settlement): boolean => one.confidential === true || one.publish.some(mustEncrypt)
  const encryptSettlement = async (one: Settlement): Promise<Settlement> => {
    return { ...(await encryptSettle(texts, one)), publish: await encryptEvents(one.publish) }
  }
  const mustDecrypt = (event: Pick<EncryptableContent, 'source' | 'attributes'>): boolean =>
    isMarkedEncrypted(event) || sources.requires(event.source)
  const decryptBody = async <E extends EncryptableContent>(event: E): Promise<E> => {
    if (event.body === undefined || !mustDecrypt(event)) return event
    if (!isMarkedEncrypted(event)) throw notEncrypted(event)
    return { ...event, body: await keys.decrypt(event.body, bodyPurpose(event)) }
  }
  const bodyOfEvent = async (id: string): Promise<Uint8Array | undefined> => {
    const { item } = await store.get({ kind: 'events', id })
    return item === undefined || item.purged ? undefined : (await decryptBody(item)).body
  }

  // An event that cannot be decrypted must not fail the claim: it fails its own run when the handler reads the bytes.
  const decryptOrOmitBody = (event: ClaimedEvent): Promise<ClaimedEvent> =>
    decryptBody(event).catch(() => ({ ...event, body: undefined }))

  const members: Partial<Store> = {
    append: async (call) =>
      store.append(call.events.some(mustEncrypt) ? { ...call, events: await encryptEvents(call.events) } : call),
    settleAndClaim: async (call) => {
      const { settle: plain } = call
      const settle = plain.some(mustEncryptSettlement) ? await Promise.all(plain.map(encryptSettlement)) : plain
      const reply = await store.settleAndClaim({ ...call, settle })
      if (!reply.claimed.some(({ events }) => events.some(mustDecrypt))) return reply
      const claimed = reply.claimed.map(async (lease) => ({
        ...lease,
        events: await Promise.all(lease.events.map(decryptOrOmitBody)),
      }))
      return { ...reply, claimed: await Promise.all(claimed) }
    },
    place: async (call) => {
      const isPlain = call.items.every((item) => item.kind !== 'unrouted' || item.confidential !== true)
      if (isPlain) return store.place(call)
      return store.place({ ...call, items: await Promise.all(call.items.map((item) => encryptPlaceItem(texts, item))) })
    },
    claimUnrouted: async (call) => {
      const reply = await store.claimUnrouted(call)
      const unrouted = await Promise.all(
        reply.unrouted.map(async (entry) => {
          const event = await decryptOrOmitBody(entry.event)
          // The event stays unrouted, for a process that has the key.
          if (event.body === undefined) return []
          return [{ ...(await decryptUnrouted(texts, entry)), event: { ...entry.event, body: event.body } }]
        }),
      )
      return { ...reply, unrouted: unrouted.flat() }
    },
    readBodies: async (call) => {
      const reply = await store.readBodies(call)
      // Only the record of an event names the source of a plaintext body.
      if (sources.requiresAny) return { ...reply, bodies: await Promise.all(call.events.map(bodyOfEvent)) }
      const bodies = await Promise.all(
        reply.bodies.map(async (body, at) => {
          if (body === undefined || !looksEncrypted(body)) return body
          const { item } = await store.get({ kind: 'events', id: call.events[at] ?? '' })
          return item === undefined ? body : (await decryptBody({ ...item, body })).body
        }),
      )
      return { ...reply, bodies }
    },
    find: async <K extends RecordKind>(call: FindCall<K>): Promise<FindReply<K>> => {
      const reply = await store.find(call)
      if (call.kind === 'events') return reply
      return { ...reply, items: await Promise.all(reply.items.map((item) => decryptRecord(texts, call.kind, item))) }
    },
    get: async <K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<GetReply<K>> => {
      const reply = await store.get(call)
      if (reply.item === undefined) return reply
      if (call.kind !== 'events') return { ...reply, item: await decryptRecord(texts, call.kind, reply.item) }
      const item = reply.item as EventRecord
      if (item.purged || item.request === undefined || !mustDecrypt(item)) return reply
      const whole = { ...(await decryptBody(item)), request: await keys.decrypt(item.request, requestPurpose(item)) }
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

export function notEncrypted({ source }: Pick<EncryptableEvent, 'source'>): SluiceError {
  const text = `An event of source ${JSON.stringify(source)} is stored as plaintext, although the source has encrypt.`
  return new SluiceError('NOT_ENCRYPTED', text)
}

function isMarkedEncrypted({ attributes }: Pick<EncryptableEvent, 'attributes'>): boolean {
  return isEncrypted(attributes)
}

function encryptEvent<E extends EncryptableEvent>(keyring: Keyring, event: E): E {
  const attributes = event.attributes === '' ? {} : (JSON.parse(event.attributes) as object)
  return {
    ...event,
    attributes: JSON.stringify({ ...attributes, [ENCRYPTED_ATTRIBUTE]: true }),
    // Deterministic: equal bytes must stay equal, because the bytes distinguish a duplicate from a conflict (L10).
    body: keyring.encryptDeterministic(event.body, bodyPurpose(event)),
    request: keyring.encrypt(event.request, requestPurpose(event)),
  }
}

/** The purpose leaves out the id of the event: a duplicate has another id. */
function bodyPurpose({ source, tenant }: Pick<EncryptableEvent, 'source' | 'tenant'>): string {
  return `body of an event of ${JSON.stringify([source, tenant])}`
}

function requestPurpose({ id, source, tenant }: Pick<EncryptableEvent, 'id' | 'source' | 'tenant'>): string {
  return `request of event ${JSON.stringify([id, source, tenant])}`
}
