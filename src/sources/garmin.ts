// `garmin` receives Garmin's Health API: unsigned, with the items of many people in one body. An item that comes again
// with more data is a new event.
import { hash } from 'node:crypto'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { SignRequest, ParseEvents, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { createAddressTest } from '../validate/addresses.ts'
import { credentialsFault, parseHeaderSecrets } from './credentials.ts'
import { parseUnixSeconds } from './event-names.ts'
import {
  readElements,
  isArraySlice,
  isObjectSlice,
  readMembers,
  readWord,
  parseJsonSlice,
  type JsonSlice,
} from './json-slices.ts'
import { formatSeconds, notUnderstood, refusal, signJson, type Secrets } from './signature.ts'

export interface GarminOptions {
  /** The consumer key of the app. Garmin sends it with each request, and sends no other proof. */
  readonly clientId: Secrets
  /** The addresses and networks that may send. Garmin publishes none. Without this option, all may send. */
  readonly addresses?: readonly string[]
  /** In bytes. The default is 10 MB; the maximum is 100 MB, which Garmin requires for pushed activity details. */
  readonly maxBody?: number
}

const HEADER = 'garmin-client-id'
const MEGABYTE = 1024 * 1024
const TYPE_MAX = 100
/** Far more than a body of real items holds. Without this bound, a body of empty items would be an unbounded number
    of events (R4). */
const ITEMS_MAX = 100_000

export function garmin(options: GarminOptions): Source {
  assertKnownOptions(options, ['clientId', 'addresses', 'maxBody'], 'garmin: ')
  const isAllowed = createAddressTest('garmin', options.addresses)
  return {
    scheme: 'garmin',
    secrets: parseHeaderSecrets('garmin', options.clientId, 'clientId'),
    dedupeFor: '30d',
    maxBody: parseMaxBody(options.maxBody ?? 10 * MEGABYTE),
    maxEvents: ITEMS_MAX,
    verify: ({ headers, address }, { secrets }) => {
      if (isAllowed(address)) return credentialsFault(`${HEADER} header`, headers[HEADER], secrets)
      return refusal(
        'ADDRESS_NOT_ALLOWED',
        `${address} may not send to this source.`,
        'Add it to addresses if it is Garmin.',
      )
    },
    events: parseEvents,
    sign,
    // Garmin sends again after any status but 200, for seven days.
    answer: { status: 200 },
  }
}

function parseMaxBody(bytes: number): number {
  if (Number.isSafeInteger(bytes) && bytes > 0 && bytes <= 100 * MEGABYTE) return bytes
  throw invalidOption(
    `garmin: maxBody must be a whole number of bytes from 1 to ${100 * MEGABYTE}; got ${String(bytes)}.`,
  )
}

const parseEvents: ParseEvents = ({ body }) => {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const events: SourceEvent[] = []
  let lists = 0
  for (const [type, value] of readMembers(json.value)) {
    // The value is usually a list; one receiver has seen a single object. Anything else is not data.
    if (!isArraySlice(value) && !isObjectSlice(value)) continue
    lists++
    for (const item of isArraySlice(value) ? readElements(value) : [value]) {
      if (events.length >= ITEMS_MAX) return TOO_MANY
      if (type === '' || type.length > TYPE_MAX || !type.isWellFormed() || !isObjectSlice(item)) return UNKNOWN_SHAPE
      events.push(toItemEvent(type, item))
    }
  }
  return lists === 0 ? UNKNOWN_SHAPE : events
}

const UNKNOWN_SHAPE: Refusal = notUnderstood(
  'The body must be an object with a list of items under each type.',
  'Make sure that only Garmin calls this URL.',
)

const TOO_MANY: Refusal = notUnderstood(
  `The body has more than ${ITEMS_MAX} items.`,
  'Make sure that only Garmin calls this URL.',
)

function toItemEvent(type: string, item: JsonSlice): SourceEvent {
  const members = readMembers(item)
  const [user, summary] = [readWord(members.get('userId')), readWord(members.get('summaryId'))]
  return {
    type,
    dedupeId: isDeregistration(members)
      ? undefined
      : [type, user ?? '', summary ?? '', hash('sha256', item, 'base64url')].join('/'),
    body: item,
    subject: user,
    time: parseTime(members),
  }
}

/** A deregistration names only the person. A person who leaves, returns and leaves again sends the same bytes twice. */
function isDeregistration(members: ReadonlyMap<string, JsonSlice>): boolean {
  return [...members.keys()].every((name) => name === 'userId' || name === 'userAccessToken')
}

function parseTime(members: ReadonlyMap<string, JsonSlice>): number | undefined {
  const started = members.get('startTimeInSeconds') ?? readMembers(members.get('summary')).get('startTimeInSeconds')
  return parseUnixSeconds(readWord(started ?? members.get('changeTimeInSeconds')))
}

const sign: SignRequest = (input) => {
  const item = { userId: 'test', summaryId: input.id, startTimeInSeconds: Number(formatSeconds(input.now)) }
  return signJson(input, { [input.type ?? 'activities']: [item] }, () => ({ [HEADER]: input.secret }))
}
