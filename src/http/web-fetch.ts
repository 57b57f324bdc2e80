// This file serves the receiver as a web-standard handler: a Request in, a Response out, mountable in any framework.
import type { Clock, Millis } from '../clock.ts'
import type { ReadBody } from '../receive/body.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceResponse } from '../receive/source.ts'

export interface FetchContext {
  /** The address of the sender, as the framework knows it. Address rates and allow-lists use it. */
  readonly address?: string
  /** The request target as it was sent, e.g. `message.url` of Node. `app.fetch` rejects one whose path a URL spells
      differently; the Request itself no longer shows the difference. */
  readonly target?: string
}

/** Without an address, all senders count as one: too strict a rate is better than none. */
const UNKNOWN_ADDRESS = 'unknown'
/** The same bound as our own server: the mounting framework may have no bound, or a much longer one. */
const BODY_TIMEOUT: Millis = 30_000

export function toWebRequestHead(request: Request, { address = UNKNOWN_ADDRESS }: FetchContext): RequestHead {
  return { method: request.method, url: new URL(request.url), headers: Object.fromEntries(request.headers), address }
}

export function createWebBodyReader(request: Request, clock: Pick<Clock, 'after'>): ReadBody {
  return async (most, reserve) => {
    const declared = declaredLength(request)
    if (request.body === null) return declared !== undefined && declared > 0 ? 'cut-off' : new Uint8Array()
    // Another reader has taken the body or its beginning: the rest is not what was sent.
    if (request.bodyUsed || request.body.locked) return 'cut-off'
    const chunks: Uint8Array[] = []
    let length = 0
    let isLate = false
    const reader = request.body.getReader()
    const end = (): void => void reader.cancel().catch(() => {})
    const inTime = clock.after(BODY_TIMEOUT, () => {
      isLate = true
      end()
    })
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        length += part.value.length
        if (length > most) return 'too-large'
        if (reserve?.(part.value.length) === false) return 'no-room'
        chunks.push(part.value)
      }
    } catch {
      return isLate ? 'too-slow' : 'cut-off'
    } finally {
      inTime()
      end()
    }
    if (isLate) return 'too-slow'
    if (declared !== undefined && length !== declared) return 'cut-off'
    return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, length)
  }
}

/** `declaredLength` returns the content length, or undefined if it is missing or invalid. */
function declaredLength({ method, headers }: Request): number | undefined {
  // A web request with GET or HEAD has no body, even if the framework received one.
  if (method === 'GET' || method === 'HEAD') return undefined
  const length = headers.get('content-length')
  return length !== null && /^\d+$/.test(length) ? Number(length) : undefined
}

/** Responses with these statuses have no body. */
export const STATUSES_WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

export function toWebResponse({ status, headers = {}, body }: SourceResponse): Response {
  return new Response(STATUSES_WITHOUT_BODY.has(status) ? null : (body ?? ''), { status, headers })
}
