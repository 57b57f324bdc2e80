// Finds and loads the app from `sluice.config.ts`. Node itself strips the types; no build step is needed.
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SluiceError } from '../errors.ts'
import type { ListenOptions } from '../http/server.ts'
import type { Sluice } from '../app/sluice.ts'
import { applyEnvFile } from './env-file.ts'
import type { ConnectOptions } from './find-client.ts'
import { loadAsModules } from './module-format.ts'

const FILE_NAMES = ['sluice.config.ts', 'sluice.config.mts', 'sluice.config.js', 'sluice.config.mjs'] as const

/** `hasConfig` is also true for a named file that does not exist, so that its absence is reported. */
export function hasConfig({ folder, config }: Pick<ConnectOptions, 'folder' | 'config'>): boolean {
  return config !== undefined || findExisting(folder, config) !== undefined
}

/** `findConfigPath` returns the file `given`, or searches the folder if none is given. */
export function findConfigPath(folder: string, value: string | undefined): string {
  const file = findExisting(folder, value)
  if (file !== undefined) return file
  if (value === undefined) throw new SluiceError('CONFIG_MISSING', `There is no ${FILE_NAMES[0]} in ${folder}.`)
  throw new SluiceError('CONFIG_MISSING', `There is no file ${value}.`, undefined, 'Correct the path after --config.')
}

function findExisting(folder: string, value: string | undefined): string | undefined {
  const candidates = value === undefined ? FILE_NAMES.map((name) => join(folder, name)) : [resolve(folder, value)]
  return candidates.find((file) => existsSync(file))
}

const EXPORT_APP_FIX = 'End it with: export default app.'
const LISTEN_FIX = 'Export an object, e.g. export const listen = { port: 8787 }.'

export interface LoadedConfig {
  readonly app: Sluice
  /** The listen options, if the file exports them. */
  readonly listen: ListenOptions
}

/** `loadConfig` loads the file, after the variables of the `.env` beside it. */
export async function loadConfig(file: string): Promise<LoadedConfig> {
  let loaded: { readonly default?: unknown; readonly listen?: unknown }
  applyEnvFile(dirname(file))
  loadAsModules()
  try {
    loaded = (await import(pathToFileURL(file).href)) as typeof loaded
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const why = error instanceof Error ? describeThrown(error) : String(error)
    throw new SluiceError('CONFIG_INVALID', `${file} cannot be loaded: ${why}.`, error, 'Correct the file.')
  }
  const { default: app, listen = {} } = loaded
  if (!isApp(app)) {
    throw new SluiceError('CONFIG_INVALID', `${file} has no app as its default export.`, undefined, EXPORT_APP_FIX)
  }
  if (typeof listen !== 'object' || listen === null) {
    throw new SluiceError('CONFIG_INVALID', `${file} exports a listen that is not an object.`, undefined, LISTEN_FIX)
  }
  return { app, listen }
}

/** The frames inside Node do not help to find the mistake in the file. */
function describeThrown({ stack, name, message }: Error): string {
  const lines = (stack ?? `${name}: ${message}`).split('\n')
  return lines.filter((line) => !/^\s+at .*(?:\(|\s)node:/.test(line)).join('\n')
}

/** Checks the shape, because the app may come from another copy of this package. */
function isApp(value: unknown): value is Sluice {
  return typeof value === 'object' && value !== null && 'listen' in value && 'start' in value && 'stop' in value
}
