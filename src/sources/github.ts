// GitHub: HMAC of the body, nothing that says when. A redelivery has the same delivery id.
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Source, SourceEvent } from '../receive/source.ts'
import { isObject, jsonOf, type Json } from './json-body.ts'
import { nameOf } from './named-by.ts'
import { FORGED, isSigned, refusal, secretsOf, unsigned } from './signature.ts'

export interface GithubOptions {
  readonly secret: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof GithubOptions>(['secret'])
const FORM = Buffer.from('payload=')
const HEADER = 'x-hub-signature-256'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' } as const
/** The largest that GitHub sends. */
const MAX_BODY = 25 * 1024 * 1024

export function github(options: GithubOptions): Source {
  onlyKnown(options, KNOWN, 'github: ')
  return {
    scheme: 'github',
    secrets: secretsOf('github', options.secret),
    dedupeFor: '30d',
    maxBody: MAX_BODY,
    verify: ({ headers, body }, { secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return unsigned(HEADER)
      return isSigned([given], [body], secrets, MAC) ? undefined : FORGED
    },
    events: eventsOf,
    answer: { status: 202 },
  }
}

function eventsOf(request: ReceivedRequest): readonly SourceEvent[] | ReturnType<typeof refusal> {
  const { headers } = request
  const event = nameOf(headers['x-github-event'])
  if (event === undefined) {
    return refusal('BODY_NOT_UNDERSTOOD', 'There is no x-github-event header.', 'Only GitHub is to call this address.')
  }
  const body = payloadOf(request)
  const json = jsonOf(body)
  if ('code' in json) return json
  const action = isObject(json.value) ? nameOf(json.value['action']) : undefined
  const named = {
    type: action === undefined ? event : `${event}.${action}`,
    dedupeId: headers['x-github-delivery'],
    body,
  }
  const subject = subjectOf(json.value)
  return [subject === undefined ? named : { ...named, subject }]
}

/** A hook of content type form has the JSON in one field. What is signed is the body: the bytes decide, not the header. */
function payloadOf({ body }: ReceivedRequest): Uint8Array {
  if (!Buffer.from(body.subarray(0, FORM.length)).equals(FORM)) return body
  const form = new URLSearchParams(Buffer.from(body).toString())
  return Buffer.from(form.get('payload') ?? '')
}

function subjectOf(json: Json): string | undefined {
  const repository = isObject(json) ? json['repository'] : undefined
  return isObject(repository) ? nameOf(repository['full_name']) : undefined
}
