// `Api` finds the route, authenticates the caller, checks the input and writes the audit log. It never throws:
// every error becomes a problem response (RFC 9457) with a code from `errors.ts`.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { ReadBody } from '../receive/body.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceResponse } from '../receive/source.ts'
import type { AdminApi, ConnectionInfo } from '../http/admin-api.ts'
import type { Audit } from '../admin/audit.ts'
import type { Keys } from '../admin/keys.ts'
import { Sessions } from '../admin/sessions.ts'
import { Access, RegistrationLimiter, SUBSCRIBER_PREFIX } from './access.ts'
import {
  jsonResponse,
  MethodNotAllowedError,
  problemResponse,
  SECURITY_HEADERS,
  toApiFailure,
  TooManyRequestsError,
} from './responses.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { redact } from '../observe/log/redact.ts'
import { METRICS_TYPE } from '../observe/metrics/metrics.ts'
import { RequestRateLimiter } from '../receive/rate.ts'
import { DashboardSession, SESSION_PATH } from './dashboard-session.ts'
import { parseInput, parseQuery, readInput } from './input.ts'
import { buildOpenApi } from './openapi.ts'
import type { ApiRoute, ApiTarget, RateLimitedAction, Role } from './route.ts'
import { ROUTES } from './routes/index.ts'
import { Stream, type StreamDependencies } from './stream.ts'

/** How many tests, replays and rotations the token of one endpoint may do in an hour. */
const SUBSCRIBER_ACTION_RATE = { rate: 30, per: 3_600_000 }
const OPENAPI_PATH = '/openapi.json'
const METRICS_PATH = '/metrics'

/** The caller's name is set as soon as the caller is authenticated. */
interface Caller {
  name: string | undefined
}

interface MatchedRoute {
  readonly route: ApiRoute
  readonly params: Readonly<Record<string, string>>
}

export interface ApiDependencies extends StreamDependencies {
  readonly keys: Keys
  /** Whether anyone who reaches the server may read the metrics. */
  readonly isMetricsPublic?: boolean
  /** Whether calls from this machine need no key while no key exists. */
  readonly isOpen?: boolean
  readonly emit?: AnyListener
  /** The address of the store, for the dashboard. */
  readonly storeKind?: () => string
}

export class Api implements AdminApi {
  readonly #app: ApiTarget
  readonly #access: Access
  readonly #limiters: Readonly<Record<RateLimitedAction, RegistrationLimiter>>
  readonly #stream: Stream
  readonly #session: DashboardSession
  readonly #subscriberActions = new RequestRateLimiter(SUBSCRIBER_ACTION_RATE.rate, SUBSCRIBER_ACTION_RATE.per)
  readonly #monotonic: () => Millis
  readonly #isMetricsPublic: boolean
  readonly #emit: AnyListener | undefined
  readonly #routes = ROUTES.map((route) => ({ route, pattern: toPattern(route.path) }))

