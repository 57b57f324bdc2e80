// The master key of somebody who only tries things out: a file beside the configuration, made once, for its owner alone.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '../errors.ts'
import { MASTER_KEY } from '../seal.ts'

const NAME = '.sluice-master-key'
const OWNER_ALONE = 0o600
const ANYBODY_ELSE = 0o077

export interface DevKey {
  readonly key: string
  readonly file: string
  readonly isNew: boolean
}

export function devKey(folder: string): DevKey {
  const file = join(folder, NAME)
  const isNew = isMade(file)
  if ((statSync(file).mode & ANYBODY_ELSE) !== 0 && process.platform !== 'win32') {
    throw new SluiceError('CONFIG_INVALID', `${file} can be read by others than its owner: chmod 600 it.`)
  }
  return { key: readFileSync(file, 'utf8').trim(), file, isNew }
}

/** For a command that opens the app beside it: what `sluice dev` has sealed there, it can open. */
export function useDevKey(folder: string): void {
  if (process.env[MASTER_KEY] !== undefined || !existsSync(join(folder, NAME))) return
  process.env[MASTER_KEY] = devKey(folder).key
}

function isMade(file: string): boolean {
  try {
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { flag: 'wx', mode: OWNER_ALONE })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new SluiceError('CONFIG_INVALID', `${file} cannot be written; set ${MASTER_KEY} instead.`, error)
  }
}
