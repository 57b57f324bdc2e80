// Notion's integration webhooks: signed with a token that Notion makes up and sends in its first request.
import { onlyKnown } from '../model/options.ts'
import type { HandshakeResult, ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { instantOfText } from './instant.ts'
import { membersOf, objectText, textIn, wordIn, writtenOf, type Written } from './json-text.ts'
import { FORGED, isSigned, refusal, secretsOf, unsigned } from './signature.ts'

export interface NotionOptions {
  /** The verification token. Left out: the handshake brings it, and until then nothing else is taken. */
  readonly secret?: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof NotionOptions>(['secret'])
const HEADER = 'x-notion-signature'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' } as const
/** A handshake has nothing but the token in it: nobody makes us read more than this for nothing. */
const HANDSHAKE_MAX = 2_000

export function notion(options: NotionOptions = {}): Source {
  onlyKnown(options, KNOWN, 'notion: ')
  // An environment variable that is not set must not open the source to whoever sends a token first.
  const isKeyed = 'secret' in options
  return {
    scheme: 'notion',
    secrets: isKeyed ? secretsOf('notion', options.secret) : 'by-handshake',
    dedupeFor: '30d',
    handshake: { verified: false, answer: (request) => greeting(request, isKeyed) },
    verify: ({ headers, body }, { secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return unsigned(HEADER)
      return isSigned([given], [body], secrets, MAC) ? undefined : FORGED
    },
    events: eventsOf,
    answer: { status: 200 },
  }
}

/** Some saw it signed, with the very token it brings, others not: both are taken, a wrong signature is not. */
function greeting({ method, headers, body }: ReceivedRequest, isKeyed: boolean): HandshakeResult | undefined {
  if (method !== 'POST' || body.length > HANDSHAKE_MAX) return undefined
  const json = writtenOf(body)
  if ('code' in json) return undefined
  const members = membersOf(json.value)
  if (!members.has('verification_token') || members.has('type')) return undefined
  if (isKeyed) {
    return refused(
      'The source was given its token; no request can change it.',
      'Put the new token into secret, or leave secret out.',
    )
  }
  const secret = textIn(members.get('verification_token')) ?? ''
  if (secret.trim() === '' || !secret.isWellFormed())
    return refused('The token is empty.', 'Have Notion send it again.')
  const given = headers[HEADER]
  if (given !== undefined && !isSigned([given], [body], [secret], MAC)) {
    return refused('The handshake is signed by another token than the one in it.', 'Have Notion send it again.')
  }
  return { kind: 'secret', secret, answer: { status: 200 } }
}

function refused(what: string, fix: string): HandshakeResult {
  return { kind: 'refused', refusal: refusal('HANDSHAKE_REFUSED', what, fix) }
}

function eventsOf({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = writtenOf(body)
  if ('code' in json) return json
  const members = membersOf(json.value)
  const [type, dedupeId] = [wordIn(members.get('type')), wordIn(members.get('id'))]
  if (type === undefined || dedupeId === undefined) {
    const fix = 'Only an integration of Notion is to call this address; its "Send webhook" action is notionAction.'
    return refusal('BODY_NOT_UNDERSTOOD', 'The event has no type or no id.', fix)
  }
  return [{ type, dedupeId, body: withoutAttempt(members), ...detailsOf(members) }]
}

/** The count of tries is all in which a re-send differs: with it each would be a conflict, not a duplicate (L10). */
function withoutAttempt(members: ReadonlyMap<string, Written>): Uint8Array {
  return objectText([...members].filter(([name]) => name !== 'attempt_number'))
}

function detailsOf(members: ReadonlyMap<string, Written>): Omit<SourceEvent, 'type' | 'dedupeId' | 'body'> {
  const subject = wordIn(membersOf(members.get('entity')).get('id'))
  const tenant = wordIn(members.get('workspace_id'))
  const time = instantOfText(wordIn(members.get('timestamp')))
  const attempt = wordIn(members.get('attempt_number'))
  return {
    ...(subject !== undefined && { subject }),
    ...(tenant !== undefined && { tenant }),
    ...(time !== undefined && { time }),
    ...(attempt !== undefined && { attributes: { attempt } }),
  }
}
