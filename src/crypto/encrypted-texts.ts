// `EncryptedTexts` encrypts texts about encrypted events: a handler's error or an endpoint's response may quote the payload.
import type { Store } from '../store/contract/index.ts'
import { DataKeys } from './data-keys.ts'
import type { Keyring } from './keyring.ts'

const ENCRYPTED_PREFIX = 'sluice-encrypted:'
const UNREADABLE = 'The text is encrypted, and this process has no key that decrypts it.'
const NOT_KEPT = 'The text was not stored: the events are encrypted, and this process has no key to encrypt it.'

export class EncryptedTexts {
  readonly #keys: DataKeys

  constructor(keys: DataKeys) {
    this.#keys = keys
  }

  /** `encrypt` binds the text to its owner. Without a key it returns a fixed sentence, never the plaintext. */
  async encrypt(text: string, owner: string): Promise<string> {
    if (text === '') return ''
    try {
      const dataKey = await this.#keys.encryptionKeyring()
      return ENCRYPTED_PREFIX + dataKey.encrypt(Buffer.from(text), textPurpose(owner)).toString('base64')
    } catch {
      return NOT_KEPT
    }
  }

  /** `decrypt` returns a plaintext unchanged. It never throws: one unreadable text must not fail a whole page of records. */
  async decrypt(text: string, owner: string): Promise<string> {
    if (!isEncryptedText(text)) return text
    try {
      return (
        await this.#keys.decrypt(Buffer.from(text.slice(ENCRYPTED_PREFIX.length), 'base64'), textPurpose(owner))
      ).toString()
    } catch {
      return UNREADABLE
    }
  }
}

export function createEncryptedTexts(store: Store, keyring: Keyring): EncryptedTexts {
  return new EncryptedTexts(new DataKeys(store, keyring))
}

export function isEncryptedText(text: string): boolean {
  return text.startsWith(ENCRYPTED_PREFIX)
}

function textPurpose(owner: string): string {
  return `text of ${owner}`
}
