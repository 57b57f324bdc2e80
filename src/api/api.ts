// The admin API: finds the route, looks who is asking and what for, writes the audit log, answers. Never fails: whatever goes
// wrong is a problem with a code of the one catalogue (RFC 9457).
import type { z } from 'zod'
import { ERRORS, SluiceError } from '../errors.ts'
import type { ReadBody } from '../receive/bounds.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'
import type { AdminApi, Connection } from '../http/inbound.ts'
import type { Keys } from '../operate/keys.ts'
import { Access } from './access.ts'
import { METRICS_TYPE } from '../observe/metrics.ts'
import { CallLater } from './call-later.ts'
import type { Operated } from './operated.ts'
import { openApi } from './openapi.ts'
import type { ApiRoute } from './route.ts'
import { ROUTES } from './routes/index.ts'
import { Stream, type StreamParts } from './stream.ts'

const BODY_MAX = 1024 * 1024
const OPENAPI_PATH = '/openapi.json'
const METRICS_PATH = '/metrics'

/** Nothing here is to be kept, framed, sniffed or run by a browser. */
const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

interface Found {
  readonly route: ApiRoute
  readonly params: Readonly<Record<string, string>>
}

export interface ApiParts extends StreamParts {
  readonly keys: Keys
  /** Whoever reaches the server may read the metrics. */
  readonly metricsAreOpen?: boolean
}

export class Api implements AdminApi {
  readonly #app: Operated
  readonly #access: Access
  readonly #stream: Stream
  readonly #metricsAreOpen: boolean
  readonly #routes = ROUTES.map((route) => ({ route, pattern: patternOf(route.path) }))

  constructor(app: Operated, { keys, metricsAreOpen = false, ...parts }: ApiParts) {
    this.#app = app
    this.#metricsAreOpen = metricsAreOpen
    this.#access = new Access({ keys, monotonic: () => parts.clock.monotonic() })
    this.#stream = new Stream(parts)
  }

  async answer(head: RequestHead, connection: Connection, read: ReadBody): Promise<SourceAnswer> {
    try {
      if (head.method === 'GET' && head.url.pathname === OPENAPI_PATH) {
        await this.#access.check(head, connection, 'read')
        return json(200, openApi())
      }
      if (head.method === 'GET' && head.url.pathname === METRICS_PATH) {
        if (!this.#metricsAreOpen) await this.#access.check(head, connection, 'read')
        return { status: 200, headers: { 'content-type': METRICS_TYPE, ...HEADERS }, body: await this.#app.metrics() }
      }
      return json(200, await this.#call(head, connection, read))
    } catch (error) {
      return problem(error)
    }
  }

  async stream(head: RequestHead, connection: Connection): Promise<Response> {
    try {
      await this.#access.check(head, connection, 'read')
      return await this.#stream.open(head.headers['last-event-id'] ?? '')
    } catch (error) {
      const { status, headers, body } = problem(error)
      return new Response(body ?? '', { status, headers: { ...headers } })
    }
  }

  /** When the app stops: whoever watches would keep it. */
  end(): void {
    this.#stream.end()
  }

  async #call(head: RequestHead, connection: Connection, read: ReadBody): Promise<unknown> {
    const { route, params } = this.#find(head)
    const who = await this.#access.check(head, connection, route.role)
    const asked = {
      who,
      params: checked(route.params, params, 'path'),
      query: checked(route.query, queryOf(head.url), 'query'),
      body: route.method === 'GET' ? undefined : checked(route.body, await jsonBody(head, read), 'body'),
    } as never
    if (route.audited !== undefined) await this.#app.audit.write(who, route.audited(asked))
    return route.handle(this.#app, asked)
  }

  #find({ method, url }: RequestHead): Found {
    const matching = this.#routes.flatMap(({ route, pattern }) => {
      const found = pattern.exec(url.pathname)
      return found === null ? [] : { route, params: found.groups ?? {} }
    })
    const found = matching.find(({ route }) => route.method === method)
    if (found !== undefined) return { route: found.route, params: mapped(found.params) }
    if (matching.length === 0) throw new SluiceError('NOT_FOUND', `There is nothing at ${url.pathname.slice(0, 200)}.`)
    const methods = matching.map(({ route }) => route.method).join(', ')
    throw new SluiceError('METHOD_WRONG', `This address takes ${methods}.`)
  }
}

/** `{id}` is one part of the path. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
}

function mapped(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(params).map(([name, text]) => [name, decoded(text)]))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new SluiceError('REQUEST_INVALID', `The path has ${JSON.stringify(text.slice(0, 40))}, which is no text.`)
  }
}

/** A name that is there twice is a mistake, and which one counts would be a guess. */
function queryOf({ searchParams }: URL): Readonly<Record<string, string>> {
  const query: Record<string, string> = {}
  for (const [name, value] of searchParams) {
    if (Object.hasOwn(query, name)) throw new SluiceError('REQUEST_INVALID', `query: ${name} is there twice.`)
    Object.defineProperty(query, name, { value, enumerable: true })
  }
  return query
}

async function jsonBody(head: RequestHead, read: ReadBody): Promise<unknown> {
  const body = await read(BODY_MAX)
  if (body === 'too-large') throw new SluiceError('BODY_TOO_LONG', 'The body is longer than 1 MB.')
  if (body === 'cut-off' || body === 'no-room') throw new SluiceError('REQUEST_INVALID', 'body: it ended too early.')
  if (body.length === 0) return {}
  // A form that a browser sends by itself has another one.
  if (!/^application\/json\b/i.test(head.headers['content-type'] ?? '')) {
    throw new SluiceError('BODY_NOT_JSON', 'The body is taken as JSON only.')
  }
  try {
    return JSON.parse(Buffer.from(body).toString())
  } catch {
    throw new SluiceError('REQUEST_INVALID', 'body: it is no JSON.')
  }
}

function checked(schema: z.ZodType, value: unknown, where: 'path' | 'query' | 'body'): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const { path = [], message = 'it is not understood' } = result.error.issues[0] ?? {}
  const field = path.length === 0 ? where : `${where}: ${path.join('.')}`
  throw new SluiceError('REQUEST_INVALID', `${field}: ${message}.`)
}

function json(status: number, value: unknown): SourceAnswer {
  return { status, headers: { 'content-type': 'application/json', ...HEADERS }, body: JSON.stringify(value) }
}

function problem(error: unknown): SourceAnswer {
  const { code, status, fix, detail } = known(error)
  const later = error instanceof CallLater ? String(Math.max(1, Math.ceil(error.after / 1_000))) : undefined
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      ...HEADERS,
      ...(later !== undefined && { 'retry-after': later }),
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    },
    body: JSON.stringify({ type: `urn:sluice:problem:${code}`, title: titleOf(code), status, detail, code, fix }),
  }
}

type Known = Pick<SluiceError, 'code' | 'status' | 'fix'> & { readonly detail: string }

/** What is wrong with an option of code is, said over HTTP, wrong with the request. */
function known(error: unknown): Known {
  const failure =
    error instanceof SluiceError ? error : new SluiceError('API_FAILED', 'The call could not be done.', error)
  const { message, fix } = failure
  // The message of an error begins with its code and ends with its fix.
  const detail = message.slice(failure.code.length + 2, message.length - fix.length).trim()
  const code = failure.code === 'CONFIG_INVALID' ? 'REQUEST_INVALID' : failure.code
  return { code, detail, ...ERRORS[code] }
}

function titleOf(code: keyof typeof ERRORS): string {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
