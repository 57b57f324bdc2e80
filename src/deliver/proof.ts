// Proof of ownership: a URL belongs to the person who registers it. The endpoint must echo a challenge, or grant
// permission in the CloudEvents handshake.
import { randomBytes } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import { parseData } from '../model/event.ts'
import type { EndpointDocs } from './endpoint-docs.ts'
import type { Endpoint, EndpointRate, EndpointTarget } from './endpoint.ts'
import { requestPermission, toPerMinute } from './proof-handshake.ts'
import { postSigned, withinDeadline, type SendDependencies } from './send-batch.ts'
import type { PostResult } from './http/post.ts'

export type OwnershipProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'challenge' }
  /** `origin` is the host name of this app. */
  | { readonly kind: 'cloudevents'; readonly origin: string }

type ProofResult =
  /** `rate` is the rate that the endpoint allows, if it is lower than the stored one. */
  { readonly proven: true; readonly rate?: EndpointRate } | { readonly proven: false; readonly error: string }

/** `proofError` is the reason why the endpoint is not proven. */
export type ProvenEndpoint = Endpoint & { readonly proofError?: string }

export interface EndpointProverDependencies {
  readonly docs: EndpointDocs
  readonly proof: OwnershipProof
  readonly sender: SendDependencies
}

/** `EndpointProver` asks for the proof at registration, before a change of the URL, and on request. */
export class EndpointProver {
  readonly #deps: EndpointProverDependencies

  constructor(deps: EndpointProverDependencies) {
    this.#deps = deps
  }

  get isRequired(): boolean {
    return this.#deps.proof.kind !== 'none'
  }

  async prove(to: EndpointTarget, by: string): Promise<ProvenEndpoint> {
    const { endpoint } = to
    const { id, url } = endpoint
    const proved = await this.#requestProof(to)
    if (!proved.proven) return { ...endpoint, proofError: proved.error }
    return this.#deps.docs.change(id, { who: by, what: `proved endpoint ${id}` }, (kept) => {
      if (kept.url === url) return { ...kept, ...this.#toProofFields(proved) }
      throw new SluiceError('CONFLICT', `The url of endpoint ${id} was changed during the proof.`)
    })
  }

  /** A new URL may belong to somebody else, so without a proof the stored URL stays. Returns the fields that change. */
  async proveBeforeChange(to: EndpointTarget): Promise<Partial<Endpoint>> {
    const proved = await this.#requestProof(to)
    if (proved.proven) return this.#toProofFields(proved)
    throw new SluiceError(
      'ENDPOINT_INVALID',
      `endpoint: url is not proven (${proved.error}); nothing was changed.`,
      undefined,
      'Make the endpoint respond to the proof, then repeat the change.',
    )
  }

  /** An endpoint that waits for a proof is proven as soon as the app no longer requires one. */
  async #requestProof(to: EndpointTarget): Promise<ProofResult> {
    const { proof, sender } = this.#deps
    if (proof.kind === 'none') return { proven: true }
    return withinDeadline(sender, (deps) =>
      proof.kind === 'challenge' ? sendChallenge(deps, to) : shakeHands(deps, to, proof.origin),
    )
  }

  #toProofFields({ rate }: Extract<ProofResult, { proven: true }>): Partial<Endpoint> {
    const proof = this.isRequired ? 'proven' : 'none'
    return rate === undefined ? { proof } : { proof, rate }
  }
}

async function shakeHands(deps: SendDependencies, to: EndpointTarget, origin: string): Promise<ProofResult> {
  const { rate } = to.endpoint
  const permission = await requestPermission(deps, to, origin)
  if (permission.kind === 'refused') return { proven: false, error: permission.error }
  const { perMinute } = permission
  const isLess = perMinute !== undefined && (rate === null || perMinute < toPerMinute(rate))
  return { proven: true, ...(isLess && { rate: { rate: perMinute, per: '1m' } }) }
}

async function sendChallenge(deps: SendDependencies, to: EndpointTarget): Promise<ProofResult> {
  const challenge = randomBytes(24).toString('base64url')
  const head = { type: 'endpoint.challenge', timestamp: new Date(deps.now()).toISOString() }
  const body = Buffer.from(JSON.stringify({ ...head, data: { challenge } }))
  const id = `msg_${randomBytes(24).toString('base64url')}`
  const posted = await postSigned(deps, to, { id, body, signal: undefined })
  const error = challengeFault(posted, challenge)
  return error === undefined ? { proven: true } : { proven: false, error }
}

function challengeFault(posted: PostResult, challenge: string): string | undefined {
  if (posted.kind === 'failed') return `${posted.why}: ${posted.error}`
  const { status, body, isComplete } = posted
  if (status < 200 || status >= 300) return `The endpoint returned ${status}.`
  if (isComplete && (body.toString().trim() === challenge || parseEcho(parseData(body)) === challenge)) return undefined
  return 'The endpoint did not echo the challenge. Respond with { "challenge": <data.challenge> }.'
}

function parseEcho(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null && 'challenge' in answer ? answer.challenge : undefined
}
