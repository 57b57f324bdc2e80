// `EndpointProver` proves ownership of a URL at registration, before a change of the URL, and on request.
import { SluiceError } from '../errors.ts'
import type { Endpoint } from './endpoint.ts'
import type { EndpointDocs } from './endpoint-docs.ts'
import type { EndpointTarget } from './endpoints.ts'
import { withinDeadline, type SendDependencies } from './send-batch.ts'
import { proveOwnership, type OwnershipProof, type ProofResult } from './proof.ts'

export interface EndpointProverDependencies {
  readonly docs: EndpointDocs
  readonly proof: OwnershipProof
  readonly sendDependencies: () => SendDependencies
}

/** `proofError` is the reason why the endpoint is not proven. */
export type ProvenEndpoint = Endpoint & { readonly proofError?: string }

/** An endpoint that waits for a proof is proven as soon as the app no longer requires one. */
const NO_PROOF_REQUIRED: ProofResult = { proven: true, ms: 0 }

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
    return this.#deps.docs.change(id, { by, what: `proved endpoint ${id}` }, (kept) => {
      if (kept.url === url) return { ...kept, ...this.#toProofFields(proved) }
      throw new SluiceError('CONFLICT', `The url of endpoint ${id} was changed during the proof.`)
    })
  }

  /**
   * `proveBeforeChange` returns the fields that the proof changes. A new URL may belong to somebody else, so without
   * a proof the stored URL stays.
   */
  async proveBeforeChange(to: EndpointTarget): Promise<Partial<Endpoint>> {
    const proved = await this.#requestProof(to)
    if (proved.proven) return this.#toProofFields(proved)
    const what = `endpoint: url is not proven (${proved.error}); nothing was changed.`
    throw new SluiceError(
      'ENDPOINT_INVALID',
      what,
      undefined,
      'Make the endpoint respond to the proof, then repeat the change.',
    )
  }

  async #requestProof(to: EndpointTarget): Promise<ProofResult> {
    const { proof, sendDependencies: posting } = this.#deps
    if (proof.kind === 'none') return NO_PROOF_REQUIRED
    return withinDeadline(posting(), (deps) => proveOwnership(proof, deps, to))
  }

  #toProofFields({ rate }: Extract<ProofResult, { proven: true }>): Partial<Endpoint> {
    const proof = this.isRequired ? 'proven' : 'none'
    return rate === undefined ? { proof } : { proof, rate }
  }
}
