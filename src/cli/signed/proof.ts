// Schemes that only say how a sender proves itself: generic HMACs, passwords, tokens and keys, whatever is in the body.
import { bodyOf, JSON_TYPE, macOf, secondsOf, type Asked, type Signed, type Signer } from './signed.ts'

const UNTOLD = 'The source does not tell how its senders prove themselves.'

/** As most senders of one's own write: the type where the source looks for it. */
export const generic: Signer = (asked) => {
  const at = asked.sender?.type ?? 'type'
  const type = asked.type ?? 'test'
  const inHeader = at.startsWith('header:') ? { [at.slice('header:'.length).trim().toLowerCase()]: type } : {}
  const inBody = at.startsWith('header:') ? {} : nested(at.split('.'), type)
  const body = bodyOf(asked, { id: asked.id, ...inBody })
  return proven(asked, { url: asked.url, headers: { ...JSON_TYPE, ...inHeader }, body })
}

function nested([first = '', ...rest]: readonly string[], value: string): Readonly<Record<string, unknown>> {
  return { [first]: rest.length === 0 ? value : nested(rest, value) }
}

export function proven({ sender, secret, now }: Asked, unsigned: Signed): Signed | string {
  const { url, headers, body } = unsigned
  const proof = sender?.proof
  const withHeader = (name: string, value: string): Signed => ({ url, body, headers: { ...headers, [name]: value } })
  switch (proof?.kind) {
    case undefined:
      return UNTOLD
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
      const timed = proof.timestamp === undefined ? headers : { ...headers, [proof.timestamp]: secondsOf(now) }
      const parts = proof.content({ method: 'POST', url, headers: timed, body, address: '127.0.0.1' })
      if ('code' in parts) return `${parts.what} ${parts.fix}`
      return { url, body, headers: { ...timed, [proof.header]: macOf(secret, parts, proof.mac) } }
    }
  }
}
