// `openStore` opens a store by its address. It loads only the driver that the address needs. An address may hold a password, so
// errors never quote a part that could be one, and `computeStoreId` returns a hash.
import type { Clock } from '../clock.ts'
import type { Store } from './contract/index.ts'
import { SluiceError } from '../errors.ts'
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

export interface OpenStoreOptions {
  readonly clock?: Clock
  /** SQLite: opens the file for reading while another process works on it. */
  readonly readOnly?: boolean
  /** SQLite: the maximum size of the file. */
  readonly maxBytes?: number
  /** PostgreSQL: the maximum number of connections of this process. */
  readonly connections?: number
  /** PostgreSQL, Redis: accepts a server that may lose acknowledged writes in a crash. Without this option, such a server is rejected. */
  readonly acceptLoss?: boolean
  /** Redis: what a commit waits for before it is acknowledged: a number of replicas, and the sync of the append-only file. */
  readonly confirm?: { readonly replicas?: number; readonly fsync?: boolean }
}

type StoreKind = 'memory' | 'sqlite' | 'postgres' | 'redis' | 'custom'

/** The stores that a user opened before an app got them. */
const opened = new WeakMap<Store, string>()

/** `getStoreKind` returns what kind of store an app has; `custom` is a store that `openStore` did not open. */
export function getStoreKind(store: string | Store): StoreKind {
  const address = typeof store === 'string' ? store : (opened.get(store) ?? '')
  return (/^(?:memory|sqlite|postgres|redis)/.exec(address)?.[0] as StoreKind | undefined) ?? 'custom'
}

/** `openStore` opens `memory:`, `sqlite:<file>`, `postgres://…` or `redis://…`. */
export async function openStore(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  const store = await openAddress(address, options)
  opened.set(store, address.slice(0, address.indexOf(':')))
  return store
}

async function openAddress(address: string, options: OpenStoreOptions): Promise<Store> {
  if (address === 'memory:') return (await import('./memory/store.ts')).openMemoryStore(options)
  const file = address.startsWith('sqlite:') ? address.slice('sqlite:'.length) : ''
  if (file !== '' && !isServerAddress(file))
    return (await import('./sqlite/store.ts')).openSqliteStore({ ...options, file })
  const schema = parseSchema(address)
  if (schema !== undefined) {
    const { clock, connections, acceptLoss = false } = options
    const { openPostgresStore } = await import('./postgres/store.ts')
    const size = connections === undefined ? {} : { connections }
    // Deadlines use the server's clock, except under the virtual clock of a test.
    return openPostgresStore({ url: address, schema, acceptLoss, ...size, ...(clock?.isVirtual === true && { clock }) })
  }
  if (REDIS.test(address)) {
    const { clock, confirm, acceptLoss = false } = options
    const [url, prefix] = parseRedisAddress(address)
    const { openRedisStore } = await import('./redis/store.ts')
    return openRedisStore({ url, prefix, acceptLoss, confirm, ...(clock?.isVirtual === true && { clock }) })
  }
  throw unknownAddress(address)
}

const DEFAULT_SCHEMA = 'sluice'

/** Returns the schema of a server address: `?schema=`, or the default. */
function parseSchema(address: string): string | undefined {
  return POSTGRES.test(address) ? (schemaOf(address) ?? DEFAULT_SCHEMA) : undefined
}

/** `getOutboxSchema` returns the schema whose `publish` function a user's transaction can call; undefined if the store has none. */
export function getOutboxSchema(store: string | Store): string | undefined {
  if (typeof store === 'string') return parseSchema(store)
  return 'outbox' in store && typeof store.outbox === 'string' ? store.outbox : undefined
}

const REDIS = /^rediss?:\/\//

/** Returns the address without the prefix of the keys: `?prefix=`, or the default. */
function parseRedisAddress(address: string): readonly [url: string, prefix: string] {
  let url: URL
  try {
    url = new URL(address)
  } catch {
    throw new SluiceError('STORE_UNKNOWN', 'The address of the Redis server must be a URL.', undefined, ENCODE_REDIS)
  }
  const { protocol, hostname: host, username, password, pathname, hash } = url
  const isDatabase = /^\/?\d*$/.test(pathname)
  if (host === '' || !isDatabase || hash !== '' || url.search.includes('@') || ![username, password].every(isEncoded))
    throw new SluiceError(
      'STORE_UNKNOWN',
      `The address of the Redis server must have a host, and the number of a database or nothing after it.`,
      undefined,
      ENCODE_REDIS,
    )
  const user = username === '' && password === '' ? '' : `${username}:${password}@`
  return [`${protocol}//${user}${url.host}${pathname}`, url.searchParams.get('prefix') ?? DEFAULT_PREFIX]
}

