// `Message` is what a person wrote, whichever provider brought it.
import type { FlowEvent } from 'sluice'
import { z } from 'zod'
import type { Settings } from './settings.ts'

export interface Message {
  readonly channel: 'meta' | 'twilio'
  /** Of the provider: wamid.… or SM…. */
  readonly id: string
  /** The line that the person wrote to: Meta's phone_number_id, or the number at Twilio. */
  readonly line: string
  /** The Twilio account, which its API needs. */
  readonly account: string
  readonly person: string
  /** The phone number; undefined for a person who hides it. */
  readonly phone: string | undefined
  readonly text: string
  /** When the person sent it, by the provider's clock if the provider says so. */
  readonly at: number
}

/** A message with the settings that its tenant had when it arrived. */
export interface ChatMessage extends Message {
  readonly settings: Settings
}

/** As much of Meta's webhooks as is read here. */
const metaBody = z.object({
  metadata: z.object({ phone_number_id: z.string() }),
  contact: z.object({ wa_id: z.string().optional() }).optional(),
  message: z.looseObject({
    id: z.string(),
    type: z.string(),
    from: z.string().optional(),
    text: z.object({ body: z.string() }).optional(),
    button: z.object({ text: z.string() }).optional(),
    interactive: z.record(z.string(), z.unknown()).optional(),
  }),
})
/** The fields of Twilio's form. */
const twilioFields = z.record(z.string(), z.string().optional())

/** These are about the conversation and need no answer. */
const WITHOUT_ANSWER: ReadonlySet<string> = new Set(['reaction', 'system', 'unsupported', 'unknown', 'ephemeral'])

/** Returns undefined for what needs no answer. */
export function toMessage(event: FlowEvent): Message | undefined {
  return event.source === 'twilio' ? fromTwilio(event) : fromMeta(event)
}

/** The lane of the person before their message was read. */
export function senderOf(event: FlowEvent): string | undefined {
  if (event.source === 'whatsapp') return JSON.stringify([event.tenant, event.subject])
  const { From, To } = twilioFields.parse(event.data)
  return From === undefined ? undefined : JSON.stringify([event.tenant, To, From])
}

function fromMeta({ data, subject, time }: FlowEvent): Message | undefined {
  const { metadata, contact, message } = metaBody.parse(data)
  if (WITHOUT_ANSWER.has(message.type) || subject === undefined) return undefined
  return {
    channel: 'meta',
    id: message.id,
    line: metadata.phone_number_id,
    account: '',
    person: subject,
    phone: message.from ?? contact?.wa_id,
    text: textOfMeta(message),
    at: time,
  }
}

function textOfMeta(message: z.infer<typeof metaBody>['message']): string {
  const { type, text, button, interactive } = message
  if (text !== undefined) return text.body
  if (button !== undefined) return button.text
  const choice = Object.values(interactive ?? {}).find((value) => typeof value === 'object') as { title?: string }
  if (interactive !== undefined) return choice?.title ?? reference(type, {})
  const content = (message[type] ?? {}) as Readonly<Record<string, unknown>>
  const caption = content['caption']
  return joinWords(typeof caption === 'string' ? caption : '', reference(type, content))
}

/** A photo is passed on as a reference. A handler that needs its bytes fetches them with the id. */
function reference(type: string, content: Readonly<Record<string, unknown>>): string {
  const { id, mime_type: mime, latitude, longitude, name, address } = content
  if (type === 'location') return place([latitude, longitude], [name, address])
  const words = [type, id, mime].filter((word) => typeof word === 'string')
  return `<${words.join(' ')}>`
}

function place(coordinates: readonly unknown[], names: readonly unknown[]): string {
  const known = names.filter((name) => typeof name === 'string' && name !== '')
  return `<${joinWords('location', coordinates.join(), known.join(', '))}>`
}

function fromTwilio({ data, tenant = '', time, arrived }: FlowEvent): Message | undefined {
  const fields = twilioFields.parse(data)
  const { MessageSid = '', From = '', To = '', Body = '', NumMedia = '0', DateCreated } = fields
  const { Latitude, Longitude, Label, Address } = fields
  const location = Latitude === undefined ? '' : place([Latitude, Longitude], [Label, Address])
  const media = Array.from({ length: Number(NumMedia) }, (_, n) => {
    const [url, type] = [fields[`MediaUrl${n}`], fields[`MediaContentType${n}`]]
    return `<media ${url ?? ''}${type === undefined ? '' : ` ${type}`}>`
  })
  const phone = From.replace(/^whatsapp:/, '')
  return {
    channel: 'twilio',
    id: MessageSid,
    line: To.replace(/^whatsapp:/, ''),
    account: tenant,
    person: phone,
    phone,
    text: joinWords(Body, ...media, location),
    // Twilio says no time. The store's clock is the same for all processes.
    at: DateCreated === undefined ? (arrived ?? time) : time,
  }
}

function joinWords(...words: readonly string[]): string {
  return words.filter((word) => word !== '').join(' ')
}
