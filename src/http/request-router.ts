// `RequestRouter` routes HTTP requests to sources, app routes, the admin API and health checks, however they are
// served.
import type { Traces } from '../observe/trace/spans.ts'
import type { Clock } from '../clock.ts'
import type { ReadBody } from '../receive/body.ts'
import { toProblemResponse, type Problem } from '../receive/problem.ts'
import type { Receiver, RequestHead } from '../receive/receiver.ts'
import type { SourceResponse } from '../receive/source.ts'
import { PROOF_HEADER, CHALLENGE_HEADER, type ServerAddress } from '../crypto/key-proof.ts'
import { STORE_ID_HEADER } from '../store/open.ts'
import { isStreamRequest, type AdminApi, type ConnectionInfo } from './admin-api.ts'
import { BoundedRequest, routeBodyTooLarge, type AppRoute } from './app-route.ts'
import {
  Dashboard,
  DASHBOARD_MOUNT,
  findPathBelow,
  isBelowMount,
  parseDashboardContext,
  type DashboardContext,
} from './dashboard.ts'
import { targetFault } from './node-request.ts'
import { toWebRequestHead, toWebResponse, createWebBodyReader, type FetchContext } from './web-fetch.ts'

export interface RequestRouterDependencies {
  readonly receiver: Receiver
  readonly clock: Pick<Clock, 'after'>
  readonly routes: readonly AppRoute[]
  /** Returns why the app is not ready, or undefined if it is. */
  readonly findUnreadyReason: () => Promise<string | undefined>
  /** The admin API, created on first use. */
  readonly api: () => Promise<AdminApi>
  /** Whether the dashboard is served at its default mount. */
  readonly servesDashboard?: boolean
  readonly traces: Traces
  /** Returns the id of the store, with which a CLI finds the server of a store. */
  readonly storeId?: () => string
  /** Proves that the server has a key before a client sends that key. Undefined if the server has no key. */
  readonly proveKey?: (challenge: string, at: ServerAddress) => Promise<string | undefined>
}

/** `MatchedRoute` is a route of the app with the parameters of the requested path. */
export interface MatchedRoute {
  readonly route: AppRoute
  readonly params: Readonly<Record<string, string>>
}

/** `Arrival` is what is known about a request besides its content. */
interface Arrival {
  readonly head: RequestHead
  readonly connection: ConnectionInfo
  readonly context: FetchContext
}

const API_PATHS = /^\/(?:v1\/|openapi\.json$|metrics$)/
const HEALTH_PATHS = /^\/(?:healthz|readyz)$/

export class RequestRouter {
  readonly #deps: RequestRouterDependencies
  readonly #dashboard: Dashboard

  constructor(deps: RequestRouterDependencies) {
    this.#deps = deps
    this.#dashboard = new Dashboard(deps.api)
  }

  async fetch(request: Request, context: FetchContext = {}): Promise<Response> {
    const [head, connection] = [toWebRequestHead(request, context), { isDirect: false }]
    // A framework may pass its own kind of request, with a URL that is not normalized yet.
    const written = context.target ?? (request.url === head.url.href ? undefined : request.url)
    const fault = written === undefined ? undefined : targetFault(written)
    if (fault !== undefined) return toWebResponse(this.refuse(fault, head))
    const own = this.findAppRoute(request.method, head.url.pathname)
    if (own !== undefined) return this.callAppRoute(own, request, { head, connection, context })
    if (isStreamRequest(head)) return this.stream(head, connection)
    const read = createWebBodyReader(request, this.#deps.clock)
    if (this.isDashboardRequest(head)) return this.showDashboard(head, connection, read)
    return toWebResponse(await this.handle(head, connection, read))
  }

  /** `dashboard` serves the dashboard at a mount that the host app chooses. */
  async dashboard(request: Request, context: DashboardContext = {}): Promise<Response> {
    const [head, connection] = [toWebRequestHead(request, context), { isDirect: false }]
    const fault = context.target === undefined ? undefined : targetFault(context.target)
    if (fault !== undefined) return toWebResponse(this.refuse(fault, head))
    const { mount, ...user } = parseDashboardContext(context, head.url.pathname)
    const path = findPathBelow(mount, head.url.pathname)
    return this.#dashboard.respond({
      path,
      head,
      connection,
      read: createWebBodyReader(request, this.#deps.clock),
      ...user,
    })
  }

