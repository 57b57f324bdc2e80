// Garmin's Health API: unsigned, items of many people in one body, and an item that comes again with more in it is new data.
import { hash } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { addressList } from './address-list.ts'
import { credentialsFault, headerSecretsOf } from './credentials.ts'
import { instantOfSeconds } from './instant.ts'
import { elementsOf, isWrittenList, isWrittenObject, membersOf, wordIn, writtenOf, type Written } from './json-text.ts'
import { refusal } from './signature.ts'

export interface GarminOptions {
  /** The consumer key of the app: Garmin sends it with each request, and nothing else that proves anything. */
  readonly clientId: string | readonly string[]
  /** Addresses and networks that may send. Garmin publishes none; left out, all may. */
  readonly addresses?: readonly string[]
  /** In bytes, 10 MB unless said, up to 100 MB, which Garmin asks for if activity details are pushed. */
  readonly maxBody?: number
}

const KNOWN: ReadonlySet<string> = new Set<keyof GarminOptions>(['clientId', 'addresses', 'maxBody'])
const HEADER = 'garmin-client-id'
const MEGABYTE = 1024 * 1024
const TYPE_MAX = 100
/** Far above what fits into a body of real items; without it, a body of empty ones would be events without end (R4). */
const ITEMS_MAX = 100_000

export function garmin(options: GarminOptions): Source {
  onlyKnown(options, KNOWN, 'garmin: ')
  const isAllowed = addressList('garmin', options.addresses)
  return {
    scheme: 'garmin',
    secrets: headerSecretsOf('garmin', options.clientId, 'clientId'),
    dedupeFor: '30d',
    maxBody: maxBodyOf(options.maxBody ?? 10 * MEGABYTE),
    maxEvents: ITEMS_MAX,
    verify: ({ headers, address }, { secrets }) => {
      if (isAllowed(address)) return credentialsFault(`${HEADER} header`, headers[HEADER], secrets)
      return refusal(
        'ADDRESS_NOT_ALLOWED',
        `${address} may not send to this source.`,
        'Add it to addresses if it is Garmin.',
      )
    },
    events: eventsOf,
    // Anything but 200 is sent again, for seven days.
    answer: { status: 200 },
  }
}

function maxBodyOf(bytes: number): number {
  if (Number.isSafeInteger(bytes) && bytes > 0 && bytes <= 100 * MEGABYTE) return bytes
  throw new SluiceError(
    'CONFIG_INVALID',
    `garmin: maxBody is ${String(bytes)}, not a number of bytes up to ${100 * MEGABYTE}.`,
  )
}

function eventsOf({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = writtenOf(body)
  if ('code' in json) return json
  const events: SourceEvent[] = []
  let lists = 0
  for (const [type, value] of membersOf(json.value)) {
    // A list as a rule; one receiver has seen the object alone. What is neither is no data.
    if (!isWrittenList(value) && !isWrittenObject(value)) continue
    lists++
    for (const item of isWrittenList(value) ? elementsOf(value) : [value]) {
      if (events.length >= ITEMS_MAX) return TOO_MANY
      if (type === '' || type.length > TYPE_MAX || !type.isWellFormed() || !isWrittenObject(item)) return STRANGE
      events.push(itemEvent(type, item))
    }
  }
  return lists === 0 ? STRANGE : events
}

const STRANGE: Refusal = refusal(
  'BODY_NOT_UNDERSTOOD',
  'The body is no object with a list of items under each type.',
  'Only Garmin is to call this address.',
)

const TOO_MANY: Refusal = refusal(
  'BODY_NOT_UNDERSTOOD',
  `There are more than ${ITEMS_MAX} items in it.`,
  'Only Garmin is to call this address.',
)

function itemEvent(type: string, item: Written): SourceEvent {
  const members = membersOf(item)
  const [user, summary] = [wordIn(members.get('userId')), wordIn(members.get('summaryId'))]
  const time = timeOf(members)
  return {
    type,
    dedupeId: isBare(members)
      ? undefined
      : [type, user ?? '', summary ?? '', hash('sha256', item, 'base64url')].join('/'),
    body: item,
    ...(user !== undefined && { subject: user }),
    ...(time !== undefined && { time }),
  }
}

/** A deregistration names the person and nothing else: who leaves, comes back and leaves again sends the same bytes twice. */
function isBare(members: ReadonlyMap<string, Written>): boolean {
  return [...members.keys()].every((name) => name === 'userId' || name === 'userAccessToken')
}

function timeOf(members: ReadonlyMap<string, Written>): number | undefined {
  const started = members.get('startTimeInSeconds') ?? membersOf(members.get('summary')).get('startTimeInSeconds')
  return instantOfSeconds(wordIn(started ?? members.get('changeTimeInSeconds')))
}
