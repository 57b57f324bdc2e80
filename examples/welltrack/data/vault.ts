// `Vault` encrypts what the app keeps of a person: tokens and raw payloads. An encrypted text can be read only where it belongs.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const [NONCE, TAG] = [12, 16]

export class Vault {
  readonly #keys: readonly Uint8Array[]

  /** The keys are those of the engine, separated by commas. The first one encrypts; all of them decrypt. */
  constructor(keys: string) {
    const all = keys.split(',').filter((key) => key !== '')
    if (all.length === 0) throw new Error('SLUICE_ENCRYPTION_KEY must be set: openssl rand -base64 32.')
    this.#keys = all.map((key) => new Uint8Array(hkdfSync('sha256', Buffer.from(key, 'base64'), '', 'welltrack', 32)))
  }

  /** `place` names where the text is kept, e.g. `token/garmin/u1`. */
  encrypt(text: string, place: string): string {
    const [key] = this.#keys
    if (key === undefined) throw new Error('There is no key.')
    const nonce = randomBytes(NONCE)
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(place))
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  decrypt(encrypted: string, place: string): string {
    const bytes = Buffer.from(encrypted, 'base64')
    for (const key of this.#keys) {
      try {
        const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE)).setAAD(Buffer.from(place))
        decipher.setAuthTag(bytes.subarray(-TAG))
        return decipher.update(bytes.subarray(NONCE, -TAG), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        // It may be encrypted with the next key.
      }
    }
    throw new Error(`No key decrypts what is kept at ${place}.`)
  }
}
