// Notion's "Send webhook" action of buttons and automations: nothing signs it, so a header of one's own carries a secret.
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { credentialsFault, headerSecretsOf } from './credentials.ts'
import { isWrittenObject, membersOf, objectText, wordIn, writtenOf, type Written } from './json-text.ts'
import { refusal } from './signature.ts'

export interface NotionActionOptions {
  /** The name of the header that the action was told to send. */
  readonly header: string
  readonly secret: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof NotionActionOptions>(['header', 'secret'])

export function notionAction(options: NotionActionOptions): Source {
  onlyKnown(options, KNOWN, 'notionAction: ')
  const header = headerOf(options.header)
  return {
    scheme: 'notion-action',
    secrets: headerSecretsOf('notionAction', options.secret),
    dedupeFor: '30d',
    verify: ({ headers }, { secrets }) => credentialsFault(`${header} header`, headers[header], secrets),
    sender: { proof: { kind: 'header', header } },
    events: eventsOf,
    answer: { status: 200 },
  }
}

function headerOf(header: unknown): string {
  if (typeof header === 'string' && /^[\w-]{1,100}$/.test(header)) return header.toLowerCase()
  throw new SluiceError(
    'CONFIG_INVALID',
    `notionAction: header is ${JSON.stringify(header)}, not the name of a header such as 'x-secret'.`,
  )
}

/** Most bodies are an envelope of source and page; some are the page alone. */
function eventsOf({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = writtenOf(body)
  if ('code' in json) return json
  const members = membersOf(json.value)
  const data = members.get('data')
  const page = membersOf(isWrittenObject(data) ? data : json.value)
  const subject = wordIn(page.get('id'))
  if (subject === undefined) {
    const fix = 'Only the "Send webhook" action of Notion is to call this address; an integration is notion.'
    return refusal('BODY_NOT_UNDERSTOOD', 'There is no page in it.', fix)
  }
  const source = membersOf(members.get('source'))
  const attempt = wordIn(source.get('attempt'))
  const named = {
    type: `${wordIn(page.get('object')) ?? 'page'}.updated`,
    dedupeId: dedupeIdOf(source),
    body: attempt === undefined ? json.value : withoutAttempt(members, source),
    subject,
  }
  return [attempt === undefined ? named : { ...named, attributes: { attempt } }]
}

/** One event can set off several actions, each of which is a request of its own. */
function dedupeIdOf(source: ReadonlyMap<string, Written>): string | undefined {
  const [event, action] = [wordIn(source.get('event_id')), wordIn(source.get('action_id'))]
  return event === undefined || action === undefined ? event : `${event}/${action}`
}

/** The count of tries is all in which a re-send differs: with it each would be a conflict, not a duplicate (L10). */
function withoutAttempt(members: ReadonlyMap<string, Written>, source: ReadonlyMap<string, Written>): Uint8Array {
  const steady = objectText([...source].filter(([name]) => name !== 'attempt'))
  return objectText([...members].map(([name, value]) => [name, name === 'source' ? steady : value] as const))
}
