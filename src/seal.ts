// Secrets at rest: what must not be read by who has the store alone is sealed under a key that the store has not.
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { SluiceError } from './errors.ts'

const CIPHER = 'aes-256-gcm'
const KEY_LENGTH = 32
const NONCE_LENGTH = 12
const TAG_LENGTH = 16
const NAME_LENGTH = 4
/** The first byte says how the rest is laid out: version, name of the key, nonce, tag, text. */
const VERSION = 1
const HEAD_LENGTH = 1 + NAME_LENGTH + NONCE_LENGTH + TAG_LENGTH

/** Where the keys are when the app names none: the newest first, with commas between. */
export const MASTER_KEY: string = 'SLUICE_MASTER_KEY'
export const HOW_TO_GIVE_A_KEY: string = `set ${MASTER_KEY} to 32 random bytes as base64 (openssl rand -base64 32), or give key to new Sluice`

/** Documents of a kind that are sealed, or hold something that is. */
export interface SealedDocs {
  readonly kind: string
  /** The body under the newest key. Undefined: it is so already, or nothing in it is sealed. Throws SEAL_UNKNOWN. */
  resealed(seal: Seal, doc: { readonly id: string; readonly body: Uint8Array }): Buffer | undefined
}

interface NamedKey {
  readonly name: Buffer
  readonly key: Buffer
}

export class Seal {
  readonly #keys: readonly NamedKey[]

  /** The first one seals, all of them open: that is how a key is exchanged. */
  constructor(keys: readonly string[]) {
    this.#keys = keys.map(keyOf)
  }

  get hasKey(): boolean {
    return this.#keys.length > 0
  }

  /** Of the one that seals: it tells keys apart, and nothing of them. '' without one. */
  get name(): string {
    return this.#keys[0]?.name.toString('hex') ?? ''
  }

  /** Whether it was sealed under one of these. */
  has(sealed: Uint8Array): boolean {
    return this.#keyOf(sealed) !== undefined
  }

  /** `purpose` is sealed in: what was sealed for one thing cannot be passed off as another. */
  seal(bytes: Uint8Array, purpose: string): Buffer {
    return this.#sealed(bytes, purpose, () => randomBytes(NONCE_LENGTH))
  }

  /** The same bytes give the same: who compares the sealed ones learns that they are equal, and nothing else (L10 needs that). */
  sealAlike(bytes: Uint8Array, purpose: string): Buffer {
    return this.#sealed(bytes, purpose, ({ key }) =>
      createHmac('sha256', key).update(`nonce\0${purpose}\0`).update(bytes).digest().subarray(0, NONCE_LENGTH),
    )
  }

  open(sealed: Uint8Array, purpose: string): Buffer {
    const from = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length)
    const known = this.#keyOf(from)
    if (!looksSealed(from) || known === undefined) {
      throw new SluiceError('SEAL_UNKNOWN', 'It was sealed under a key that this process has not.')
    }
    const nonce = from.subarray(1 + NAME_LENGTH, 1 + NAME_LENGTH + NONCE_LENGTH)
    const tag = from.subarray(HEAD_LENGTH - TAG_LENGTH, HEAD_LENGTH)
    const decipher = createDecipheriv(CIPHER, known.key, nonce, { authTagLength: TAG_LENGTH })
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(tag)
    try {
      return Buffer.concat([decipher.update(from.subarray(HEAD_LENGTH)), decipher.final()])
    } catch (error) {
      throw new SluiceError(
        'SEAL_UNKNOWN',
        'It was changed after it had been sealed, or sealed for something else.',
        error,
      )
    }
  }

  /** The same under the newest key. Undefined: it is so already. */
  resealed(sealed: Uint8Array, purpose: string): Buffer | undefined {
    const bytes = this.open(sealed, purpose)
    return this.#keyOf(sealed) === this.#keys[0] ? undefined : this.seal(bytes, purpose)
  }

  #keyOf(sealed: Uint8Array): NamedKey | undefined {
    const name = sealed.subarray(1, 1 + NAME_LENGTH)
    return this.#keys.find((key) => key.name.equals(name))
  }

  #sealed(bytes: Uint8Array, purpose: string, nonceFor: (key: NamedKey) => Buffer): Buffer {
    const [newest] = this.#keys
    if (newest === undefined) throw new SluiceError('CONFIG_INVALID', `key is missing: ${HOW_TO_GIVE_A_KEY}.`)
    const nonce = nonceFor(newest)
    const cipher = createCipheriv(CIPHER, newest.key, nonce, { authTagLength: TAG_LENGTH })
    cipher.setAAD(Buffer.from(purpose))
    const text = Buffer.concat([cipher.update(bytes), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), newest.name, nonce, cipher.getAuthTag(), text])
  }
}

/** What is not sealed nearly never looks like it: no text begins so. */
export function looksSealed(bytes: Uint8Array): boolean {
  return bytes[0] === VERSION && bytes.length >= HEAD_LENGTH
}

function keyOf(text: string): NamedKey {
  const key = Buffer.from(text, 'base64')
  if (key.length !== KEY_LENGTH) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `key has ${key.length} bytes; it is 32 random ones as base64, 44 characters.`,
    )
  }
  return { key, name: createHash('sha256').update(key).digest().subarray(0, NAME_LENGTH) }
}

export function masterKeys(
  given: string | readonly string[] | undefined,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (given !== undefined && !list.every((key) => typeof key === 'string')) {
    throw new SluiceError('CONFIG_INVALID', `key is neither a text nor a list of texts: ${HOW_TO_GIVE_A_KEY}.`)
  }
  if (Array.isArray(given) && given.length === 0) {
    throw new SluiceError('CONFIG_INVALID', `key is an empty list: ${HOW_TO_GIVE_A_KEY}, or leave it out.`)
  }
  // Also of one text that came from the variable, or from another like it.
  if (given !== undefined) return [given].flat().flatMap((keys) => keys.split(','))
  return (env[MASTER_KEY] ?? '').split(/[\s,]+/).filter((key) => key !== '')
}
