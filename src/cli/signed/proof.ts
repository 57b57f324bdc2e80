// Signs for schemes that only authenticate the sender: generic HMAC, password, token and key, with any body.
import {
  requestBody,
  JSON_TYPE,
  computeMac,
  toSeconds,
  type SignRequest,
  type SignedRequest,
  type Signer,
} from './signed.ts'

const UNKNOWN_PROOF = 'The source does not tell how its senders prove themselves.'

/** Uses the most common format, with the type where the source looks for it. */
export const signGeneric: Signer = (asked) => {
  const at = asked.sender?.type ?? 'type'
  const type = asked.type ?? 'test'
  const inHeader = at.startsWith('header:') ? { [at.slice('header:'.length).trim().toLowerCase()]: type } : {}
  const inBody = at.startsWith('header:') ? {} : nested(at.split('.'), type)
  const body = requestBody(asked, { id: asked.id, ...inBody })
  return withProof(asked, { url: asked.url, headers: { ...JSON_TYPE, ...inHeader }, body })
}

function nested([first = '', ...rest]: readonly string[], value: string): Readonly<Record<string, unknown>> {
  return { [first]: rest.length === 0 ? value : nested(rest, value) }
}

export function withProof({ sender, secret, now }: SignRequest, unsigned: SignedRequest): SignedRequest | string {
  const { url, headers, body } = unsigned
  const proof = sender?.proof
  const withHeader = (name: string, value: string): SignedRequest => ({
    url,
    body,
    headers: { ...headers, [name]: value },
  })
  switch (proof?.kind) {
    case undefined:
      return UNKNOWN_PROOF
    case 'none':
      return unsigned
    case 'bearer':
      return withHeader('authorization', `Bearer ${secret}`)
    case 'basic':
      return withHeader('authorization', `Basic ${Buffer.from(`${proof.username}:${secret}`).toString('base64')}`)
    case 'header':
      return withHeader(proof.header, secret)
    case 'query': {
      const called = new URL(url)
      called.searchParams.set(proof.name, secret)
      return { ...unsigned, url: called }
    }
    case 'mac': {
      const timed = proof.timestamp === undefined ? headers : { ...headers, [proof.timestamp]: toSeconds(now) }
      const parts = proof.content({ method: 'POST', url, headers: timed, body, address: '127.0.0.1' })
      if ('code' in parts) return `${parts.what} ${parts.fix}`
      return { url, body, headers: { ...timed, [proof.header]: computeMac(secret, parts, proof.mac) } }
    }
  }
}
