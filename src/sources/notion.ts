// `notion` receives Notion's integration webhooks. Notion signs them with a token that it generates and sends in its
// first request.
import { assertKnownOptions } from '../validate/options.ts'
import type { SignRequest, ParseEvents, HandshakeResult, ReceivedRequest, Source } from '../receive/source.ts'
import { parseTimestamp } from './event-names.ts'
import { refuseHandshake } from './handshake.ts'
import { readMembers, buildObject, readText, readWord, parseJsonSlice, type JsonSlice } from './json-slices.ts'
import { createBodySignature, notUnderstood, parseSecrets, signJson, type Secrets } from './signature.ts'

export interface NotionOptions {
  /** The verification token. Without this option, the handshake brings the token, and the source accepts nothing
      else before it. */
  readonly secret?: Secrets
}

const HEADER = 'x-notion-signature'
const SIGNATURE = createBodySignature(HEADER, { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' })
/** A handshake contains only the token: a longer body is not parsed before verification. */
const HANDSHAKE_MAX = 2_000

export function notion(options: NotionOptions = {}): Source {
  assertKnownOptions(options, ['secret'], 'notion: ')
  // An unset environment variable must not open the source to a stranger who sends a token first.
  const isKeyed = 'secret' in options
  return {
    scheme: 'notion',
    secrets: isKeyed ? parseSecrets('notion', options.secret) : 'by-handshake',
    dedupeFor: '30d',
    handshake: { verified: false, answer: (request) => handleHandshake(request, isKeyed) },
    verify: SIGNATURE.verify,
    events: parseEvents,
    sign,
    answer: { status: 200 },
  }
}

/** Receivers have seen the handshake both unsigned and signed with the token it brings. Both are accepted; a wrong
    signature is not. */
function handleHandshake(request: ReceivedRequest, isKeyed: boolean): HandshakeResult | undefined {
  const { method, headers, body } = request
  if (method !== 'POST' || body.length > HANDSHAKE_MAX) return undefined
  const json = parseJsonSlice(body)
  if ('code' in json) return undefined
  const members = readMembers(json.value)
  if (!members.has('verification_token') || members.has('type')) return undefined
  if (isKeyed) {
    return refuseHandshake(
      'The token of the source is configured; no request can change it.',
      'Set secret to the new token, or omit secret.',
    )
  }
  const secret = readText(members.get('verification_token')) ?? ''
  if (secret.trim() === '' || !secret.isWellFormed())
    return refuseHandshake('The token is empty.', 'Make Notion send the token again.')
  const isSigned = headers[HEADER] !== undefined
  if (isSigned && SIGNATURE.verify(request, { secrets: [secret] }) !== undefined) {
    return refuseHandshake(
      'The handshake is signed with another token than the one it contains.',
      'Make Notion send the token again.',
    )
  }
  return { kind: 'secret', secret, answer: { status: 200 } }
}

const parseEvents: ParseEvents = ({ body }) => {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const members = readMembers(json.value)
  const [type, dedupeId] = [readWord(members.get('type')), readWord(members.get('id'))]
  if (type === undefined || dedupeId === undefined) {
    const fix =
      'Make sure that only an integration of Notion calls this URL; for the "Send webhook" action, use notionAction().'
    return notUnderstood('The event has no type or no id.', fix)
  }
  const attempt = readWord(members.get('attempt_number'))
  return [
    {
      type,
      dedupeId,
      body: withoutAttempt(members),
      subject: readWord(readMembers(members.get('entity')).get('id')),
      tenant: readWord(members.get('workspace_id')),
      time: parseTimestamp(readWord(members.get('timestamp'))),
      attributes: attempt === undefined ? undefined : { attempt },
    },
  ]
}

/** A re-send differs only in the attempt count: with it, each re-send would be a conflict instead of a duplicate
    (L10). */
function withoutAttempt(members: ReadonlyMap<string, JsonSlice>): Uint8Array {
  return buildObject([...members].filter(([name]) => name !== 'attempt_number'))
}

const sign: SignRequest = (input) => {
  const example = {
    id: input.id,
    timestamp: new Date(input.now).toISOString(),
    workspace_id: '00000000-0000-4000-8000-000000000002',
    type: input.type ?? 'page.content_updated',
    entity: { id: '00000000-0000-4000-8000-000000000001', type: 'page' },
    attempt_number: 1,
  }
  return signJson(input, example, (body) => SIGNATURE.sign(input.secret, body))
}
