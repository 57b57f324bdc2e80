// An event as code sees it: the bytes are kept as they came, text and JSON are made when somebody asks.
import type { Millis } from '../clock.ts'
import { ADDRESSEE, dataOf, textOf, type Event } from './event.ts'

export class FlowEvent {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: Millis
  readonly tenant: string | undefined
  readonly subject: string | undefined
  /** When the store took it in; undefined until then. */
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

  /** The body as JSON; undefined when it is not JSON. */
  get data(): unknown {
    this.#data ??= { value: dataOf(this.body) }
    return this.#data.value
  }

  get text(): string {
    return textOf(this.body)
  }

  /** Further CloudEvents attributes. */
  get attributes(): Readonly<Record<string, unknown>> {
    return this.#attributes === '' ? {} : (JSON.parse(this.#attributes) as Record<string, unknown>)
  }

  /** The one endpoint it is for; undefined: whoever asked for it. */
  get addressee(): string | undefined {
    // Of very many hardly one has it: a look is cheaper than to read them.
    const named = this.#attributes.includes(ADDRESSEE) ? this.attributes[ADDRESSEE] : undefined
    return typeof named === 'string' ? named : undefined
  }

  toJSON(): Readonly<Record<string, unknown>> {
    const { id, source, type, time, tenant, subject, data, attributes } = this
    // Names of a sender's own come first: none of them takes the place of ours.
    return { ...attributes, id, source, type, time, tenant, subject, data: data ?? this.text }
  }
}
