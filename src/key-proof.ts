// A server that nobody named is sent a key only once it has proved that it has that key in its store: by an HMAC under the
// hash that is kept of it, over a word of the asker's own. Whoever has taken its port has no such hash.
import { createHmac, hash, randomBytes } from 'node:crypto'

/** Of a question to `/healthz`: the id of the key, and the word. */
export const PROVE = 'sluice-prove'
/** Of the answer to it. */
export const PROOF = 'sluice-proof'

const SECRET = /^slk_([0-9a-f]{12})_[\w-]{43}$/
const ASKED = /^([0-9a-f]{12})\.([\w-]{43})$/

/** Undefined: it is no key. */
export function keyIdOf(secret: string): string | undefined {
  return SECRET.exec(secret)?.[1]
}

/** 256 bits of chance need no slow hash. */
export function keyHash(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

interface Question {
  /** As it is asked. */
  readonly asked: string
  readonly proof: string
}

export function questionFor(secret: string): Question | undefined {
  const id = keyIdOf(secret)
  if (id === undefined) return undefined
  const word = randomBytes(32).toString('base64url')
  return { asked: `${id}.${word}`, proof: proofOf(keyHash(secret), word) }
}

/** Of a question as it came. Undefined: it is none. */
export function readQuestion(asked: string): { readonly id: string; readonly word: string } | undefined {
  const [, id, word] = ASKED.exec(asked) ?? []
  return id === undefined || word === undefined ? undefined : { id, word }
}

export function proofOf(kept: string, word: string): string {
  return createHmac('sha256', kept).update(word).digest('base64url')
}
