// The admin API of a running server, called over HTTP.
import { within, type Clock, type Millis } from '../clock.ts'
import { PROOF, PROVE, questionFor } from '../key-proof.ts'
import { STORE_MARK } from '../store-mark.ts'
import { laterBy, type Answer, type Call, type Caller, type Problem, type Unreached } from './caller.ts'

export interface ServerCallerParts {
  readonly url: string
  readonly key: string | undefined
  /** There is a key, and it was kept from it: nobody named it, and it proved nothing. */
  readonly isUntrusted?: boolean
}

const LOOK_FOR: Millis = 2_000
/** What fetch calls it when no answer has begun after five minutes. */
const TOO_LONG = 'UND_ERR_HEADERS_TIMEOUT'

const NAME_IT = 'A key is sent only to a server that was named, or that proves to have it: say'
const GIVE_IT =
  'Set SLUICE_KEY to a key of that server. If all are lost, stop it: without a server, sluice keys make needs none.'

export class ServerCaller implements Caller {
  readonly kind = 'server'
  readonly where: string
  readonly #parts: ServerCallerParts

  constructor(parts: ServerCallerParts) {
    this.#parts = parts
    this.where = parts.url.replace(/\/+$/, '')
  }

  async call({ method, path, query = {}, body }: Call): Promise<Answer> {
    const url = new URL(this.where + path)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const headers = { ...this.headers, ...(body !== undefined && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await this.#fetch(url, init)
    const answer = response instanceof Response ? await answerOf(response, this.where) : response
    if (answer.kind !== 'problem' || answer.problem.code !== 'KEY_MISSING') return answer
    const fix = this.#parts.isUntrusted === true ? `${NAME_IT} --url=${this.where} if that one is meant.` : GIVE_IT
    return { ...answer, problem: { ...answer.problem, fix } }
  }

  get headers(): Readonly<Record<string, string>> {
    const { key } = this.#parts
    return key === undefined ? {} : { authorization: `Bearer ${key}` }
  }

  async close(): Promise<void> {}

  async #fetch(url: URL, init: RequestInit): Promise<Response | Unreached> {
    try {
      return await fetch(url, init)
    } catch (error) {
      const reason = reasonOf(error)
      if (reason !== TOO_LONG) return { kind: 'unreached', why: `${this.where} does not answer: ${reason}.` }
      const why = `${this.where} works on it for longer than anybody waits here, and goes on.`
      return { kind: 'unreached', why, fix: 'sluice audit says when it is done; only then ask again.' }
    }
  }
}

async function answerOf(response: Response, where: string): Promise<Answer> {
  const text = await response.text()
  try {
    const value = JSON.parse(text) as unknown
    if (response.ok) return { kind: 'done', value }
    // Of a request that no route was asked with, less is said.
    const problem = isProblem(value) ? { status: response.status, fix: '', ...value } : undefined
    if (problem !== undefined) return { kind: 'problem', problem, ...laterBy(response.headers.get('retry-after')) }
  } catch {
    // Somebody else's page.
  }
  return { kind: 'unreached', why: `${where} answered ${response.status}, but not as Sluice does.` }
}

function isProblem(value: unknown): value is Pick<Problem, 'code' | 'detail'> {
  return typeof value === 'object' && value !== null && 'code' in value && 'detail' in value
}

/** The cause has the reason; the error itself says only that it failed. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
}

/** Undefined: nobody there, or nobody that answers as Sluice does. */
export async function serverAt(url: string, clock: Clock): Promise<{ readonly mark: string | null } | undefined> {
  const headers = await healthOf(url, clock, {})
  return headers && { mark: headers.get(STORE_MARK) }
}

/** Whether it has the key in its store, which it says without being sent the key. */
export async function hasKey(url: string, clock: Clock, key: string): Promise<boolean> {
  const question = questionFor(key)
  if (question === undefined) return false
  const headers = await healthOf(url, clock, { [PROVE]: question.asked })
  return headers?.get(PROOF) === question.proof
}

async function healthOf(
  url: string,
  clock: Clock,
  headers: Readonly<Record<string, string>>,
): Promise<Headers | undefined> {
  const stop = new AbortController()
  const asking = fetch(`${url.replace(/\/+$/, '')}/healthz`, { signal: stop.signal, headers })
  const looked = asking.then(async (response) => {
    const isSluice = response.ok && (await response.text()) === JSON.stringify({ ok: true })
    return isSluice ? response.headers : undefined
  })
  const found = looked.catch(() => undefined)
  await within(clock, found, LOOK_FOR)
  stop.abort()
  return found
}
