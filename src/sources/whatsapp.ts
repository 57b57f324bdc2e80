// WhatsApp by Meta's Cloud API: one POST carries up to a thousand updates of many people, and each becomes an event of its own.
import { hash } from 'node:crypto'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { hubHandshake } from './hub-handshake.ts'
import { instantOfSeconds } from './instant.ts'
import { elementsOf, membersOf, objectText, wordIn, writtenOf, type Written } from './json-text.ts'
import { FORGED, isSigned, refusal, secretsOf, unsigned } from './signature.ts'

export interface WhatsappOptions {
  /** The app secret of the Meta app. */
  readonly secret: string | readonly string[]
  /** What was typed into Meta's form beside the address. */
  readonly verifyToken: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof WhatsappOptions>(['secret', 'verifyToken'])
const HEADER = 'x-hub-signature-256'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' } as const
/** The largest that Meta sends. */
const MAX_BODY = 3 * 1024 * 1024
/** The echo of a stranger's text must not be taken for a page. */
const PLAIN = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }

export function whatsapp(options: WhatsappOptions): Source {
  onlyKnown(options, KNOWN, 'whatsapp: ')
  const verifyTokens = secretsOf('whatsapp', options.verifyToken, 'verifyToken')
  return {
    scheme: 'whatsapp',
    secrets: secretsOf('whatsapp', options.secret),
    dedupeFor: '30d',
    maxBody: MAX_BODY,
    handshake: hubHandshake(verifyTokens, (challenge) => ({ status: 200, headers: PLAIN, body: challenge })),
    verify: ({ headers, body }, { secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return unsigned(HEADER)
      return isSigned([given], [body], secrets, MAC) ? undefined : FORGED
    },
    events: eventsOf,
    answer: { status: 200 },
  }
}

type Members = ReadonlyMap<string, Written>

/** One change of one account: the updates in it share what the number and the people are called. */
interface Change {
  readonly field: string
  readonly value: Written
  readonly account: string | undefined
  readonly time: string | undefined
}

function eventsOf({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = writtenOf(body)
  if ('code' in json) return json
  const top = membersOf(json.value)
  if (wordIn(top.get('object')) !== 'whatsapp_business_account') {
    const fix = 'Subscribe this address to WhatsApp only, in the settings of the Meta app.'
    return refusal('BODY_NOT_UNDERSTOOD', 'The object is no whatsapp_business_account.', fix)
  }
  return elementsOf(top.get('entry')).flatMap((entry) => {
    const members = membersOf(entry)
    const [account, time] = [wordIn(members.get('id')), wordIn(members.get('time'))]
    return elementsOf(members.get('changes')).flatMap((one) => {
      const change = membersOf(one)
      const value = change.get('value')
      const field = wordIn(change.get('field'))
      return value === undefined || field === undefined ? [] : updatesOf({ field, value, account, time })
    })
  })
}

function updatesOf(change: Change): readonly SourceEvent[] {
  const value = membersOf(change.value)
  const metadata = value.get('metadata')
  const contacts = contactsOf(elementsOf(value.get('contacts')))
  const messages = elementsOf(value.get('messages')).map((message) => messageEvent(message, metadata, contacts))
  const statuses = elementsOf(value.get('statuses')).map((status) => statusEvent(status, metadata, contacts))
  const errors = elementsOf(value.get('errors')).map((error) => ({
    type: 'error',
    dedupeId: hashedId(change, error),
    body: objectText([
      ['metadata', metadata],
      ['error', error],
    ]),
  }))
  const updates = [...messages, ...statuses, ...errors]
  // Templates, calls, groups and what is still to come: the change as it is, for nothing is to be lost.
  const all = updates.length > 0 ? updates : [{ type: change.field, dedupeId: hashedId(change), body: change.value }]
  const tenant = wordIn(membersOf(metadata).get('phone_number_id'))
  const time = instantOfSeconds(change.time)
  const shared = {
    ...(tenant !== undefined && { tenant }),
    ...(time !== undefined && { time }),
    ...(change.account !== undefined && { attributes: { account: change.account } }),
  }
  return all.map((update) => ({ ...shared, ...update }))
}

function messageEvent(message: Written, metadata: Written | undefined, contacts: Contacts): SourceEvent {
  const members = membersOf(message)
  const from = wordIn(members.get('from'))
  const userId = wordIn(members.get('from_user_id'))
  const contact = contactOf(contacts, userId, from)
  return {
    type: `message.${wordIn(members.get('type')) ?? 'unknown'}`,
    dedupeId: wordIn(members.get('id')),
    body: objectText([
      ['metadata', metadata],
      ['contact', contact],
      ['message', message],
    ]),
    ...happened(members, personOf(contact, userId, from)),
  }
}

/**
 * In a group each member who reads a message makes a status of its own; pages of Meta spell the member in two ways. Of one
 * request for money there may be several payments in one state: what they differ in is the payment alone.
 */
function statusEvent(status: Written, metadata: Written | undefined, contacts: Contacts): SourceEvent {
  const members = membersOf(status)
  const member = firstWord(members, 'recipient_participant_id', 'participant_recipient_id')
  const userId = firstWord(members, 'recipient_participant_user_id', 'recipient_user_id')
  const recipient = member ?? wordIn(members.get('recipient_id'))
  const contact = contactOf(contacts, userId, recipient)
  const id = wordIn(members.get('id'))
  const state = wordIn(members.get('status')) ?? 'unknown'
  const inGroup = firstWord(members, 'recipient_participant_user_id') ?? member
  const payment = members.get('payment')
  const further = [inGroup, payment && hash('sha256', payment, 'base64url')].filter((part) => part !== undefined)
  return {
    type: `status.${state}`,
    dedupeId: id === undefined ? undefined : [id, state, ...further].join('/'),
    body: objectText([
      ['metadata', metadata],
      ['contact', contact],
      ['status', status],
    ]),
    ...happened(members, personOf(contact, userId, recipient)),
  }
}

/** People by user id and by number: looked up for each of a thousand updates. */
interface Contacts {
  readonly byName: ReadonlyMap<string, Written>
  readonly only: Written | undefined
}

function contactsOf(list: readonly Written[]): Contacts {
  const byName = new Map<string, Written>()
  for (const contact of list) {
    const members = membersOf(contact)
    for (const name of ['user_id', 'wa_id']) {
      const word = wordIn(members.get(name))
      if (word !== undefined) byName.set(`${name} ${word}`, contact)
    }
  }
  return { byName, only: list.length === 1 ? list[0] : undefined }
}

/** The one that is meant; the only one there is, if it does not say. */
function contactOf(
  { byName, only }: Contacts,
  userId: string | undefined,
  phone: string | undefined,
): Written | undefined {
  if (userId === undefined && phone === undefined) return only
  return byName.get(`user_id ${userId ?? ''}`) ?? byName.get(`wa_id ${phone ?? ''}`)
}

/** Who has a user name may show no number; the user id is there for all. */
function personOf(
  contact: Written | undefined,
  userId: string | undefined,
  phone: string | undefined,
): string | undefined {
  const members = membersOf(contact)
  return wordIn(members.get('user_id')) ?? userId ?? wordIn(members.get('wa_id')) ?? phone
}

function happened(members: Members, subject: string | undefined): Pick<SourceEvent, 'subject' | 'time'> {
  const time = instantOfSeconds(wordIn(members.get('timestamp')))
  return { ...(subject !== undefined && { subject }), ...(time !== undefined && { time }) }
}

function firstWord(members: Members, ...names: readonly string[]): string | undefined {
  return names.map((name) => wordIn(members.get(name))).find((word) => word !== undefined)
}

/** Without a name of its own only the time of the entry tells a re-send from the same thing happening again. */
function hashedId({ account = '', field, value, time }: Change, part: Written = value): string | undefined {
  return time === undefined ? undefined : [account, field, time, hash('sha256', part, 'base64url')].join('/')
}
