// The encryption key of `sluice dev`: a file beside the configuration, created once and readable by its owner only.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '../errors.ts'
import { ENCRYPTION_KEY_VARIABLE } from '../crypto/keyring.ts'

const KEY_FILE = '.sluice-encryption-key'
const OWNER_ONLY = 0o600
const OTHERS_MASK = 0o077

export interface DevKey {
  readonly key: string
  readonly file: string
  readonly isNew: boolean
}

export function loadDevKey(folder: string): DevKey {
  const file = join(folder, KEY_FILE)
  const isNew = createKeyFile(file)
  if ((statSync(file).mode & OTHERS_MASK) !== 0 && process.platform !== 'win32') {
    throw new SluiceError(
      'CONFIG_INVALID',
      `Users other than the owner can read ${file}.`,
      undefined,
      `Run chmod 600 ${file}.`,
    )
  }
  return { key: readFileSync(file, 'utf8').trim(), file, isNew }
}

/** `findDevKey` returns the file with the key of `sluice dev`, if there is one. */
export function findDevKey(folder: string): string | undefined {
  const file = join(folder, KEY_FILE)
  return existsSync(file) ? file : undefined
}

/** `useDevKey` lets a command that opens the app beside `sluice dev` decrypt what `sluice dev` encrypted. */
export function useDevKey(folder: string): void {
  if (process.env[ENCRYPTION_KEY_VARIABLE] !== undefined || !existsSync(join(folder, KEY_FILE))) return
  process.env[ENCRYPTION_KEY_VARIABLE] = loadDevKey(folder).key
}

function createKeyFile(file: string): boolean {
  try {
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { flag: 'wx', mode: OWNER_ONLY })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new SluiceError(
      'CONFIG_INVALID',
      `${file} cannot be written.`,
      error,
      `Set ${ENCRYPTION_KEY_VARIABLE} instead.`,
    )
  }
}
