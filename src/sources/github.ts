// `github` verifies an HMAC of the body, without a timestamp. A redelivery has the same delivery id.
import { assertKnownOptions } from '../validate/options.ts'
import type { ReceivedRequest, Source, SourceEvent, SignedRequest, SignOptions } from '../receive/source.ts'
import { isObject, parseJson, type Json } from './json-body.ts'
import { toName } from './event-names.ts'
import { WRONG_SIGNATURE, hasValidMac, refusal, parseSecrets, missingSignature } from './signature.ts'
import { computeMac, signJson } from './sign.ts'

export interface GithubOptions {
  readonly secret: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof GithubOptions>(['secret'])
const FORM = Buffer.from('payload=')
const HEADER = 'x-hub-signature-256'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' } as const
/** The largest body that GitHub sends. */
const MAX_BODY = 25 * 1024 * 1024

export function github(options: GithubOptions): Source {
  assertKnownOptions(options, KNOWN, 'github: ')
  return {
    scheme: 'github',
    secrets: parseSecrets('github', options.secret),
    dedupeFor: '30d',
    maxBody: MAX_BODY,
    verify: ({ headers, body }, { secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return missingSignature(HEADER)
      return hasValidMac([given], [body], secrets, MAC) ? undefined : WRONG_SIGNATURE
    },
    events: parseEvents,
    sign,
    answer: { status: 202 },
  }
}

function parseEvents(request: ReceivedRequest): readonly SourceEvent[] | ReturnType<typeof refusal> {
  const { headers } = request
  const event = toName(headers['x-github-event'])
  if (event === undefined) {
    return refusal(
      'BODY_NOT_UNDERSTOOD',
      'There is no x-github-event header.',
      'Make sure that only GitHub calls this URL.',
    )
  }
  const body = extractPayload(request)
  const json = parseJson(body)
  if ('code' in json) return json
  const action = isObject(json.value) ? toName(json.value['action']) : undefined
  const named = {
    type: action === undefined ? event : `${event}.${action}`,
    dedupeId: headers['x-github-delivery'],
    body,
  }
  const subject = findSubject(json.value)
  return [subject === undefined ? named : { ...named, subject }]
}

/** A hook with content type form has the JSON in one field. The signature covers the body, so its bytes decide, not
    the header. */
function extractPayload({ body }: ReceivedRequest): Uint8Array {
  if (!Buffer.from(body.subarray(0, FORM.length)).equals(FORM)) return body
  const form = new URLSearchParams(Buffer.from(body).toString())
  return Buffer.from(form.get('payload') ?? '')
}

function findSubject(json: Json): string | undefined {
  const repository = isObject(json) ? json['repository'] : undefined
  return isObject(repository) ? toName(repository['full_name']) : undefined
}

function sign(asked: SignOptions): SignedRequest {
  const [event = 'push', action] = (asked.type ?? 'push').split('.')
  const example = { ...(action !== undefined && { action }), repository: { full_name: 'sluice/test' } }
  return signJson(asked, example, (body) => ({
    'x-github-event': event,
    'x-github-delivery': asked.id,
    [HEADER]: computeMac(asked.secret, [body], MAC),
  }))
}
