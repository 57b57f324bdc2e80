// The admin API of a running server, called over HTTP.
import { within, type Clock, type Millis } from '../clock.ts'
import { laterBy, type Answer, type Call, type Caller, type Problem } from './caller.ts'

export interface ServerCallerParts {
  readonly url: string
  readonly key: string | undefined
}

const LOOK_FOR: Millis = 2_000

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
    return typeof response === 'string' ? { kind: 'unreached', why: response } : answerOf(response, this.where)
  }

  get headers(): Readonly<Record<string, string>> {
    const { key } = this.#parts
    return key === undefined ? {} : { authorization: `Bearer ${key}` }
  }

  async close(): Promise<void> {}

  async #fetch(url: URL, init: RequestInit): Promise<Response | string> {
    try {
      return await fetch(url, init)
    } catch (error) {
      return `${this.where} does not answer: ${reasonOf(error)}.`
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

export async function answersAsSluice(url: string, clock: Clock): Promise<boolean> {
  const stop = new AbortController()
  const looked = fetch(`${url.replace(/\/+$/, '')}/healthz`, { signal: stop.signal }).then(
    async (response) => response.ok && (await response.text()) === JSON.stringify({ ok: true }),
  )
  const found = looked.catch(() => false)
  await within(clock, found, LOOK_FOR)
  stop.abort()
  return found
}
