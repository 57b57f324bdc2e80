// The admin API of a running server, called over HTTP.
import { within, type Clock, type Millis } from '../clock.ts'
import { STORE_MARK } from '../store-mark.ts'
import { laterBy, type Answer, type Call, type Caller, type Problem, type Unreached } from './caller.ts'

export interface ServerCallerParts {
  readonly url: string
  readonly key: string | undefined
  /** Nobody said that it is the one meant: a key that there may be was kept from it. */
  readonly isGuessed?: boolean
}

const LOOK_FOR: Millis = 2_000
/** What fetch calls it when no answer has begun after five minutes. */
const TOO_LONG = 'UND_ERR_HEADERS_TIMEOUT'

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
    if (this.#parts.isGuessed !== true || answer.kind !== 'problem' || answer.problem.code !== 'KEY_MISSING')
      return answer
    const fix = `A key is sent only to a server that was named: say --url=${this.where} if that one is meant.`
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
    if (isProblem(value)) return { kind: 'problem', problem: value, ...laterBy(response.headers.get('retry-after')) }
  } catch {
    // Somebody else's page.
  }
  return { kind: 'unreached', why: `${where} answered ${response.status}, but not as Sluice does.` }
}

function isProblem(value: unknown): value is Problem {
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
  const stop = new AbortController()
  const looked = fetch(`${url.replace(/\/+$/, '')}/healthz`, { signal: stop.signal }).then(async (response) => {
    const isSluice = response.ok && (await response.text()) === JSON.stringify({ ok: true })
    return isSluice ? { mark: response.headers.get(STORE_MARK) } : undefined
  })
  const found = looked.catch(() => undefined)
  await within(clock, found, LOOK_FOR)
  stop.abort()
  return found
}