  /** `isDashboardRequest` returns whether the path is below the default mount. `/` leads there, unless a source has that path. */
  isDashboardRequest({ method, url: { pathname } }: RequestHead): boolean {
    if (this.#deps.servesDashboard !== true) return false
    if (isBelowMount(DASHBOARD_MOUNT, pathname)) return true
    return (
      pathname === '/' &&
      (method === 'GET' || method === 'HEAD') &&
      this.#deps.receiver.findSourceName('/') === undefined
    )
  }

  showDashboard(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<Response> {
    const { pathname } = head.url
    const path = pathname === '/' ? undefined : findPathBelow(DASHBOARD_MOUNT, pathname)
    return this.#dashboard.respond({ path, head, connection, read })
  }

  /** `refuse` records a request that is rejected before routing, and returns the response. */
  refuse(problem: Problem, head: RequestHead): SourceResponse {
    this.#deps.receiver.recordRefused(problem, head)
    return toProblemResponse(problem)
  }

  /** `reportBroken` records bytes that never became a request. */
  reportBroken(problem: Problem, address: string): void {
    this.#deps.receiver.reportBroken(problem, address)
  }

  /** `findAppRoute` ignores routes of the app at paths of the server itself. */
  findAppRoute(method: string, pathname: string): MatchedRoute | undefined {
    if (API_PATHS.test(pathname) || HEALTH_PATHS.test(pathname)) return undefined
    for (const route of this.#deps.routes) {
      const params = route.method === method ? route.match(pathname) : undefined
      if (params !== undefined) return { route, params }
    }
    return undefined
  }

  /** `callAppRoute` checks the role of the caller and bounds the body before the handler runs. */
  async callAppRoute(
    { route, params }: MatchedRoute,
    request: Request,
    { head, connection, context }: Arrival,
  ): Promise<Response> {
    let caller: string | undefined
    if (route.role !== undefined) {
      const access = await (await this.#deps.api()).authorize(head, connection, route.role)
      if (typeof access !== 'string') return toWebResponse(access)
      caller = access
    }
    const bounded = new BoundedRequest(request, route.maxBody)
    const tooLarge = (): Response => toWebResponse(toProblemResponse(routeBodyTooLarge(route)))
    if (bounded.isTooLarge) return tooLarge()
    try {
      return await route.handle(bounded.request, { ...context, params, ...(caller !== undefined && { caller }) })
    } catch (error) {
      if (bounded.isTooLarge) return tooLarge()
      throw error
    }
  }

  /** `isSourceRequest` returns whether the path belongs to a source and to no route of the app. */
  isSourceRequest(method: string, pathname: string): boolean {
    return (
      this.#deps.receiver.findSourceName(pathname) !== undefined && this.findAppRoute(method, pathname) === undefined
    )
  }

  handle(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<SourceResponse> {
    const isLook = head.method === 'GET' || head.method === 'HEAD'
    if (isLook && head.url.pathname === '/healthz')
      return this.#health(head.headers[CHALLENGE_HEADER], connection.local)
    if (isLook && head.url.pathname === '/readyz') return this.#readiness()
    if (API_PATHS.test(head.url.pathname)) return this.#deps.api().then((api) => api.handle(head, connection, read))
    const { receiver, traces } = this.#deps
    const path = head.url.pathname
    const allowed = receiver.findSourceName(path) === undefined ? this.#allowedMethods(path) : []
    if (allowed.length > 0) return Promise.resolve(toProblemResponse(routeMethodNotAllowed(allowed)))
    const arrived = { path, headers: head.headers, source: receiver.findSourceName(path) }
    return traces.traceRequest(arrived, () => receiver.receive(head, read))
  }

  /** The methods of the app's routes at this path. */
  #allowedMethods(pathname: string): readonly string[] {
    return this.#deps.routes.flatMap((route) => (route.match(pathname) === undefined ? [] : route.method))
  }

  async stream(head: RequestHead, connection: ConnectionInfo): Promise<Response> {
    return (await this.#deps.api()).stream(head, connection)
  }

  async #health(challenge: string | undefined, local: ServerAddress | undefined): Promise<SourceResponse> {
    const { storeId, proveKey } = this.#deps
    const { headers, ...answer } = jsonResponse(200, { ok: true })
    const storeHeader = storeId !== undefined && { [STORE_ID_HEADER]: storeId() }
    // Health does not depend on the store, and a request without a challenge does not wait for a proof.
    const wantsProof = challenge !== undefined && local !== undefined
    const proof = wantsProof ? await proveKey?.(challenge, local).catch(() => undefined) : undefined
    return { ...answer, headers: { ...headers, ...storeHeader, ...(proof !== undefined && { [PROOF_HEADER]: proof }) } }
  }

  async #readiness(): Promise<SourceResponse> {
    const why = await this.#deps.findUnreadyReason()
    return why === undefined ? jsonResponse(200, { ready: true }) : jsonResponse(503, { ready: false, why })
  }
}

function routeMethodNotAllowed(methods: readonly string[]): Problem {
  const allow = [...new Set(methods)].join(', ')
  return { code: 'METHOD_NOT_ALLOWED', what: `The method must be ${allow}.`, fix: '', headers: { allow } }
}

function jsonResponse(status: number, body: unknown): SourceResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
