// Chooses what a command talks to: the named server, else the server on the configuration's store, else the app itself.
import { dirname, resolve } from 'node:path'
import { SluiceError } from '../errors.ts'
import type { Clock } from '../clock.ts'
import type { ListenOptions } from '../http/server.ts'
import type { Sluice } from '../app/sluice.ts'
import { STORE_ID_HEADER } from '../store/open.ts'
import { redirectStdout } from './output.ts'
import type { ApiClient, UnreachableApi } from './api-client.ts'
import { findConfigPath, loadConfig, hasConfig } from './config-file.ts'
import { useDevKey } from './dev-key.ts'
import { applyEnvFile } from './env-file.ts'
import { serverHasKey, HttpApiClient, probeServer } from './http-api-client.ts'

export interface ConnectOptions {
  readonly url: string | undefined
  readonly key: string | undefined
  readonly config: string | undefined
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

type ClientTarget =
  | { readonly kind: 'server'; readonly server: HttpApiClient }
  /** No server of the configuration responds. */
  | { readonly kind: 'own'; readonly app: Sluice; readonly file: string }
  /** Something responds at the server's address, and it is not that server. */
  | ForeignServer

interface ForeignServer {
  readonly kind: 'foreign'
  readonly url: string
  readonly file: string
}

const PORT = '8787'

async function findTarget(where: ConnectOptions): Promise<ClientTarget> {
  const { env, clock, folder, config } = where
  // The file may name the server and the key.
  applyEnvFile(config === undefined ? folder : dirname(resolve(folder, config)))
  const key = where.key ?? env['SLUICE_KEY']
  const named = where.url ?? env['SLUICE_URL']
  if (named !== undefined) return toServerTarget(assertUrl(named), key)
  const usual = assertUrl(`http://127.0.0.1:${env['PORT']?.trim() || PORT}`)
  if (!hasConfig(where) && (await probeServer(usual, clock)) !== undefined) return withProvenKey(usual, clock, key)
  const { app, listen, file } = await loadApp(where)
  const url = toServerUrl(listen, usual)
  const server = url === undefined ? undefined : await probeServer(url, clock)
  if (url === undefined || server === undefined) return { kind: 'own', app, file }
  if (server.storeId === (await readStoreId(app))) {
    // Any program could send the same id, so the key is sent only after the server proved that it has it.
    return withProvenKey(url, clock, key)
  }
  // `--config` names the app in the file, so a server elsewhere does not matter.
  if (where.config !== undefined) return { kind: 'own', app, file }
  return { kind: 'foreign', url, file }
}

export async function findClient(where: ConnectOptions): Promise<ApiClient> {
  const found = await findTarget(where)
  if (found.kind === 'server') return found.server
  if (found.kind === 'own') return createLocalClient(found)
  const answer = foreignServer(found, `--config=${found.file} to use the app in the file`)
  return { kind: 'none', location: 'no server', call: () => Promise.resolve(answer), close: () => Promise.resolve() }
}

/** `openLocalClient` opens the app in this process, even if a server runs. */
export async function openLocalClient(where: ConnectOptions): Promise<ApiClient> {
  return createLocalClient(await loadApp(where))
}

/** `findServer` is for commands that only a server can execute. */
export async function findServer(where: ConnectOptions): Promise<HttpApiClient | UnreachableApi> {
  const found = await findTarget(where)
  if (found.kind === 'server') return found.server
  if (found.kind === 'foreign')
    return foreignServer(found, 'start the server of the app in the file, with another PORT')
  return { kind: 'unreached', why: `No server of ${found.file} is running.` }
}

function foreignServer({ url, file }: ForeignServer, otherwise: string): UnreachableApi {
  const why = `The server at ${url} uses another store than ${file}.`
  return { kind: 'unreached', why, fix: `Pass --url=${url} to use that server, or ${otherwise}.` }
}

async function loadApp(where: ConnectOptions): Promise<{ app: Sluice; listen: ListenOptions; file: string }> {
  const file = findConfigPath(where.folder, where.config)
  redirectStdout()
  applyEnvFile(dirname(file))
  useDevKey(where.folder)
  return { ...(await loadConfig(file)), file }
}

async function createLocalClient({ app, file }: { readonly app: Sluice; readonly file: string }): Promise<ApiClient> {
  // Loaded on demand: only a command that opens the app itself needs the routes.
  const { LocalApiClient } = await import('./local-api-client.ts')
  return new LocalApiClient(app, file)
}

/** The user did not name this server, so it gets the key only if it proves that it has the key. */
async function withProvenKey(url: string, clock: Clock, key: string | undefined): Promise<ClientTarget> {
  if (key === undefined || (await serverHasKey(url, clock, key))) return toServerTarget(url, key)
  return toServerTarget(url, undefined, true)
}

function toServerTarget(url: string, key: string | undefined, isUntrusted = false): ClientTarget {
  return { kind: 'server', server: new HttpApiClient({ url, key, isUntrusted }) }
}

function assertUrl(url: string): string {
  const parsed = URL.parse(url)
  const isHttp = parsed !== null && /^https?:$/.test(parsed.protocol)
  if (isHttp && parsed.username === '' && parsed.password === '') return url
  // The part before an @ may contain a password, so it is not shown.
  const got = url.includes('@') ? 'a URL with a user or a password' : JSON.stringify(url)
  const fix = 'Pass e.g. http://127.0.0.1:8787, and the key in SLUICE_KEY.'
  throw new SluiceError(
    'CONFIG_INVALID',
    `url must be an http or https URL without a user; got ${got}.`,
    undefined,
    fix,
  )
}

/** Returns the server's URL, or undefined if only the server knows its port. */
function toServerUrl({ port, host = '', tls }: ListenOptions, usual: string): string | undefined {
  if (port === 0) return undefined
  const isHere = ['', '0.0.0.0', '::', 'localhost'].includes(host)
  const name = isHere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${tls === undefined ? 'http' : 'https'}://${name}:${port ?? new URL(usual).port}`
}

/** Returns the store id that the app's server would send. An app knows it without being started. */
async function readStoreId(app: Sluice): Promise<string> {
  const answer = await app.fetch(new Request('http://localhost/healthz'))
  return answer.headers.get(STORE_ID_HEADER) ?? 'none'
}