  constructor(
    app: ApiTarget,
    { keys, isMetricsPublic = false, isOpen = false, emit, storeKind = () => 'custom', ...deps }: ApiDependencies,
  ) {
    this.#app = app
    this.#isMetricsPublic = isMetricsPublic
    this.#emit = emit
    const refused = (address: string): void => emit?.('key.refused', { address })
    const monotonic = (): Millis => deps.clock.monotonic()
    this.#monotonic = monotonic
    const ownerOf = (token: string): Promise<string | undefined> => app.endpoints.findTokenOwner(token)
    const sessions = new Sessions(() => deps.store(), keys)
    this.#access = new Access({ keys, sessions, isOpen, findTokenOwner: ownerOf, monotonic, onRefused: refused })
    this.#session = new DashboardSession({ access: this.#access, sessions, admin: app.admin, storeKind })
    const { registrations } = app.endpoints
    this.#limiters = {
      registrations: new RegistrationLimiter('registrations', registrations, monotonic),
      tests: new RegistrationLimiter('tests', registrations, monotonic),
    }
    this.#stream = new Stream(deps)
    keys.onChange(() => this.#stream.recheckAccess())
    sessions.onEnd(() => this.#stream.recheckAccess())
  }

  async handle(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<SourceResponse> {
    const caller: Caller = { name: undefined }
    try {
      if (connection.dashboard !== undefined && head.url.pathname === SESSION_PATH) {
        return await this.#session.handle(head, connection, read)
      }
      if (head.method === 'GET' && head.url.pathname === OPENAPI_PATH) {
        caller.name = await this.#access.check(head, connection, 'read')
        return jsonResponse(200, buildOpenApi())
      }
      if (head.method === 'GET' && head.url.pathname === METRICS_PATH) {
        if (!this.#isMetricsPublic) caller.name = await this.#access.check(head, connection, 'read')
        return {
          status: 200,
          headers: { 'content-type': METRICS_TYPE, ...SECURITY_HEADERS },
          body: await this.#app.admin.metrics(),
        }
      }
      return await this.#callRoute(head, connection, read, caller)
    } catch (error) {
      return this.#toProblem(head, error, caller)
    }
  }

  async stream(head: RequestHead, connection: ConnectionInfo): Promise<Response> {
    const caller: Caller = { name: undefined }
    try {
      caller.name = await this.#access.check(head, connection, 'read')
      const watcher = { name: caller.name, isStillAllowed: () => this.#access.isStillAllowed(head, connection) }
      return await this.#stream.open(head.headers['last-event-id'] ?? '', watcher)
    } catch (error) {
      const { status, headers, body } = this.#toProblem(head, error, caller)
      return new Response(body ?? '', { status, headers: { ...headers } })
    }
  }

  async authorize(head: RequestHead, connection: ConnectionInfo, role: Role): Promise<string | SourceResponse> {
    try {
      return await this.#access.check(head, connection, role)
    } catch (error) {
      return this.#toProblem(head, error, { name: undefined })
    }
  }

  /** `close` ends all streams when the app stops; open ones would keep the server from closing. */
  close(): void {
    this.#stream.close()
  }

  /**
   * Emits as `api.failed` what the caller must not see: errors without a code and, unless the caller is an operator,
   * store errors.
   */
  #toProblem({ method, url }: RequestHead, error: unknown, caller: Caller): SourceResponse {
    const response = isOperator(caller) ? error : withoutDetails(error)
    if (!(error instanceof SluiceError) || response !== error) {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : `It threw ${typeof error}.`
      this.#emit?.('api.failed', { method, path: url.pathname.slice(0, 200), error: redact(text) })
    }
    return problemResponse(response)
  }

  async #callRoute(
    head: RequestHead,
    connection: ConnectionInfo,
    read: ReadBody,
    caller: Caller,
  ): Promise<SourceResponse> {
    const found = this.#matchRoute(head)
    // A caller without access must not learn which routes exist, and unknown paths count against the same limits.
    if (found instanceof SluiceError) caller.name = await this.#access.check(head, connection, 'read')
    if (found instanceof SluiceError) throw found
    const { route, params } = found
    const own = route.allowsOwnToken === true ? params['id'] : undefined
    const { actor, tenant: keyTenant } = await this.#access.allow(head, connection, route.role, own)
    // A key that may only publish or register must not learn what the store's errors say.
    caller.name = route.role === 'publish' || keyTenant !== undefined ? undefined : actor
    const count = (action: RateLimitedAction | undefined): void => {
      if (action !== undefined) this.#limiters[action].count(head.address, actor)
    }
    if (typeof route.rateLimited !== 'function') count(route.rateLimited)
    if (route.auditText !== undefined && actor.startsWith(SUBSCRIBER_PREFIX)) this.#limitSubscriberActions(actor)
    const input = {
      actor,
      keyTenant,
      params: parseInput(route.params, params, 'path'),
      query: parseInput(route.query, parseQuery(head.url), 'query'),
      body: route.method === 'GET' ? undefined : await readInput(route, head, read),
    } as never
    if (typeof route.rateLimited === 'function') count(route.rateLimited(input))
    const status = route.status ?? 200
    if (typeof route.auditText !== 'function') return jsonResponse(status, await route.handle(this.#app, input))
    const act = (): Promise<unknown> => route.handle(this.#app, input)
    return jsonResponse(status, await runAudited(this.#app.admin.audit, actor, route.auditText(input), act))
  }

  /** The audit log keeps every action forever, so the number of actions per endpoint token is bounded. */
  #limitSubscriberActions(who: string): void {
    const after = this.#subscriberActions.count(who, this.#monotonic())
    if (after !== undefined) throw new TooManyRequestsError('This token makes too many actions.', after)
  }

  #matchRoute({ method, url }: RequestHead): MatchedRoute | SluiceError {
    const matching = this.#routes.flatMap(({ route, pattern }) => {
      const found = pattern.exec(url.pathname)
      return found === null ? [] : { route, params: found.groups ?? {} }
    })
    const found = matching.find(({ route }) => route.method === method)
    if (found !== undefined) return { route: found.route, params: decodeParams(found.params) }
    if (matching.length === 0) {
      const what = `No route matches ${url.pathname.slice(0, 200)}.`
      return new SluiceError('NOT_FOUND', what, undefined, 'See /openapi.json for the addresses there are.')
    }
    return new MethodNotAllowedError(matching.map(({ route }) => route.method))
  }
}

function isOperator({ name }: Caller): boolean {
  return name !== undefined && !name.startsWith(SUBSCRIBER_PREFIX)
}

/** `withoutDetails` hides the addresses, paths and statements that the texts of store errors contain. */
function withoutDetails(error: unknown): unknown {
  if (!(error instanceof SluiceError) || !error.code.startsWith('STORE_')) return error
  return new SluiceError(error.code, 'The store is unavailable right now.', error)
}

/** `{id}` matches one segment of the path. */
function toPattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
}

function decodeParams(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(params).map(([name, text]) => [name, decodePathPart(text)]))
}

function decodePathPart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new SluiceError(
      'REQUEST_INVALID',
      `The path must be percent-encoded UTF-8; got ${JSON.stringify(text.slice(0, 40))}.`,
    )
  }
}

