// `notion` receives Notion's integration webhooks. Notion signs them with a token that it generates and sends in its
// first request.
import { assertKnownOptions } from '../validate/options.ts'
import type {
  HandshakeResult,
  ReceivedRequest,
  Refusal,
  Source,
  SourceEvent,
  SignedRequest,
  SignOptions,
} from '../receive/source.ts'
import { parseTimestamp } from './instant.ts'
import { readMembers, buildObject, readText, readWord, parseJsonSlice, type JsonSlice } from './json-slices.ts'
import { WRONG_SIGNATURE, hasValidMac, refusal, parseSecrets, missingSignature } from './signature.ts'
import { computeMac, signJson } from './sign.ts'

export interface NotionOptions {
  /** The verification token. Without this option, the handshake brings the token, and the source accepts nothing
      else before it. */
  readonly secret?: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof NotionOptions>(['secret'])
const HEADER = 'x-notion-signature'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' } as const
/** A handshake contains only the token: a longer body is not parsed before verification. */
const HANDSHAKE_MAX = 2_000

export function notion(options: NotionOptions = {}): Source {
  assertKnownOptions(options, KNOWN, 'notion: ')
  // An unset environment variable must not open the source to a stranger who sends a token first.
  const isKeyed = 'secret' in options
  return {
    scheme: 'notion',
    secrets: isKeyed ? parseSecrets('notion', options.secret) : 'by-handshake',
    dedupeFor: '30d',
    handshake: { verified: false, answer: (request) => handleHandshake(request, isKeyed) },
    verify: ({ headers, body }, { secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return missingSignature(HEADER)
      return hasValidMac([given], [body], secrets, MAC) ? undefined : WRONG_SIGNATURE
    },
    events: parseEvents,
    sign,
    answer: { status: 200 },
  }
}

/** Receivers have seen the handshake both unsigned and signed with the token it brings. Both are accepted; a wrong
    signature is not. */
function handleHandshake({ method, headers, body }: ReceivedRequest, isKeyed: boolean): HandshakeResult | undefined {
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
  const given = headers[HEADER]
  if (given !== undefined && !hasValidMac([given], [body], [secret], MAC)) {
    return refuseHandshake(
      'The handshake is signed with another token than the one it contains.',
      'Make Notion send the token again.',
    )
  }
  return { kind: 'secret', secret, answer: { status: 200 } }
}

function refuseHandshake(what: string, fix: string): HandshakeResult {
  return { kind: 'refused', refusal: refusal('HANDSHAKE_REFUSED', what, fix) }
}

function parseEvents({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const members = readMembers(json.value)
  const [type, dedupeId] = [readWord(members.get('type')), readWord(members.get('id'))]
  if (type === undefined || dedupeId === undefined) {
    const fix =
      'Make sure that only an integration of Notion calls this URL; for the "Send webhook" action, use notionAction().'
    return refusal('BODY_NOT_UNDERSTOOD', 'The event has no type or no id.', fix)
  }
  return [{ type, dedupeId, body: withoutAttempt(members), ...parseDetails(members) }]
}

/** A re-send differs only in the attempt count: with it, each re-send would be a conflict instead of a duplicate
    (L10). */
function withoutAttempt(members: ReadonlyMap<string, JsonSlice>): Uint8Array {
  return buildObject([...members].filter(([name]) => name !== 'attempt_number'))
}

function parseDetails(members: ReadonlyMap<string, JsonSlice>): Omit<SourceEvent, 'type' | 'dedupeId' | 'body'> {
  const subject = readWord(readMembers(members.get('entity')).get('id'))
  const tenant = readWord(members.get('workspace_id'))
  const time = parseTimestamp(readWord(members.get('timestamp')))
  const attempt = readWord(members.get('attempt_number'))
  return {
    ...(subject !== undefined && { subject }),
    ...(tenant !== undefined && { tenant }),
    ...(time !== undefined && { time }),
    ...(attempt !== undefined && { attributes: { attempt } }),
  }
}

function sign(asked: SignOptions): SignedRequest {
  const example = {
    id: asked.id,
    timestamp: new Date(asked.now).toISOString(),
    workspace_id: '00000000-0000-4000-8000-000000000002',
    type: asked.type ?? 'page.content_updated',
    entity: { id: '00000000-0000-4000-8000-000000000001', type: 'page' },
    attempt_number: 1,
  }
  return signJson(asked, example, (body) => ({ [HEADER]: computeMac(asked.secret, [body], MAC) }))
}
