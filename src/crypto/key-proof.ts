// A client sends its API key to a server it discovered only after the server proved that its store knows that key. The proof is
// an HMAC, keyed with the stored hash of the API key, over a random word of the client and the address of the connection. A process that took
// over the port has no such hash, and a proof that it relays from another server contains the address of that server.
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** The request header of `/healthz` that carries the challenge: the id of the key and the random word. */
export const CHALLENGE_HEADER = 'sluice-prove'
/** The response header that carries the proof. */
export const PROOF_HEADER = 'sluice-proof'

const KEY_PATTERN = /^slk_([0-9a-f]{12})_[\w-]{43}$/
const CHALLENGE_PATTERN = /^([0-9a-f]{12})\.([\w-]{43})$/

/** `parseKeyId` returns undefined for text that is not an API key. */
export function parseKeyId(secret: string): string | undefined {
  return KEY_PATTERN.exec(secret)?.[1]
}

/** `hashKey` uses a fast hash: the key has 256 random bits, so a slow hash adds nothing. */
export function hashKey(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/** `ServerAddress` is the address of a server as one end of a connection sees it. */
export interface ServerAddress {
  readonly address: string
  readonly port: number
}

interface KeyChallenge {
  /** The value of the request header. */
  readonly challenge: string
  /** `isProof` returns whether the proof comes from the server at this address. */
  isProof(value: string, at: ServerAddress): boolean
}

export function createKeyChallenge(secret: string): KeyChallenge | undefined {
  const id = parseKeyId(secret)
  if (id === undefined) return undefined
  const word = randomBytes(32).toString('base64url')
  const keyHash = hashKey(secret)
  return {
    challenge: `${id}.${word}`,
    isProof: (given, at) => {
      const [proof, wanted] = [Buffer.from(given), Buffer.from(computeKeyProof(keyHash, word, at))]
      return proof.length === wanted.length && timingSafeEqual(proof, wanted)
    },
  }
}

export function parseKeyChallenge(value: string): { readonly id: string; readonly word: string } | undefined {
  const [, id, word] = CHALLENGE_PATTERN.exec(value) ?? []
  return id === undefined || word === undefined ? undefined : { id, word }
}

/** `computeKeyProof` returns the proof of the server, which takes the address from its own end of the connection. */
export function computeKeyProof(keyHash: string, word: string, { address, port }: ServerAddress): string {
  return createHmac('sha256', keyHash)
    .update(JSON.stringify([word, normalizeAddress(address), port]))
    .digest('base64url')
}

/** A dual-stack socket reports an IPv4 address as `::ffff:<IPv4>`. */
function normalizeAddress(address: string): string {
  return address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '')
}
