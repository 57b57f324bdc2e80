// `github` verifies an HMAC of the body, without a timestamp. A redelivery has the same delivery id.
import { assertKnownOptions } from '../validate/options.ts'
import type { SignRequest, ParseEvents, ReceivedRequest, Source } from '../receive/source.ts'
import { isObject, parseJson, type Json } from './json-body.ts'
import { toName } from './event-names.ts'
import { createBodySignature, notUnderstood, parseSecrets, signJson, type Secrets } from './signature.ts'

export interface GithubOptions {
  readonly secret: Secrets
}

const FORM = Buffer.from('payload=')
const SIGNATURE = createBodySignature('x-hub-signature-256', {
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
})
/** The largest body that GitHub sends. */
const MAX_BODY = 25 * 1024 * 1024

export function github(options: GithubOptions): Source {
  assertKnownOptions(options, ['secret'], 'github: ')
  return {
    scheme: 'github',
    secrets: parseSecrets('github', options.secret),
    dedupeFor: '30d',
    maxBody: MAX_BODY,
    verify: SIGNATURE.verify,
    events: parseEvents,
    sign,
    answer: { status: 202 },
  }
}

const parseEvents: ParseEvents = (request) => {
  const { headers } = request
  const event = toName(headers['x-github-event'])
  if (event === undefined) {
    return notUnderstood('There is no x-github-event header.', 'Make sure that only GitHub calls this URL.')
  }
  const body = extractPayload(request)
  const json = parseJson(body)
  if ('code' in json) return json
  const action = isObject(json.value) ? toName(json.value['action']) : undefined
  const type = action === undefined ? event : `${event}.${action}`
  return [{ type, dedupeId: headers['x-github-delivery'], body, subject: findSubject(json.value) }]
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

const sign: SignRequest = (input) => {
  const [event = 'push', action] = (input.type ?? 'push').split('.')
  const example = { ...(action !== undefined && { action }), repository: { full_name: 'sluice/test' } }
  return signJson(input, example, (body) => ({
    'x-github-event': event,
    'x-github-delivery': input.id,
    ...SIGNATURE.sign(input.secret, body),
  }))
}