/**
 * Runs an operator's action between two entries in the audit log: the request, then the outcome. The request comes
 * first, so that the action is on record even if the process dies during it.
 */
async function runAudited(audit: Audit, who: string, what: string, act: () => Promise<unknown>): Promise<unknown> {
  await audit.write(who, `requested: ${what}`)
  // The action has happened and its request is on record, so a failure to write the outcome must not fail the call.
  const end = (outcome: string): Promise<void> => audit.write(who, `${outcome}: ${what}`).catch(() => {})
  try {
    const answer = await act()
    await end(describeOutcome(answer))
    return answer
  } catch (error) {
    await end(describeFailure(error))
    throw error
  }
}

/** The fields of a response that the audit log may contain. Other fields may be secret. */
const REPORTED_FIELDS: ReadonlySet<string> = new Set(['result', 'count', 'events', 'deadLetters', 'runs', 'id'])

function describeOutcome(answer: unknown): string {
  const reported = Object.entries(answer as object).filter(([name]) => REPORTED_FIELDS.has(name))
  const text = reported
    .map(([name, value]) => (name === 'result' ? String(value) : `${name} ${String(value)}`))
    .join(', ')
  const isDone = reported.every(([name, value]) => name !== 'result' || value === 'ok')
  return `${isDone ? 'done' : 'not done'}${text === '' ? '' : ` (${text})`}`
}

function describeFailure(error: unknown): string {
  const { code, status } = toApiFailure(error)
  return status < 500 ? `not done (${code})` : `failed (${code}), perhaps half done`
}
