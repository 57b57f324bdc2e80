// `computeStoreId` identifies the store of an app, so that a client of a server can check which store it uses. The id is a hash,
// because every client of the server sees it, and the location of the store must stay private.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import type { Store } from './contract/index.ts'

/** `STORE_ID_HEADER` is a response header of `/healthz`. */
export const STORE_ID_HEADER = 'sluice-store'

/** `computeStoreId` returns the same id in every process that uses the same store. Memory stores differ by working directory. */
export function computeStoreId(address: string | Store): string {
  const place = resolveLocation(typeof address === 'string' ? address : 'its own')
  return createHash('sha256').update(place).digest('base64url')
}

function resolveLocation(address: string): string {
  // A store that other machines reach as well is identified without its user and password, which are secret.
  const shared = /^\w+:\/\/(?:[^/]*@)?([^?]+)/.exec(address)?.[1]
  if (shared !== undefined) return `${shared}\0${/[?&]schema=([^&]+)/.exec(address)?.[1] ?? ''}`
  const file = /^sqlite:(?!:memory:)(.+)$/.exec(address)?.[1]
  return `${hostname()}\0${file === undefined ? `${process.cwd()}\0${address}` : resolveFile(file)}`
}

/** Resolves links, also for a file that does not exist yet. */
function resolveFile(file: string): string {
  const whole = resolve(file)
  return tryRealpath(whole) ?? join(tryRealpath(dirname(whole)) ?? dirname(whole), basename(whole))
}

function tryRealpath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
