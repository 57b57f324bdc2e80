// Whether a URL belongs to who registers it: before anything else is posted there, it has to echo a challenge, or to say by the
// handshake of CloudEvents that we may.
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { dataOf } from '../model/event.ts'
import type { Addressed } from './endpoints.ts'
import type { EndpointRate } from './endpoint.ts'
import { askLeave, perMinuteOf } from './handshake.ts'
import { postSigned, type PostingParts } from './posting.ts'
import type { Posted } from './post.ts'

export type Proof =
  | { readonly kind: 'none' }
  | { readonly kind: 'challenge' }
  /** `origin`: the name of the host that we are. */
  | { readonly kind: 'cloudevents'; readonly origin: string }

export type Proved =
  /** `rate`: what the other side allows, if it is less than was thought. */
  | { readonly proven: true; readonly ms: Millis; readonly rate?: EndpointRate }
  | { readonly proven: false; readonly ms: Millis; readonly error: string }

export async function proveOwner(
  proof: Exclude<Proof, { kind: 'none' }>,
  parts: PostingParts,
  to: Addressed,
): Promise<Proved> {
  if (proof.kind === 'challenge') return challenge(parts, to)
  const { endpoint } = to
  const leave = await askLeave(parts, to, proof.origin)
  if (leave.kind === 'refused') return { proven: false, ms: leave.ms, error: leave.error }
  const { perMinute, ms } = leave
  const isLess = perMinute !== undefined && (endpoint.rate === null || perMinute < perMinuteOf(endpoint.rate))
  return { proven: true, ms, ...(isLess && { rate: { rate: perMinute, per: '1m' } }) }
}

async function challenge(parts: PostingParts, to: Addressed): Promise<Proved> {
  const said = randomBytes(24).toString('base64url')
  const head = { type: 'endpoint.challenge', timestamp: new Date(parts.now()).toISOString() }
  const body = Buffer.from(JSON.stringify({ ...head, data: { challenge: said } }))
  const id = `msg_${randomBytes(24).toString('base64url')}`
  const posted = await postSigned(parts, to, { id, body, signal: undefined })
  const ms = Math.round(posted.ms)
  const error = faultOf(posted, said)
  return error === undefined ? { proven: true, ms } : { proven: false, ms, error }
}

function faultOf(posted: Posted, said: string): string | undefined {
  if (posted.kind === 'failed') return `${posted.why}: ${posted.error}`
  const { status, body, isWhole } = posted
  if (status < 200 || status >= 300) return `It answered ${status}.`
  if (isWhole && (body.toString().trim() === said || echoIn(dataOf(body)) === said)) return undefined
  return 'It did not echo the challenge: answer with { "challenge": <that of data> }.'
}

function echoIn(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null && 'challenge' in answer ? answer.challenge : undefined
}
