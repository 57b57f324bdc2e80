// `FlowEvent` is an event as user code sees it. It keeps the bytes as received, and decodes text and JSON on demand.
import type { Millis } from '../clock.ts'
import {
  TARGET_ENDPOINT_ATTRIBUTE,
  parseAttributes,
  parseData,
  isEncrypted,
  isReceived,
  decodeText,
  type Event,
} from './event.ts'

export class FlowEvent {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: Millis
  readonly tenant: string | undefined
  readonly subject: string | undefined
  /** The time at which the store stored the event; undefined before. */
  readonly arrived: Millis | undefined
  readonly body: Uint8Array
  readonly #attributes: string
  #data: { readonly value: unknown } | undefined

  constructor(event: Omit<Event, 'arrived'> & { readonly arrived?: Millis }) {
    this.id = event.id
    this.source = event.source
    this.type = event.type
    this.time = event.time
    this.tenant = event.tenant === '' ? undefined : event.tenant
    this.subject = event.subject === '' ? undefined : event.subject
    this.arrived = event.arrived
    this.body = event.body
    this.#attributes = event.attributes
  }

  /** The body as JSON; undefined if it is not JSON. */
  get data(): unknown {
    this.#data ??= { value: parseData(this.body) }
    return this.#data.value
  }

  get text(): string {
    return decodeText(this.body)
  }

  /** Further CloudEvents attributes. */
  get attributes(): Readonly<Record<string, unknown>> {
    return parseAttributes(this.#attributes)
  }

  /** Whether its bytes are encrypted in the store, because its source has `encrypt`. */
  get encrypted(): boolean {
    return isEncrypted(this.#attributes)
  }

  /** Whether a source received the event; false for an event that the app published. */
  get received(): boolean {
    return isReceived(this.#attributes)
  }

  /** The one endpoint that the event is for; undefined: every endpoint whose filter matches. */
  get targetEndpoint(): string | undefined {
    // Very few events have this attribute, so a search of the text is cheaper than parsing it.
    if (!this.#attributes.includes(TARGET_ENDPOINT_ATTRIBUTE)) return undefined
    const named = (JSON.parse(this.#attributes) as Record<string, unknown>)[TARGET_ENDPOINT_ATTRIBUTE]
    return typeof named === 'string' ? named : undefined
  }

  toJSON(): Readonly<Record<string, unknown>> {
    const { id, source, type, time, tenant, subject, data, attributes } = this
    // The sender's attributes come first, so they cannot replace the engine's fields.
    return { ...attributes, id, source, type, time, tenant, subject, data: data ?? this.text }
  }
}
