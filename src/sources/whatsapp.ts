// `whatsapp` receives Meta's Cloud API: one POST carries up to a thousand updates of many people, and each becomes one
// event.
import { hash } from 'node:crypto'
import { assertKnownOptions } from '../validate/options.ts'
import type { SignRequest, ParseEvents, Source, SourceEvent } from '../receive/source.ts'
import { parseUnixSeconds } from './event-names.ts'
import { createHubHandshake } from './handshake.ts'
import { readElements, readMembers, buildObject, readWord, parseJsonSlice, type JsonSlice } from './json-slices.ts'
import { createBodySignature, formatSeconds, notUnderstood, parseSecrets, signJson, type Secrets } from './signature.ts'

export interface WhatsappOptions {
  /** The app secret of the Meta app. */
  readonly secret: Secrets
  /** The token entered in Meta's form beside the address. */
  readonly verifyToken: Secrets
}

const SIGNATURE = createBodySignature('x-hub-signature-256', {
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
})
/** The largest body that Meta sends. */
const MAX_BODY = 3 * 1024 * 1024
/** A browser must not render the echoed challenge, which a stranger may have sent, as a page. */
const PLAIN = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }

export function whatsapp(options: WhatsappOptions): Source {
  assertKnownOptions(options, ['secret', 'verifyToken'], 'whatsapp: ')
  const verifyTokens = parseSecrets('whatsapp', options.verifyToken, 'verifyToken')
  return {
    scheme: 'whatsapp',
    secrets: parseSecrets('whatsapp', options.secret),
    dedupeFor: '30d',
    maxBody: MAX_BODY,
    handshake: createHubHandshake(verifyTokens, (challenge) => ({ status: 200, headers: PLAIN, body: challenge })),
    verify: SIGNATURE.verify,
    events: parseEvents,
    sign,
    answer: { status: 200 },
  }
}

type Members = ReadonlyMap<string, JsonSlice>

/** One change of one account: its updates share the phone number and the contacts. */
interface Change {
  readonly field: string
  readonly value: JsonSlice
  readonly account: string | undefined
  readonly time: string | undefined
}

const parseEvents: ParseEvents = ({ body }) => {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const top = readMembers(json.value)
  if (readWord(top.get('object')) !== 'whatsapp_business_account') {
    const fix = 'Subscribe this address to WhatsApp only, in the settings of the Meta app.'
    return notUnderstood('The object must be whatsapp_business_account.', fix)
  }
  return readElements(top.get('entry')).flatMap((entry) => {
    const members = readMembers(entry)
    const [account, time] = [readWord(members.get('id')), readWord(members.get('time'))]
    return readElements(members.get('changes')).flatMap((one) => {
      const change = readMembers(one)
      const value = change.get('value')
      const field = readWord(change.get('field'))
      return value === undefined || field === undefined ? [] : parseUpdates({ field, value, account, time })
    })
  })
}

function parseUpdates(change: Change): readonly SourceEvent[] {
  const value = readMembers(change.value)
  const metadata = value.get('metadata')
  const contacts = readContacts(readElements(value.get('contacts')))
  const messages = readElements(value.get('messages')).map((message) => toMessageEvent(message, metadata, contacts))
  const statuses = readElements(value.get('statuses')).map((status) => toStatusEvent(status, metadata, contacts))
  const errors = readElements(value.get('errors')).map((error) => ({
    type: 'error',
    dedupeId: hashedId(change, error),
    body: buildObject([
      ['metadata', metadata],
      ['error', error],
    ]),
  }))
  const updates: readonly SourceEvent[] = [...messages, ...statuses, ...errors]
  // Other changes (templates, calls, groups, future kinds) become one event with the unchanged value, so that nothing
  // is lost.
  const all: readonly SourceEvent[] =
    updates.length > 0 ? updates : [{ type: change.field, dedupeId: hashedId(change), body: change.value }]
  const shared = {
    tenant: readWord(readMembers(metadata).get('phone_number_id')),
    attributes: change.account === undefined ? undefined : { account: change.account },
  }
  const time = parseUnixSeconds(change.time)
  return all.map((update) => ({ ...update, ...shared, time: update.time ?? time }))
}

