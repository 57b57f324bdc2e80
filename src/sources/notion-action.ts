// `notionAction` receives the "Send webhook" action of Notion buttons and automations. Notion does not sign it, so a
// custom header carries a secret.
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { ParseEvents, Source } from '../receive/source.ts'
import { credentialsFault, parseHeaderSecrets } from './credentials.ts'
import { isObjectSlice, readMembers, buildObject, readWord, parseJsonSlice, type JsonSlice } from './json-slices.ts'
import { notUnderstood, signJson, type Secrets } from './signature.ts'

export interface NotionActionOptions {
  /** The name of the header configured in the action. */
  readonly header: string
  readonly secret: Secrets
}

export function notionAction(options: NotionActionOptions): Source {
  assertKnownOptions(options, ['header', 'secret'], 'notionAction: ')
  const header = parseHeaderName(options.header)
  return {
    scheme: 'notion-action',
    secrets: parseHeaderSecrets('notionAction', options.secret),
    dedupeFor: '30d',
    verify: ({ headers }, { secrets }) => credentialsFault(`${header} header`, headers[header], secrets),
    events: parseEvents,
    sign: (input) => {
      const [object = 'page'] = (input.type ?? 'page.updated').split('.')
      const source = { type: 'automation', event_id: input.id, action_id: 'test', attempt: 1 }
      const data = { object, id: '00000000-0000-4000-8000-000000000001' }
      return signJson(input, { source, data }, () => ({ [header]: input.secret }))
    },
    answer: { status: 200 },
  }
}

function parseHeaderName(header: unknown): string {
  if (typeof header === 'string' && /^[\w-]{1,100}$/.test(header)) return header.toLowerCase()
  throw invalidOption(
    `notionAction: header must be the name of a header such as 'x-secret'; got ${JSON.stringify(header)}.`,
  )
}

/** Most bodies are an envelope of source and page; some are the page alone. */
const parseEvents: ParseEvents = ({ body }) => {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const members = readMembers(json.value)
  const data = members.get('data')
  const page = readMembers(isObjectSlice(data) ? data : json.value)
  const subject = readWord(page.get('id'))
  if (subject === undefined) {
    const fix =
      'Make sure that only the "Send webhook" action of Notion calls this URL; for an integration, use notion().'
    return notUnderstood('The body has no page.', fix)
  }
  const source = readMembers(members.get('source'))
  const attempt = readWord(source.get('attempt'))
  return [
    {
      type: `${readWord(page.get('object')) ?? 'page'}.updated`,
      dedupeId: toDedupeId(source),
      body: attempt === undefined ? json.value : withoutAttempt(members, source),
      subject,
      attributes: attempt === undefined ? undefined : { attempt },
    },
  ]
}

/** One event can trigger several actions, each with its own request. */
function toDedupeId(source: ReadonlyMap<string, JsonSlice>): string | undefined {
  const [event, action] = [readWord(source.get('event_id')), readWord(source.get('action_id'))]
  return event === undefined || action === undefined ? event : `${event}/${action}`
}

/** A re-send differs only in the attempt count: with it, each re-send would be a conflict instead of a duplicate
    (L10). */
function withoutAttempt(members: ReadonlyMap<string, JsonSlice>, source: ReadonlyMap<string, JsonSlice>): Uint8Array {
  const steady = buildObject([...source].filter(([name]) => name !== 'attempt'))
  return buildObject([...members].map(([name, value]) => [name, name === 'source' ? steady : value] as const))
}
