// Finds and loads the app: `sluice.config.ts`, run as it is. Node itself takes the types away; nothing is built.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SluiceError } from '../errors.ts'
import { Sluice } from '../sluice.ts'

const NAMES = ['sluice.config.ts', 'sluice.config.mts', 'sluice.config.js', 'sluice.config.mjs'] as const

/** `given` is a file; without it the folder is looked through. */
export function configFile(folder: string, given: string | undefined): string {
  const candidates = given === undefined ? NAMES.map((name) => join(folder, name)) : [resolve(folder, given)]
  const found = candidates.find((file) => existsSync(file))
  if (found !== undefined) return found
  const what = given === undefined ? `There is no ${NAMES[0]} in ${folder}` : `There is no file ${given}`
  throw new SluiceError('CONFIG_MISSING', `${what}.`)
}

export async function loadApp(file: string): Promise<Sluice> {
  let loaded: { readonly default?: unknown }
  try {
    loaded = (await import(pathToFileURL(file).href)) as { readonly default?: unknown }
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
    throw new SluiceError('CONFIG_INVALID', `${file} cannot be loaded: ${why}.`, error)
  }
  const app = loaded.default
  if (isApp(app)) return app
  throw new SluiceError('CONFIG_INVALID', `${file} does not export an app as its default: export default app.`)
}

/** One of another copy of this package is an app as well. */
function isApp(value: unknown): value is Sluice {
  if (value instanceof Sluice) return true
  return typeof value === 'object' && value !== null && 'listen' in value && 'start' in value && 'stop' in value
}
