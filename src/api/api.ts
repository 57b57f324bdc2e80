// The admin API: finds the route, looks who is asking and what for, writes the audit log, answers. Never fails: whatever goes
// wrong is a problem with a code of the one catalogue (RFC 9457).
import type { z } from 'zod'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { ReadBody } from '../receive/bounds.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'
import type { AdminApi, Connection } from '../http/inbound.ts'
import type { Keys } from '../operate/keys.ts'
import { Access } from './access.ts'
import { HEADERS, json, problem } from './answers.ts'
import { audited } from './audited.ts'
import type { AnyListener } from '../observe/events.ts'
import { scrubbed } from '../observe/log-secrets.ts'
import { METRICS_TYPE } from '../observe/metrics.ts'
import { MethodWrong } from './method-wrong.ts'
import type { Operated } from './operated.ts'
import { openApi } from './openapi.ts'
import { Registrations } from './registrations.ts'
import type { ApiRoute, Counted } from './route.ts'
import { ROUTES } from './routes/index.ts'
import { Stream, type StreamParts } from './stream.ts'

const BODY_MAX = 1024 * 1024
const OPENAPI_PATH = '/openapi.json'
const METRICS_PATH = '/metrics'

interface Found {
  readonly route: ApiRoute
  readonly params: Readonly<Record<string, string>>
}

export interface ApiParts extends StreamParts {
  readonly keys: Keys
  /** Whoever reaches the server may read the metrics. */
  readonly metricsAreOpen?: boolean
  readonly emit?: AnyListener
}

export class Api implements AdminApi {
  readonly #app: Operated
  readonly #access: Access
  readonly #counted: Readonly<Record<Counted, Registrations>>
  readonly #stream: Stream
  readonly #metricsAreOpen: boolean
  readonly #emit: AnyListener | undefined
  readonly #routes = ROUTES.map((route) => ({ route, pattern: patternOf(route.path) }))

  constructor(app: Operated, { keys, metricsAreOpen = false, emit, ...parts }: ApiParts) {
    this.#app = app
    this.#metricsAreOpen = metricsAreOpen
    this.#emit = emit
    const refused = (address: string): void => emit?.('key.refused', { address })
    const monotonic = (): Millis => parts.clock.monotonic()
    const ownerOf = (token: string): Promise<string | undefined> => app.endpoints.ownerOf(token)
    this.#access = new Access({ keys, ownerOf, monotonic, refused })
    const { registrations: rate } = app.endpoints
    this.#counted = {
      registrations: new Registrations('registrations', rate, monotonic),
      tests: new Registrations('tests', rate, monotonic),
    }
    this.#stream = new Stream(parts)
    keys.listen(() => this.#stream.checkSoon())
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
      return await this.#call(head, connection, read)
    } catch (error) {
      return this.#failed(head, error)
    }
  }

  async stream(head: RequestHead, connection: Connection): Promise<Response> {
    try {
      await this.#access.check(head, connection, 'read')
      return await this.#stream.open(head.headers['last-event-id'] ?? '', () => this.#access.isStillIn(head))
    } catch (error) {
      const { status, headers, body } = this.#failed(head, error)
      return new Response(body ?? '', { status, headers: { ...headers } })
    }
  }

  /** When the app stops: whoever watches would keep it. */
  end(): void {
    this.#stream.end()
  }

  /** What has no code is told to whoever runs the process: the caller is told no more than where to look. */
  #failed({ method, url }: RequestHead, error: unknown): SourceAnswer {
    if (!(error instanceof SluiceError)) {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : `It threw ${typeof error}.`
      this.#emit?.('api.failed', { method, path: url.pathname.slice(0, 200), error: scrubbed(text) })
    }
    return problem(error)
  }

  async #call(head: RequestHead, connection: Connection, read: ReadBody): Promise<SourceAnswer> {
    const { route, params } = this.#find(head)
    const who = await this.#access.check(head, connection, route.role, route.own === true ? params['id'] : undefined)
    const count = (what: Counted | undefined): void => {
      if (what !== undefined) this.#counted[what].count(head.address, who)
    }
    if (typeof route.counted !== 'function') count(route.counted)
    const asked = {
      who,
      params: checked(route.params, params, 'path'),
      query: checked(route.query, queryOf(head.url), 'query'),
      body: route.method === 'GET' ? undefined : checked(route.body, await jsonBody(head, read), 'body'),
    } as never
    if (typeof route.counted === 'function') count(route.counted(asked))
    const status = route.status ?? 200
    if (typeof route.audited !== 'function') return json(status, await route.handle(this.#app, asked))
    const act = { who, what: route.audited(asked), do: () => route.handle(this.#app, asked) }
    return json(status, await audited(this.#app.audit, act))
  }

  #find({ method, url }: RequestHead): Found {
    const matching = this.#routes.flatMap(({ route, pattern }) => {
      const found = pattern.exec(url.pathname)
      return found === null ? [] : { route, params: found.groups ?? {} }
    })
    const found = matching.find(({ route }) => route.method === method)
    if (found !== undefined) return { route: found.route, params: mapped(found.params) }
    if (matching.length === 0) throw new SluiceError('NOT_FOUND', `There is nothing at ${url.pathname.slice(0, 200)}.`)
    throw new MethodWrong(matching.map(({ route }) => route.method))
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
    return JSON.parse(Buffer.from(body).toString(), whole)
  } catch (error) {
    throw error instanceof SluiceError ? error : new SluiceError('REQUEST_INVALID', 'body: it is no JSON.')
  }
}

/** JSON can escape half a character (a lone surrogate), which nothing can keep as text. */
function whole(name: string, value: unknown): unknown {
  if (name.isWellFormed() && (typeof value !== 'string' || value.isWellFormed())) return value
  const where = name.slice(0, 100).toWellFormed()
  throw new SluiceError('REQUEST_INVALID', `body: ${where}: it is no text: one of its characters is only half there.`)
}

function checked(schema: z.ZodType, value: unknown, where: 'path' | 'query' | 'body'): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const { path = [], message = 'it is not understood' } = result.error.issues[0] ?? {}
  const field = path.length === 0 ? where : `${where}: ${path.join('.')}`
  throw new SluiceError('REQUEST_INVALID', `${field}: ${message}.`)
}
