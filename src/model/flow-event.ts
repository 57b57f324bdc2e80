// `FlowEvent` is an event as user code sees it. It keeps the bytes as received, and decodes text and JSON on demand.
import type { Millis } from '../clock.ts'
import { messageOf, SluiceError } from '../errors.ts'
import {
  TARGET_ENDPOINT_ATTRIBUTE,
  parseAttributes,
  parseData,
  isEncrypted,
  isReceived,
  decodeText,
  type Event,
} from './event.ts'
import { nameOf, type TypedEvent } from './typed-event.ts'

let toView: (event: FlowEvent, definition: TypedEvent | undefined, changed?: EventContent) => FlowEvent

/** `EventContent` is what a transformation may change of an event. */
export interface EventContent {
  readonly type: string
  /** '' for none. */
  readonly subject: string
  readonly body?: Uint8Array
}

type EventFields = Omit<Event, 'arrived'> & { readonly arrived?: Millis }

const STORED_EVENT_FIX = 'Change the schema so that it accepts this event and retry it, or drop it.'

export class FlowEvent<Data = unknown, Type extends string = string> {
  readonly id: string
  readonly source: string
  readonly type: Type
  readonly time: Millis
  readonly tenant: string | undefined
  readonly subject: string | undefined
  /** The time at which the store stored the event; undefined before. */
  readonly arrived: Millis | undefined
  readonly body: Uint8Array
  readonly #attributes: string
  readonly #definition: TypedEvent<Data> | undefined
  #data: { readonly value: Data } | undefined

  constructor(event: EventFields, definition?: TypedEvent<Data>) {
    this.id = event.id
    this.source = event.source
    this.type = event.type as Type
    this.time = event.time
    this.tenant = event.tenant === '' ? undefined : event.tenant
    this.subject = event.subject === '' ? undefined : event.subject
    this.arrived = event.arrived
    this.body = event.body
    this.#attributes = event.attributes
    this.#definition = definition
  }

  static {
    toView = (event, definition, changed) => {
      const { id, source, type, time, tenant = '', subject = '', arrived, body } = event
      const fields = { id, source, type, time, tenant, subject, body, attributes: event.#attributes, ...changed }
      return new FlowEvent(arrived === undefined ? fields : { ...fields, arrived }, definition)
    }
  }

  /** The body as JSON; undefined if it is not JSON. For a typed event: the output of its schema, which throws for data that it rejects. */
  get data(): Data {
    this.#data ??= { value: this.#parse() }
    return this.#data.value
  }

  #parse(): Data {
    const value = parseData(this.body)
    if (this.#definition === undefined) return value as Data
    try {
      return this.#definition.parse(value)
    } catch (error) {
      throw new SluiceError(
        'EVENT_INVALID',
        `${nameOf(this.#definition)}: ${messageOf(error)}.`,
        error,
        STORED_EVENT_FIX,
      )
    }
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
    const { id, source, type, time, tenant, subject, attributes } = this
    // The data as it was sent: a schema may reject it by now, or return something that is not JSON.
    const data = this.#definition === undefined ? this.data : parseData(this.body)
    // The sender's attributes come first, so they cannot replace the engine's fields.
    return { ...attributes, id, source, type, time, tenant, subject, data: data ?? this.text }
  }
}

/** `toTypedEvent` returns the event with the data of its definition. */
export function toTypedEvent(event: FlowEvent, definition: TypedEvent): FlowEvent {
  return toView(event, definition)
}

/** `withContent` returns the event with another type, subject or body. */
export function withContent(event: FlowEvent, changed: EventContent): FlowEvent {
  return toView(event, undefined, changed)
}
