// Who is asked: the server that was named, else the one that works on the store of the configuration, else the app itself.
import { SluiceError } from '../errors.ts'
import type { Clock } from '../clock.ts'
import type { ListenOptions } from '../http/server.ts'
import type { Sluice } from '../sluice.ts'
import { STORE_MARK } from '../store-mark.ts'
import { keepForAnswers } from './answer-stream.ts'
import type { Caller, Unreached } from './caller.ts'
import { configFile, configured, hasConfig } from './config-file.ts'
import { useDevKey } from './dev-key.ts'
import { hasKey, ServerCaller, serverAt } from './server-call.ts'

export interface Where {
  readonly url: string | undefined
  readonly key: string | undefined
  readonly config: string | undefined
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

type Found =
  | { readonly kind: 'server'; readonly server: ServerCaller }
  /** No server of the configuration answers. */
  | { readonly kind: 'own'; readonly app: Sluice; readonly file: string }
  /** Somebody answers where its server should be, and it is not that. */
  | { readonly kind: 'foreign'; readonly answer: Unreached }

const PORT = '8787'

async function find(where: Where): Promise<Found> {
  const { env, clock } = where
  const key = where.key ?? env['SLUICE_KEY']
  const named = where.url ?? env['SLUICE_URL']
  if (named !== undefined) return served(checked(named), key)
  const usual = checked(`http://127.0.0.1:${env['PORT']?.trim() || PORT}`)
  // Nobody can say whose it is: it gets no key.
  if (!hasConfig(where) && (await serverAt(usual, clock)) !== undefined)
    return served(usual, undefined, key !== undefined)
  const { app, listen, file } = await load(where)
  const url = urlOf(listen, usual)
  const server = url === undefined ? undefined : await serverAt(url, clock)
  if (url === undefined || server === undefined) return { kind: 'own', app, file }
  if (server.mark === (await markOf(app))) {
    // Everybody can answer with that mark.
    if (key === undefined || (await hasKey(url, clock, key))) return served(url, key)
    return served(url, undefined, true)
  }
  // Who names the file means the app in it, whoever is where its server might have been.
  if (where.config !== undefined) return { kind: 'own', app, file }
  const why = `The server at ${url} is not that of ${file}: it works on another store.`
  const fix = `Say --url=${url} if that one is meant, or --config=${file} if the app of the file is.`
  return { kind: 'foreign', answer: { kind: 'unreached', why, fix } }
}

export async function findCaller(where: Where): Promise<Caller> {
  const found = await find(where)
  if (found.kind === 'server') return found.server
  if (found.kind === 'own') return ownCaller(found)
  const { answer } = found
  return { kind: 'none', where: 'nobody', call: () => Promise.resolve(answer), close: () => Promise.resolve() }
}

/** The app itself, whoever else there is. */
export async function findOwn(where: Where): Promise<Caller> {
  return ownCaller(await load(where))
}

/** For what only a server can do. */
export async function findServer(where: Where): Promise<ServerCaller | Unreached> {
  const found = await find(where)
  if (found.kind === 'server') return found.server
  if (found.kind === 'foreign') return found.answer
  return { kind: 'unreached', why: `There is no server of ${found.file}.` }
}

async function load(where: Where): Promise<{ app: Sluice; listen: ListenOptions; file: string }> {
  const file = configFile(where.folder, where.config)
  keepForAnswers()
  useDevKey(where.folder)
  return { ...(await configured(file)), file }
}

async function ownCaller({ app, file }: { readonly app: Sluice; readonly file: string }): Promise<Caller> {
  // Only who asks the app itself needs all that answers.
  const { OwnCaller } = await import('./own-call.ts')
  return new OwnCaller(app, file)
}

function served(url: string, key: string | undefined, isUntrusted = false): Found {
  return { kind: 'server', server: new ServerCaller({ url, key, isUntrusted }) }
}

function checked(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url
  throw new SluiceError('CONFIG_INVALID', `url is ${JSON.stringify(url)}; it is as http://127.0.0.1:8787.`)
}

/** Where the server of a configuration is. Undefined: on a port that only it knows. */
function urlOf({ port, host = '', tls }: ListenOptions, usual: string): string | undefined {
  if (port === 0) return undefined
  const isHere = ['', '0.0.0.0', '::', 'localhost'].includes(host)
  const name = isHere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${tls === undefined ? 'http' : 'https'}://${name}:${port ?? new URL(usual).port}`
}

/** As its server would answer: an app says so itself, without being started. */
async function markOf(app: Sluice): Promise<string> {
  const answer = await app.fetch(new Request('http://localhost/healthz'))
  return answer.headers.get(STORE_MARK) ?? 'none'
}
