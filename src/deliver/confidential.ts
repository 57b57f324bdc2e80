// What of an endpoint is sealed in its document: its secrets, and its own headers, one of which may well be a password (D1).
import type { Seal, SealedDocs } from '../seal.ts'
import type { Headers } from './headers.ts'
import type { EndpointSecrets } from './secrets.ts'

export interface Confidential {
  readonly secrets: EndpointSecrets
  readonly headers: Headers
}

/** Sealed in: what is sealed for one endpoint is of no use in the row of another. */
export interface Owner {
  readonly id: string
  readonly tenant: string
}

export interface SealedPart extends Owner {
  /** Their names. An object is of a version that sealed secrets alone. */
  readonly headers: readonly string[] | Headers
  readonly sealed64: string
}

export function sealConfidential(seal: Seal, what: Confidential, owner: Owner): string {
  return seal.seal(Buffer.from(JSON.stringify(what)), purposeOf(owner)).toString('base64')
}

/** What was opened stays at hand while it is the same: every POST needs it, and to open it takes as long as to sign. */
const atHand = new WeakMap<Seal, Map<string, Confidential | EndpointSecrets>>()
const MOST_AT_HAND = 10_000

export function openConfidential(seal: Seal, kept: SealedPart): Confidential {
  const purpose = purposeOf(kept)
  const known = atHand.get(seal) ?? new Map<string, Confidential | EndpointSecrets>()
  // All of it, and whose it is: a change of either is opened anew, or refused.
  const name = `${kept.sealed64} ${purpose}`
  let found = known.get(name)
  if (found === undefined) {
    found = JSON.parse(seal.open(Buffer.from(kept.sealed64, 'base64'), purpose).toString()) as Confidential
    const [oldest] = known.keys()
    if (known.size >= MOST_AT_HAND && oldest !== undefined) known.delete(oldest)
    atHand.set(seal, known.set(name, found))
  }
  // Nobody who has the document alone makes an earlier one of it: what is sealed says which it is.
  return isOfBefore(found) ? { secrets: found, headers: isNames(kept.headers) ? {} : kept.headers } : found
}

export function namesOf(headers: SealedPart['headers']): readonly string[] {
  return isNames(headers) ? headers : Object.keys(headers)
}

/** Of a document that is otherwise none of our business. */
export const ENDPOINT_DOCS: SealedDocs = {
  kind: 'endpoint',
  resealed: (seal, { id, body }) => {
    const kept = JSON.parse(Buffer.from(body).toString()) as SealedPart
    const sealed = seal.resealed(Buffer.from(kept.sealed64, 'base64'), purposeOf({ ...kept, id }))
    if (sealed === undefined) return undefined
    return Buffer.from(JSON.stringify({ ...kept, sealed64: sealed.toString('base64') }))
  },
}

function isNames(headers: SealedPart['headers']): headers is readonly string[] {
  return Array.isArray(headers)
}

function isOfBefore(found: Confidential | EndpointSecrets): found is EndpointSecrets {
  return Array.isArray(found)
}

/** Written such that no two owners have the same. */
function purposeOf({ id, tenant }: Owner): string {
  return `secrets of endpoint ${JSON.stringify([id, tenant])}`
}
