// Which store an app works on, so that who asks a server can tell whether it is the one meant. A hash: whoever can reach the
// server gets to see it, and where the store is, is nobody's business.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import type { Store } from './store/contract/index.ts'

/** Of the answer of `/healthz`. */
export const STORE_MARK = 'sluice-store'

/** The same in every process that means the same store; those in memory are told apart by the folder. */
export function storeMark(address: string | Store): string {
  const place = placeOf(typeof address === 'string' ? address : 'its own')
  return createHash('sha256').update(place).digest('base64url')
}

function placeOf(address: string): string {
  // Of one that other machines reach as well: without who signs in there, which is a secret.
  const shared = /^\w+:\/\/(?:[^/]*@)?([^?]+)/.exec(address)?.[1]
  if (shared !== undefined) return `${shared}\0${/[?&]schema=([^&]+)/.exec(address)?.[1] ?? ''}`
  const file = /^sqlite:(?!:memory:)(.+)$/.exec(address)?.[1]
  return `${hostname()}\0${file === undefined ? `${process.cwd()}\0${address}` : realFile(file)}`
}

/** Also of one that is yet to be made. */
function realFile(file: string): string {
  const whole = resolve(file)
  return realOf(whole) ?? join(realOf(dirname(whole)) ?? dirname(whole), basename(whole))
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