const DEFAULT_PREFIX = 'sluice'
const ENCODE_REDIS =
  'Encode the user and the password with encodeURIComponent, because / ? # @ : and % have a meaning of their own. Example: redis://user:password@host:6379/0?prefix=shop.'

const POSTGRES: RegExp = /^postgres(?:ql)?:\/\//

const ENCODE =
  'Encode the user and the password with encodeURIComponent, because / ? # @ : and % have a meaning of their own. Example: postgres://user:password@host:5432/database.'
const SCHEME = /^([a-z][a-z0-9+.-]{0,19}):/i
const LONGEST_SHOWN = 100

function unknownAddress(address: string): SluiceError {
  return new SluiceError('STORE_UNKNOWN', whatIsWrong(address))
}

function whatIsWrong(address: string): string {
  const scheme = SCHEME.exec(address)?.[1]
  if (scheme === 'sqlite')
    return 'The store address must have a path after sqlite:; got the address of a server, or nothing.'
  if (scheme !== undefined)
    return `The store address must be memory:, sqlite:<file>, postgres://… or redis://…; got one that begins with "${scheme}:".`
  if (address.includes('@') || address.length > LONGEST_SHOWN)
    return 'The store address must be memory:, sqlite:<file>, postgres://… or redis://…; got one without a scheme.'
  return `The store address must be memory:, sqlite:<file>, postgres://… or redis://…; got ${JSON.stringify(address)}.`
}

/** Returns whether the path after `sqlite:` is an address with a user or a host. A drive letter is no user. */
export function isServerAddress(file: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(file) || /\/\/[^/]*@/.test(file) || /^\/*[^/\\:]{2,}:[^/\\]*@/.test(file)
}

/**
 * Returns the schema that the address of a PostgreSQL server names with `?schema=`. It throws if the address is cut at a character of the password: the driver would take the rest for a host or a database, and name it in its errors.
 */
function schemaOf(address: string): string | undefined {
  const rest = address.replace(POSTGRES, '')
  const authority = /^[^/?#]*/.exec(rest)?.[0] ?? ''
  const [user, host] = [authority.slice(0, Math.max(0, authority.lastIndexOf('@'))), authority.split('@').at(-1) ?? '']
  const isCut = rest.includes('#') || rest.slice(authority.length).includes('@')
  if (isCut || !isHost(host) || !isEncoded(user))
    throw misread('it is cut at a character of its user or password, or has no valid host or port')
  const named = /[?&]schema=([^&]+)/.exec(rest)?.[1]
  if (named !== undefined && !isEncoded(named)) throw misread('its schema is not percent-encoded')
  return named === undefined ? undefined : decodeURIComponent(named)
}

/** The host may be empty (a socket), and the port must be a number up to 65535. */
function isHost(host: string): boolean {
  const port = /^(?:\[[\da-f:.]+\]|[^:\s]*)(?::(\d*))?$/i.exec(host)
  return port !== null && Number(port[1] ?? 0) <= 65_535
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function misread(why: string): SluiceError {
  return new SluiceError(
    'STORE_UNKNOWN',
    `The address of the PostgreSQL server must be a URL; ${why}.`,
    undefined,
    ENCODE,
  )
}

/** `STORE_ID_HEADER` is a response header of `/healthz`. */
export const STORE_ID_HEADER = 'sluice-store'

/**
 * `computeStoreId` identifies the store of an app, so that a client of a server can check which store it uses. The id is the same in
 * every process that uses the store. Memory stores differ by working directory.
 */
export function computeStoreId(address: string | Store): string {
  const location = resolveLocation(typeof address === 'string' ? address : 'its own')
  return createHash('sha256').update(location).digest('base64url')
}

function resolveLocation(address: string): string {
  // A store that other machines reach as well is identified without its user and password, which are secret.
  const shared = /^\w+:\/\/(?:[^/]*@)?([^?]+)/.exec(address)?.[1]
  if (shared !== undefined) return `${shared}\0${/[?&](?:schema|prefix)=([^&]+)/.exec(address)?.[1] ?? ''}`
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
