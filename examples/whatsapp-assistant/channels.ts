// `Channel` sends to people: through Meta's Cloud API or through Twilio.
import { PermanentError, type Limit, type Run } from 'sluice'
import { z } from 'zod'
import type { Message } from './domain/message.ts'

export interface Channel {
  /** Sends a text to the person who wrote the message. Returns the id that the provider gave it; its statuses carry it. */
  send(to: Message, text: string, run: Pick<Run, 'id' | 'signal'>): Promise<string>
  /** Shows that somebody types, for 25 s or until the answer. Returns whether the provider accepted that. */
  showTyping(to: Message, signal: AbortSignal): Promise<boolean>
}

interface MetaAccess {
  readonly url: string
  readonly token: string
  readonly limit: Limit
}

interface TwilioAccess {
  readonly url: string
  readonly typingUrl: string
  readonly authToken: string
  /** The public address of our webhook, where Twilio posts the statuses. Undefined: that of the sender, set at Twilio. */
  readonly callback: string | undefined
  readonly limit: Limit
}

const META_VERSION = 'v26.0'
const metaAccepted = z.object({ messages: z.tuple([z.object({ id: z.string() })]) })
const twilioAccepted = z.object({ sid: z.string() })
const META_LENGTH_MAX = 4_096
const TWILIO_LENGTH_MAX = 1_600

/** Each line has its own rate at the provider, so each has its own limit. */
export function metaChannel({ url, token, limit }: MetaAccess): Channel {
  const post = (line: string, content: object, signal: AbortSignal): Promise<Response> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ messaging_product: 'whatsapp', ...content })
    return limit.per(line).fetch(`${url}/${META_VERSION}/${line}/messages`, { method: 'POST', headers, body, signal })
  }
  return {
    async send({ line, phone, person }, text, { id, signal }) {
      const to = phone === undefined ? { recipient: person } : { to: phone }
      const body = shorten(text, META_LENGTH_MAX)
      const content = {
        recipient_type: 'individual',
        ...to,
        type: 'text',
        text: { body },
        biz_opaque_callback_data: id,
      }
      const response = await post(line, content, signal)
      await assertAccepted('Meta', response)
      return metaAccepted.parse(await response.json()).messages[0].id
    },
    async showTyping({ line, id }, signal) {
      const content = { status: 'read', message_id: id, typing_indicator: { type: 'text' } }
      return (await post(line, content, signal)).ok
    },
  }
}

export function twilioChannel({ url, typingUrl, authToken, callback, limit }: TwilioAccess): Channel {
  const post = (to: Message, address: string, fields: Readonly<Record<string, string>>, signal: AbortSignal) => {
    const authorization = `Basic ${Buffer.from(`${to.account}:${authToken}`).toString('base64')}`
    const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams(fields), signal }
    return limit.per(to.line).fetch(address, init)
  }
  return {
    async send(to, text, { signal }) {
      const fields = {
        From: `whatsapp:${to.line}`,
        To: `whatsapp:${to.phone}`,
        Body: shorten(text, TWILIO_LENGTH_MAX),
        ...(callback !== undefined && { StatusCallback: callback }),
      }
      const address = `${url}/2010-04-01/Accounts/${to.account}/Messages.json`
      const response = await post(to, address, fields, signal)
      await assertAccepted('Twilio', response)
      return twilioAccepted.parse(await response.json()).sid
    },
    async showTyping(to, signal) {
      const fields = { messageId: to.id, channel: 'whatsapp' }
      return (await post(to, `${typingUrl}/v2/Indicators/Typing.json`, fields, signal)).ok
    },
  }
}

/** A refusal would be repeated by each further attempt. Everything else may pass. */
export async function assertAccepted(who: string, response: Response): Promise<void> {
  if (response.ok) return
  const what = `${who} responded with ${response.status}: ${(await response.text()).slice(0, 200)}`
  const isTransient = response.status >= 500 || response.status === 408 || response.status === 429
  throw isTransient ? new Error(what) : new PermanentError(what)
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}
