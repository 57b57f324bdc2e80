// The `.env` beside the configuration: its variables are set for every command but `sluice dev`, whose child reads them
// again after each change.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadEnvFile } from 'node:process'
import { parseEnv } from 'node:util'

const FILE_NAME = '.env'

/** `applyEnvFile` sets the variables of the file. Variables that are already set win, as with `node --env-file`. */
export function applyEnvFile(folder: string): void {
  const file = join(folder, FILE_NAME)
  if (existsSync(file)) loadEnvFile(file)
}

/** `isInEnvFile` returns whether the file sets the variable. */
export function isInEnvFile(folder: string, variable: string): boolean {
  const file = join(folder, FILE_NAME)
  return existsSync(file) && parseEnv(readFileSync(file, 'utf8'))[variable] !== undefined
}
