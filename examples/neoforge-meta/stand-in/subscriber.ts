// `SubscriberStandIn` plays a subscriber: it keeps each POST of a batch with what it thinks of it, and responds as its health allows.
import { createHmac } from 'node:crypto'
import type { Clock, Millis } from 'sluice'

/** Of all subscribers; the design registers with it. */
export const SECRET = 'shared-secret-key'

export interface WebhookEvent {
  readonly id: string
  readonly eventType: string
  readonly component: string
  readonly componentVersion: string
  readonly createdAt: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface Received {
  readonly path: string
  /** On the clock that only goes forward. */
  readonly at: Millis
  /** The same in all attempts. */
  readonly batch: string
  /** 1 for the first attempt that arrived. */
  readonly attempt: number
  readonly headers: Headers
  readonly text: string
  readonly events: readonly WebhookEvent[]
  readonly isSigned: boolean
  status: number
}

/** Returns the response to a batch. Whatever it returns, the subscriber has seen the batch. */
export type Behaviour = (received: Received) => Response | Promise<Response>

/** `good` takes every batch. */
export const good: Behaviour = () => new Response('')
/** `flaky` takes each batch, but its first answer says otherwise. */
export const flaky: Behaviour = ({ attempt }) => new Response('', { status: attempt === 1 ? 500 : 200 })
/** `dead` takes nothing. */
export const dead: Behaviour = () => new Response('out of order', { status: 500 })

export class SubscriberStandIn {
  readonly received: Received[] = []
  behaviour: Behaviour
  /** Whether it echoes the challenge of a registration. */
  provesItself = true
  readonly #clock: Clock
  readonly #tell: (what: string) => void

  constructor(clock: Clock, behaviour: Behaviour, tell: (what: string) => void) {
    this.#clock = clock
    this.behaviour = behaviour
    this.#tell = tell
  }

  readonly handle = async (request: Request): Promise<Response> => {
    const { pathname: path } = new URL(request.url)
    const text = await request.text()
    const body = JSON.parse(text) as {
      readonly type?: string
      readonly data?: { readonly challenge: string }
      readonly events?: readonly WebhookEvent[]
    }
    if (body.type === 'endpoint.challenge') {
      return this.provesItself ? Response.json({ challenge: body.data?.challenge }) : new Response('')
    }
    const { headers } = request
    const batch = headers.get('webhook-id') ?? ''
    const attempt = this.received.filter((one) => one.batch === batch).length + 1
    const signature = createHmac('sha256', SECRET).update(text).digest('hex')
    const isSigned = headers.get('x-webhook-signature') === signature
    const events = body.events ?? []
    const received = { path, at: this.#clock.monotonic(), batch, attempt, headers, text, events, isSigned, status: 0 }
    this.received.push(received)
    const response = await this.behaviour(received)
    received.status = response.status
    const few = events.length === 0 ? text.slice(0, 80) : events.map(shortly).join(', ')
    const shown = events.length > 4 ? `${events.length} events` : few
    this.#tell(`${response.status} to attempt ${attempt} of ${batch.slice(0, 8)}: ${shown}`)
    return response
  }
}

function shortly({ eventType, component, componentVersion }: WebhookEvent): string {
  return `${eventType} ${component} ${componentVersion}`
}
