// `TwilioStandIn` plays Twilio: it takes messages and indicators, and signs webhooks as Twilio does.
import { createHmac } from 'node:crypto'
import type { LoggedRequest } from '../../kit/stand-in.ts'
import type { Outbox, Sent } from './outbox.ts'

export const TWILIO = { account: 'AC0123456789', authToken: 'twilio-token' } as const

type Fields = Readonly<Record<string, string>>

export class TwilioStandIn {
  readonly #outbox: Outbox

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  readonly respond = (request: LoggedRequest): Response => {
    const authorization = `Basic ${Buffer.from(`${TWILIO.account}:${TWILIO.authToken}`).toString('base64')}`
    if (request.headers.get('authorization') !== authorization) return Response.json({}, { status: 401 })
    const field = (name: string): string => new URLSearchParams(request.body).get(name) ?? ''
    if (request.path === '/v2/Indicators/Typing.json') {
      if (field('channel') !== 'whatsapp') return Response.json({ code: 20_001 }, { status: 400 })
      this.#outbox.typing.push({ at: request.at, id: field('messageId') })
      return Response.json({ success: true })
    }
    const [line, to] = [field('From'), field('To')].map((address) => address.replace('whatsapp:', '')) as [
      string,
      string,
    ]
    const { id: sid } = this.#outbox.accept('SMout', { at: request.at, line, to, text: field('Body'), run: '' })
    return Response.json({ sid, status: 'queued' }, { status: 201 })
  }

  /** What Twilio posts to `url` about a message that it has accepted; with a code, that it failed. */
  status(url: string, { id, line, to }: Sent, status: string, code?: number): RequestInit {
    const error: Fields = code === undefined ? {} : { ErrorCode: String(code) }
    const [From, To] = [`whatsapp:${line}`, `whatsapp:${to}`]
    return this.webhook(url, { MessageSid: id, MessageStatus: status, SmsStatus: status, From, To, ...error })
  }

  /** The form that Twilio posts to `url` when somebody writes. */
  webhook(url: string, fields: Fields): RequestInit {
    const all: Fields = { AccountSid: TWILIO.account, SmsStatus: 'received', NumMedia: '0', ...fields }
    const signed = Object.keys(all)
      .toSorted()
      .map((name) => name + all[name])
    const signature = createHmac('sha1', TWILIO.authToken)
      .update(url + signed.join(''))
      .digest('base64')
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': signature }
    return { method: 'POST', headers, body: new URLSearchParams(all).toString() }
  }
}
