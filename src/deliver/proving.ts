// Endpoints are proven: when they are registered, before another URL is taken, and whenever somebody asks for it again.
import { SluiceError } from '../errors.ts'
import type { Endpoint } from './endpoint.ts'
import type { EndpointDocs } from './endpoint-docs.ts'
import type { Addressed } from './endpoints.ts'
import { impatiently, type PostingParts } from './posting.ts'
import { proveOwner, type Proof, type Proved } from './proof.ts'

export interface ProvingParts {
  readonly docs: EndpointDocs
  readonly proof: Proof
  readonly posting: () => PostingParts
}

/** `proofError`: why it is not proven. */
export type ProvenEndpoint = Endpoint & { readonly proofError?: string }

/** Who waited for a proof that is no longer asked for need not wait on. */
const NOTHING_ASKED: Proved = { proven: true, ms: 0 }

export class Proving {
  readonly #parts: ProvingParts

  constructor(parts: ProvingParts) {
    this.#parts = parts
  }

  get isAsked(): boolean {
    return this.#parts.proof.kind !== 'none'
  }

  async prove(to: Addressed, by: string): Promise<ProvenEndpoint> {
    const { endpoint } = to
    const { id, url } = endpoint
    const proved = await this.#ask(to)
    if (!proved.proven) return { ...endpoint, proofError: proved.error }
    return this.#parts.docs.change(id, { by, what: `proved endpoint ${id}` }, (kept) => {
      if (kept.url === url) return { ...kept, ...this.#provenBy(proved) }
      throw new SluiceError('NOT_POSSIBLE', `The url of endpoint ${id} was changed meanwhile.`)
    })
  }

  /** Another URL may be somebody else's: what is there stays if it cannot be proven. What is changed by that. */
  async before(to: Addressed): Promise<Partial<Endpoint>> {
    const proved = await this.#ask(to)
    if (proved.proven) return this.#provenBy(proved)
    throw new SluiceError('ENDPOINT_INVALID', `endpoint: url is not proven (${proved.error}); nothing was changed.`)
  }

  async #ask(to: Addressed): Promise<Proved> {
    const { proof, posting } = this.#parts
    if (proof.kind === 'none') return NOTHING_ASKED
    return impatiently(posting(), (parts) => proveOwner(proof, parts, to))
  }

  #provenBy({ rate }: Extract<Proved, { proven: true }>): Partial<Endpoint> {
    const proof = this.isAsked ? 'proven' : 'none'
    return rate === undefined ? { proof } : { proof, rate }
  }
}
