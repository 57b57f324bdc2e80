// Finds and loads the app: `sluice.config.ts`, run as it is. Node itself takes the types away; nothing is built.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SluiceError } from '../errors.ts'
import type { ListenOptions } from '../http/server.ts'
import type { Sluice } from '../sluice.ts'

const NAMES = ['sluice.config.ts', 'sluice.config.mts', 'sluice.config.js', 'sluice.config.mjs'] as const

/** Whether one is meant: one that was named is, also if it is not there. */
export function hasConfig({
  folder,
  config,
}: {
  readonly folder: string
  readonly config: string | undefined
}): boolean {
  return config !== undefined || found(folder, config) !== undefined
}

/** `given` is a file; without it the folder is looked through. */
export function configFile(folder: string, given: string | undefined): string {
  const file = found(folder, given)
  if (file !== undefined) return file
  const what = given === undefined ? `There is no ${NAMES[0]} in ${folder}` : `There is no file ${given}`
  throw new SluiceError('CONFIG_MISSING', `${what}.`)
}

function found(folder: string, given: string | undefined): string | undefined {
  const candidates = given === undefined ? NAMES.map((name) => join(folder, name)) : [resolve(folder, given)]
  return candidates.find((file) => existsSync(file))
}

export interface Configured {
  readonly app: Sluice
  /** How it is served, where the file says so. */
  readonly listen: ListenOptions
}

export async function configured(file: string): Promise<Configured> {
  let loaded: { readonly default?: unknown; readonly listen?: unknown }
  try {
    loaded = (await import(pathToFileURL(file).href)) as typeof loaded
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
    throw new SluiceError('CONFIG_INVALID', `${file} cannot be loaded: ${why}.`, error)
  }
  const { default: app, listen = {} } = loaded
  if (!isApp(app)) {
    throw new SluiceError('CONFIG_INVALID', `${file} does not export an app as its default: export default app.`)
  }
  if (typeof listen !== 'object' || listen === null) {
    throw new SluiceError('CONFIG_INVALID', `${file} exports a listen that is no object, as { port: 8787 } is.`)
  }
  return { app, listen }
}

/** By its shape: one of another copy of this package is an app as well, and who only asks a server needs none. */
function isApp(value: unknown): value is Sluice {
  return typeof value === 'object' && value !== null && 'listen' in value && 'start' in value && 'stop' in value
}
