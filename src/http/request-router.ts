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
import { matchesRoute, type AppRoute } from './app-route.ts'
import { targetFault } from './request-target.ts'
import { toWebRequestHead, toWebResponse, createWebBodyReader, type FetchContext } from './web-fetch.ts'

export interface RequestRouterDependencies {
  readonly receiver: Receiver
  readonly clock: Pick<Clock, 'after'>
  readonly routes: readonly AppRoute[]
  /** Returns why the app is not ready, or undefined if it is. */
  readonly findUnreadyReason: () => Promise<string | undefined>
  /** The admin API, created on first use. */
  readonly api: () => Promise<AdminApi>
  readonly traces: Traces
  /** Returns the id of the store, with which a CLI finds the server of a store. */
  readonly storeMark?: () => string
  /** Proves that the server has a key before a client sends that key. Undefined if the server has no key. */
  readonly proveKey?: (challenge: string, at: ServerAddress) => Promise<string | undefined>
}

export interface AdminApi {
  handle(head: RequestHead, connection: ConnectionInfo, read: ReadBody): Promise<SourceResponse>
  /** Streams live events until the client disconnects. */
  stream(head: RequestHead, connection: ConnectionInfo): Promise<Response>
}

/** `ConnectionInfo` says how a request arrived. */
export interface ConnectionInfo {
  /** False if something may be in between, e.g. a proxy or another framework. */
  readonly isDirect: boolean
  /** The local address of the connection, if it ends at our own server. */
  readonly local?: ServerAddress
}

const API_PATHS = /^\/(?:v1\/|openapi\.json$|metrics$)/
const HEALTH_PATHS = /^\/(?:healthz|readyz)$/

export class RequestRouter {
  readonly #deps: RequestRouterDependencies

  constructor(parts: RequestRouterDependencies) {
    this.#deps = parts
  }

  async fetch(request: Request, context: FetchContext = {}): Promise<Response> {
    const [head, connection] = [toWebRequestHead(request, context), { isDirect: false }]
    // A framework may pass its own kind of request, with a URL that is not normalized yet.
    const written = context.target ?? (request.url === head.url.href ? undefined : request.url)
    const fault = written === undefined ? undefined : targetFault(written)
    if (fault !== undefined) return toWebResponse(this.refuse(fault, head))
    const own = this.findAppRoute(request.method, head.url.pathname)
    if (own !== undefined) return own.handle(request, context)
    if (isStreamRequest(head)) return this.stream(head, connection)
    return toWebResponse(await this.handle(head, connection, createWebBodyReader(request, this.#deps.clock)))
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
  findAppRoute(method: string, pathname: string): AppRoute | undefined {
    if (API_PATHS.test(pathname) || HEALTH_PATHS.test(pathname)) return undefined
    return this.#deps.routes.find((route) => matchesRoute(route, method, pathname))
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
    const arrived = { path, headers: head.headers, source: receiver.findSourceName(path) }
    return traces.traceRequest(arrived, () => receiver.receive(head, read))
  }

  async stream(head: RequestHead, connection: ConnectionInfo): Promise<Response> {
    return (await this.#deps.api()).stream(head, connection)
  }

  async #health(challenge: string | undefined, local: ServerAddress | undefined): Promise<SourceResponse> {
    const { storeMark, proveKey: keyProof } = this.#deps
    const { headers, ...answer } = jsonResponse(200, { ok: true })
    const mark = storeMark !== undefined && { [STORE_ID_HEADER]: storeMark() }
    // Health does not depend on the store, and a request without a challenge does not wait for a proof.
    const wantsProof = challenge !== undefined && local !== undefined
    const proof = wantsProof ? await keyProof?.(challenge, local).catch(() => undefined) : undefined
    return { ...answer, headers: { ...headers, ...mark, ...(proof !== undefined && { [PROOF_HEADER]: proof }) } }
  }

  async #readiness(): Promise<SourceResponse> {
    const why = await this.#deps.findUnreadyReason()
    return why === undefined ? jsonResponse(200, { ready: true }) : jsonResponse(503, { ready: false, why })
  }
}

export function isStreamRequest({ method, url }: RequestHead): boolean {
  return method === 'GET' && url.pathname === '/v1/stream'
}

function jsonResponse(status: number, body: unknown): SourceResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
