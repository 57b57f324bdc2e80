// Everything that answers over HTTP, however it is served: sources, routes of the app's own, and whether the app is well.
import type { Traces } from '../observe/traces.ts'
import type { Clock } from '../clock.ts'
import type { ReadBody } from '../receive/bounds.ts'
import type { Problem } from '../receive/problem.ts'
import type { Receiver, RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'
import { PROOF, PROVE } from '../key-proof.ts'
import { STORE_MARK } from '../store-mark.ts'
import { matches, type OwnRoute } from './own-route.ts'
import { headOf, responseOf, webBody, type FetchContext } from './web-fetch.ts'

export interface InboundParts {
  readonly receiver: Receiver
  readonly clock: Pick<Clock, 'after'>
  readonly routes: readonly OwnRoute[]
  /** Undefined: ready. Else why not. */
  readonly unready: () => Promise<string | undefined>
  /** What people operate the app by; made when it is first asked for. */
  readonly api: () => Promise<AdminApi>
  readonly traces: Traces
  /** Which store it is, for whoever looks for the server of one. */
  readonly storeMark?: () => string
  /** That it has a key, for whoever is to send that key. Undefined: it has not. */
  readonly keyProof?: (asked: string) => Promise<string | undefined>
}

export interface AdminApi {
  answer(head: RequestHead, connection: Connection, read: ReadBody): Promise<SourceAnswer>
  /** What happens, live, for as long as somebody reads. */
  stream(head: RequestHead, connection: Connection): Promise<Response>
}

/** How a request came in. */
export interface Connection {
  /** False: something may stand between, such as a proxy or another framework. */
  readonly isDirect: boolean
}

const API = /^\/(?:v1\/|openapi\.json$|metrics$)/
const HEALTH = /^\/(?:healthz|readyz)$/

export class Inbound {
  readonly #parts: InboundParts

  constructor(parts: InboundParts) {
    this.#parts = parts
  }

  async fetch(request: Request, context: FetchContext = {}): Promise<Response> {
    const { pathname } = new URL(request.url)
    const own = this.ownRoute(request.method, pathname)
    if (own !== undefined) return own.handle(request, context)
    const [head, connection] = [headOf(request, context), { isDirect: false }]
    if (isStream(head)) return this.stream(head, connection)
    return responseOf(await this.answer(head, connection, webBody(request, this.#parts.clock)))
  }

  /** What never became a request. */
  broken(problem: Problem, address: string): void {
    this.#parts.receiver.broken(problem, address)
  }

  /** What the server itself answers is not the app's, whatever it declares. */
  ownRoute(method: string, pathname: string): OwnRoute | undefined {
    if (API.test(pathname) || HEALTH.test(pathname)) return undefined
    return this.#parts.routes.find((route) => matches(route, method, pathname))
  }

  /** Whether nobody else answers there. */
  isSource(method: string, pathname: string): boolean {
    return this.#parts.receiver.nameAt(pathname) !== undefined && this.ownRoute(method, pathname) === undefined
  }

  answer(head: RequestHead, connection: Connection, read: ReadBody): Promise<SourceAnswer> {
    const isLook = head.method === 'GET' || head.method === 'HEAD'
    if (isLook && head.url.pathname === '/healthz') return this.#health(head.headers[PROVE])
    if (isLook && head.url.pathname === '/readyz') return this.#readiness()
    if (API.test(head.url.pathname)) return this.#parts.api().then((api) => api.answer(head, connection, read))
    const { receiver, traces } = this.#parts
    const path = head.url.pathname
    const arrived = { path, headers: head.headers, source: receiver.nameAt(path) }
    return traces.received(arrived, () => receiver.receive(head, read))
  }

  async stream(head: RequestHead, connection: Connection): Promise<Response> {
    return (await this.#parts.api()).stream(head, connection)
  }

  async #health(asked: string | undefined): Promise<SourceAnswer> {
    const { storeMark, keyProof } = this.#parts
    const { headers, ...answer } = json(200, { ok: true })
    const mark = storeMark !== undefined && { [STORE_MARK]: storeMark() }
    // It is well, however its store is: who asks for no proof does not wait for one.
    const proof = asked === undefined ? undefined : await keyProof?.(asked).catch(() => undefined)
    return { ...answer, headers: { ...headers, ...mark, ...(proof !== undefined && { [PROOF]: proof }) } }
  }

  async #readiness(): Promise<SourceAnswer> {
    const why = await this.#parts.unready()
    return why === undefined ? json(200, { ready: true }) : json(503, { ready: false, why })
  }
}

export function isStream({ method, url }: RequestHead): boolean {
  return method === 'GET' && url.pathname === '/v1/stream'
}

function json(status: number, body: unknown): SourceAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