function toMessageEvent(message: JsonSlice, metadata: JsonSlice | undefined, contacts: Contacts): SourceEvent {
  const members = readMembers(message)
  const from = readWord(members.get('from'))
  const userId = readWord(members.get('from_user_id'))
  const contact = findContact(contacts, userId, from)
  return {
    type: `message.${readWord(members.get('type')) ?? 'unknown'}`,
    dedupeId: readWord(members.get('id')),
    body: buildObject([
      ['metadata', metadata],
      ['contact', contact],
      ['message', message],
    ]),
    subject: findPerson(contact, userId, from),
    time: parseUnixSeconds(readWord(members.get('timestamp'))),
  }
}

/** In a group, each member who reads a message causes its own status; Meta's documentation spells the member in two
    ways. One payment request may have several payments in the same state, which differ only in the payment. */
function toStatusEvent(status: JsonSlice, metadata: JsonSlice | undefined, contacts: Contacts): SourceEvent {
  const members = readMembers(status)
  const member = readFirstWord(members, 'recipient_participant_id', 'participant_recipient_id')
  const userId = readFirstWord(members, 'recipient_participant_user_id', 'recipient_user_id')
  const recipient = member ?? readWord(members.get('recipient_id'))
  const contact = findContact(contacts, userId, recipient)
  const id = readWord(members.get('id'))
  const state = readWord(members.get('status')) ?? 'unknown'
  const inGroup = readFirstWord(members, 'recipient_participant_user_id') ?? member
  const payment = members.get('payment')
  const further = [inGroup, payment && hash('sha256', payment, 'base64url')].filter((part) => part !== undefined)
  return {
    type: `status.${state}`,
    dedupeId: id === undefined ? undefined : [id, state, ...further].join('/'),
    body: buildObject([
      ['metadata', metadata],
      ['contact', contact],
      ['status', status],
    ]),
    subject: findPerson(contact, userId, recipient),
    time: parseUnixSeconds(readWord(members.get('timestamp'))),
  }
}

/** Contacts by user id and by number: they are looked up for each of a thousand updates. */
interface Contacts {
  readonly byName: ReadonlyMap<string, JsonSlice>
  readonly only: JsonSlice | undefined
}

function readContacts(list: readonly JsonSlice[]): Contacts {
  const byName = new Map<string, JsonSlice>()
  for (const contact of list) {
    const members = readMembers(contact)
    for (const name of ['user_id', 'wa_id']) {
      const word = readWord(members.get(name))
      if (word !== undefined) byName.set(`${name} ${word}`, contact)
    }
  }
  return { byName, only: list.length === 1 ? list[0] : undefined }
}

/** `findContact` returns the contact with the given ids, or the only contact if no id is given. */
function findContact(
  { byName, only }: Contacts,
  userId: string | undefined,
  phone: string | undefined,
): JsonSlice | undefined {
  if (userId === undefined && phone === undefined) return only
  return byName.get(`user_id ${userId ?? ''}`) ?? byName.get(`wa_id ${phone ?? ''}`)
}

/** A person with a user name may hide the number. Everybody has a user id. */
function findPerson(
  contact: JsonSlice | undefined,
  userId: string | undefined,
  phone: string | undefined,
): string | undefined {
  const members = readMembers(contact)
  return readWord(members.get('user_id')) ?? userId ?? readWord(members.get('wa_id')) ?? phone
}

function readFirstWord(members: Members, ...names: readonly string[]): string | undefined {
  return names.map((name) => readWord(members.get(name))).find((word) => word !== undefined)
}

/** Without an id, only the time of the entry distinguishes a re-send from a repeated change. */
function hashedId({ account = '', field, value, time }: Change, part: JsonSlice = value): string | undefined {
  return time === undefined ? undefined : [account, field, time, hash('sha256', part, 'base64url')].join('/')
}

const sign: SignRequest = (input) => {
  const { id, type = 'text', now } = input
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550199', phone_number_id: '1' },
    contacts: [{ profile: { name: 'Test' }, wa_id: '15550100' }],
    messages: [{ from: '15550100', id: `wamid.${id}`, timestamp: formatSeconds(now), type, text: { body: 'A test.' } }],
  }
  const entry = [{ id: '1', changes: [{ field: 'messages', value }] }]
  return signJson(input, { object: 'whatsapp_business_account', entry }, (body) => SIGNATURE.sign(input.secret, body))
}
