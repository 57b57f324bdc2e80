// `MetaStandIn` plays Meta's Cloud API: it takes messages and indicators, and signs webhooks as Meta does.
import { createHmac } from 'node:crypto'
import type { Clock } from 'sluice'
import type { LoggedRequest } from '../../kit/stand-in.ts'
import type { Outbox, Sent } from './outbox.ts'

export const META = { secret: 'meta-app-secret', verifyToken: 'meta-verify-token', token: 'meta-token' } as const

/** A person who writes. Without a phone number, Meta only gives their scoped id. */
export interface Person {
  readonly name: string
  readonly userId: string
  readonly phone?: string
}

export interface Written {
  readonly person: Person
  readonly id: string
  readonly text?: string
  /** Instead of a text, e.g. `{ type: 'image', image: { id: '1', mime_type: 'image/jpeg' } }`. */
  readonly content?: Readonly<Record<string, unknown>>
  /** When it was sent, in milliseconds since 1970. */
  readonly at: number
}

const WINDOW = 24 * 3_600_000
/** Meta's error for free text more than 24 hours after the person's last message. */
const RE_ENGAGEMENT = { error: { message: 'Re-engagement message', code: 131_047 } }

/** Webhooks of Meta carry no milliseconds. */
export function toWholeSeconds(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000
}

export class MetaStandIn {
  readonly #clock: Clock
  readonly #outbox: Outbox
  /** When each person wrote last. */
  readonly #last = new Map<string, number>()
  /** Responds in place of the stand-in, e.g. with an error. Undefined: not this time. */
  fail: (request: LoggedRequest) => Response | undefined = () => undefined
  /** How long it takes to accept a message, in milliseconds. */
  takes = 0
  /** How long it takes to say that it has accepted this message, in milliseconds. */
  hangs: (sent: Sent) => number = () => 0

  constructor(clock: Clock, outbox: Outbox) {
    this.#clock = clock
    this.#outbox = outbox
  }

  readonly respond = async (request: LoggedRequest): Promise<Response> => {
    await this.#pass(this.takes)
    const failure = this.fail(request)
    if (failure !== undefined) return failure
    if (request.headers.get('authorization') !== `Bearer ${META.token}`) return Response.json({}, { status: 401 })
    const body = request.json() as Readonly<Record<string, unknown>>
    const [, , line = ''] = request.path.split('/')
    if (body['typing_indicator'] !== undefined) {
      this.#outbox.typing.push({ at: request.at, id: String(body['message_id']) })
      return Response.json({ success: true })
    }
    const to = String(body['to'] ?? body['recipient'])
    const last = this.#last.get(to)
    if (last === undefined || this.#clock.now() - last > WINDOW) return Response.json(RE_ENGAGEMENT, { status: 400 })
    const { body: text } = body['text'] as { body: string }
    const run = String(body['biz_opaque_callback_data'])
    const sent = this.#outbox.accept('wamid.out', { at: request.at, line, to, text, run })
    await this.#pass(this.hangs(sent))
    return Response.json({ messaging_product: 'whatsapp', contacts: [{ input: to }], messages: [{ id: sent.id }] })
  }

  /** One POST with all these messages to one line, in this order. */
  webhook(line: string, written: readonly Written[]): RequestInit {
    for (const { person, at } of written) this.#last.set(person.phone ?? person.userId, at)
    const contacts = [...new Set(written.map(({ person }) => person))].map(({ name, userId, phone }) => ({
      profile: { name },
      user_id: userId,
      ...(phone !== undefined && { wa_id: phone }),
    }))
    const messages = written.map(({ person, id, text, content, at }) => ({
      ...(person.phone !== undefined && { from: person.phone }),
      from_user_id: person.userId,
      id,
      timestamp: String(toWholeSeconds(at) / 1_000),
      ...(content ?? { type: 'text', text: { body: text } }),
    }))
    return this.#sign(line, { contacts, messages })
  }

  /** What Meta reports about a message that it has accepted; with a code, that it failed. */
  status({ id, line, to }: Pick<Sent, 'id' | 'line' | 'to'>, status: string, code?: number): RequestInit {
    const timestamp = String(Math.floor(this.#clock.now() / 1_000))
    const errors = code === undefined ? {} : { errors: [{ code, title: `Error ${code}` }] }
    return this.#sign(line, { statuses: [{ id, status, timestamp, recipient_id: to, ...errors }] })
  }

  async #pass(ms: number): Promise<void> {
    if (ms > 0) await new Promise<void>((resolve) => void this.#clock.after(ms, resolve))
  }

  #sign(line: string, content: object): RequestInit {
    const metadata = { display_phone_number: line, phone_number_id: line }
    const value = { messaging_product: 'whatsapp', metadata, ...content }
    const entry = [{ id: 'account', changes: [{ field: 'messages', value }] }]
    const body = JSON.stringify({ object: 'whatsapp_business_account', entry })
    const signature = `sha256=${createHmac('sha256', META.secret).update(body).digest('hex')}`
    return { method: 'POST', headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature }, body }
  }
}
