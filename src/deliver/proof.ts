// `proveOwnership` checks that a URL belongs to the person who registers it. The endpoint must echo a challenge, or
// grant permission in the CloudEvents handshake.
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { parseData } from '../model/event.ts'
import type { EndpointTarget } from './endpoints.ts'
import type { EndpointRate } from './endpoint.ts'
import { requestPermission, toPerMinute } from './proof-handshake.ts'
import { postSigned, type SendDependencies } from './send-batch.ts'
import type { PostResult } from './http/post.ts'

export type OwnershipProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'challenge' }
  /** `origin` is the host name of this app. */
  | { readonly kind: 'cloudevents'; readonly origin: string }

export type ProofResult =
  /** `rate` is the rate that the endpoint allows, if it is lower than the stored one. */
  | { readonly proven: true; readonly ms: Millis; readonly rate?: EndpointRate }
  | { readonly proven: false; readonly ms: Millis; readonly error: string }

export async function proveOwnership(
  proof: Exclude<OwnershipProof, { kind: 'none' }>,
  deps: SendDependencies,
  to: EndpointTarget,
): Promise<ProofResult> {
  if (proof.kind === 'challenge') return sendChallenge(deps, to)
  const { endpoint } = to
  const permission = await requestPermission(deps, to, proof.origin)
  if (permission.kind === 'refused') return { proven: false, ms: permission.ms, error: permission.error }
  const { perMinute, ms } = permission
  const isLess = perMinute !== undefined && (endpoint.rate === null || perMinute < toPerMinute(endpoint.rate))
  return { proven: true, ms, ...(isLess && { rate: { rate: perMinute, per: '1m' } }) }
}

async function sendChallenge(deps: SendDependencies, to: EndpointTarget): Promise<ProofResult> {
  const challenge = randomBytes(24).toString('base64url')
  const head = { type: 'endpoint.challenge', timestamp: new Date(deps.now()).toISOString() }
  const body = Buffer.from(JSON.stringify({ ...head, data: { challenge } }))
  const id = `msg_${randomBytes(24).toString('base64url')}`
  const posted = await postSigned(deps, to, { id, body, signal: undefined })
  const ms = Math.round(posted.ms)
  const error = challengeFault(posted, challenge)
  return error === undefined ? { proven: true, ms } : { proven: false, ms, error }
}

function challengeFault(posted: PostResult, challenge: string): string | undefined {
  if (posted.kind === 'failed') return `${posted.why}: ${posted.error}`
  const { status, body, isComplete } = posted
  if (status < 200 || status >= 300) return `It answered ${status}.`
  if (isComplete && (body.toString().trim() === challenge || parseEcho(parseData(body)) === challenge)) return undefined
  return 'It did not echo the challenge. Respond with { "challenge": <data.challenge> }.'
}

function parseEcho(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null && 'challenge' in answer ? answer.challenge : undefined
}
