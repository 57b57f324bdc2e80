// `HttpApiClient` calls the admin API of a running server over HTTP.
import { request as http } from 'node:http'
import { request as https } from 'node:https'
import { waitAtMost, type Clock, type Millis } from '../clock.ts'
import { PROOF_HEADER, CHALLENGE_HEADER, createKeyChallenge, type ServerAddress } from '../crypto/key-proof.ts'
import { STORE_ID_HEADER } from '../store/open.ts'
import {
  parseRetryAfter,
  type ApiResult,
  type ApiCall,
  type ApiClient,
  type ApiProblem,
  type UnreachableApi,
} from './api-client.ts'

export interface HttpApiClientOptions {
  readonly url: string
  readonly key: string | undefined
  /** A key exists but was not sent, because the user did not name this server and it proved nothing. */
  readonly isUntrusted?: boolean
}

const PROBE_TIMEOUT: Millis = 2_000
/** The code of fetch when no response has started after five minutes. */
const HEADERS_TIMEOUT_CODE = 'UND_ERR_HEADERS_TIMEOUT'

const GIVE_KEY_FIX =
  'Set SLUICE_KEY to a key of that server. If it has none yet, or all are lost, run sluice keys create where its store is; on SQLite, stop the server first.'

export class HttpApiClient implements ApiClient {
  readonly kind = 'server'
  readonly location: string
  readonly #deps: HttpApiClientOptions

  constructor(deps: HttpApiClientOptions) {
    this.#deps = deps
    this.location = deps.url.replace(/\/+$/, '')
  }

  async call({ method, path, query = {}, body, text = toJson(body) }: ApiCall): Promise<ApiResult> {
    const url = new URL(this.location + path)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const headers = { ...this.headers, ...(text !== undefined && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(text !== undefined && { body: text }) }
    const response = await this.#fetch(url, init)
    const answer = response instanceof Response ? await parseResponse(response, this.location) : response
    if (answer.kind !== 'problem' || answer.problem.code !== 'KEY_MISSING') return answer
    const problem =
      this.#deps.isUntrusted === true ? unprovenServer(this.location) : { ...answer.problem, fix: GIVE_KEY_FIX }
    return { ...answer, problem }
  }

  get headers(): Readonly<Record<string, string>> {
    const { key } = this.#deps
    return key === undefined ? {} : { authorization: `Bearer ${key}` }
  }

  async close(): Promise<void> {}

  async #fetch(url: URL, init: RequestInit): Promise<Response | UnreachableApi> {
    try {
      return await fetch(url, init)
    } catch (error) {
      const reason = errorReason(error)
      if (reason !== HEADERS_TIMEOUT_CODE)
        return { kind: 'unreached', why: `${this.location} is unreachable: ${reason}.` }
      const why = `${this.location} is still working on the call after five minutes, and continues.`
      return { kind: 'unreached', why, fix: 'sluice audit shows when it has ended; repeat the call only after that.' }
    }
  }
}

function toJson(body: unknown): string | undefined {
  return body === undefined ? undefined : JSON.stringify(body)
}

/** The key is mistyped, or the server is not the intended one. The client cannot tell which. */
function unprovenServer(where: string): ApiProblem {
  return {
    status: 401,
    code: 'KEY_INVALID',
    detail: `The server at ${where} did not prove that it knows this key, so the key was not sent.`,
    fix: `Correct SLUICE_KEY or --api-key. If both the key and the server are right, pass --url=${where}.`,
  }
}

async function parseResponse(response: Response, where: string): Promise<ApiResult> {
  const text = await response.text()
  try {
    const value = JSON.parse(text) as unknown
    if (response.ok) return { kind: 'done', value }
    // Errors from before routing may lack a status and a fix.
    const problem = isProblem(value) ? { status: response.status, fix: '', ...value } : undefined
    if (problem !== undefined)
      return { kind: 'problem', problem, ...parseRetryAfter(response.headers.get('retry-after')) }
  } catch {
    // The response is a page of some other program.
  }
  return { kind: 'unreached', why: `${where} returned ${response.status}, but it is not a Sluice server.` }
}

function isProblem(value: unknown): value is Pick<ApiProblem, 'code' | 'detail'> {
  return typeof value === 'object' && value !== null && 'code' in value && 'detail' in value
}

/** `errorReason` reads the cause: the error of fetch itself only says that it failed. */
export function errorReason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
}

/** `probeServer` returns undefined if nothing, or something other than Sluice, responds. */
export async function probeServer(url: string, clock: Clock): Promise<{ readonly storeId: string | null } | undefined> {
  const headers = await fetchHealth(url, clock)
  return headers && { storeId: headers.get(STORE_ID_HEADER) }
}

/** `serverHasKey` asks the server to prove that its store has the key, without sending the key. */
export async function serverHasKey(url: string, clock: Clock, key: string): Promise<boolean> {
  const question = createKeyChallenge(key)
  if (question === undefined) return false
  const stop = new AbortController()
  const asking = readServerProof(url, question.challenge, stop.signal)
  await waitAtMost(clock, asking, PROBE_TIMEOUT)
  stop.abort()
  const proved = await asking
  return proved !== undefined && question.isProof(proved.proof, proved.at)
}

/** Returns the proof and the address of the connection, which only Node's own HTTP client reveals; or undefined. */
function readServerProof(url: string, challenge: string, signal: AbortSignal): Promise<ServerProof | undefined> {
  const { promise, resolve } = Promise.withResolvers<ServerProof | undefined>()
  const ask = url.startsWith('https:') ? https : http
  const request = ask(`${url.replace(/\/+$/, '')}/healthz`, {
    signal,
    headers: { [CHALLENGE_HEADER]: challenge },
    agent: false,
  })
  request.on('error', () => resolve(undefined))
  request.on('response', (response) => {
    const { remoteAddress, remotePort } = response.socket
    const proof = response.headers[PROOF_HEADER]
    const isWhole = typeof proof === 'string' && remoteAddress !== undefined && remotePort !== undefined
    resolve(isWhole ? { proof, at: { address: remoteAddress, port: remotePort } } : undefined)
    response.destroy()
  })
  request.end()
  return promise
}

interface ServerProof {
  readonly proof: string
  readonly at: ServerAddress
}

async function fetchHealth(url: string, clock: Clock): Promise<Headers | undefined> {
  const stop = new AbortController()
  const asking = fetch(`${url.replace(/\/+$/, '')}/healthz`, { signal: stop.signal })
  const looked = asking.then(async (response) => {
    const isSluice = response.ok && (await response.text()) === JSON.stringify({ ok: true })
    return isSluice ? response.headers : undefined
  })
  const found = looked.catch(() => undefined)
  await waitAtMost(clock, found, PROBE_TIMEOUT)
  stop.abort()
  return found
}
