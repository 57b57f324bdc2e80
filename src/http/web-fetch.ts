// The receiving part as a web-standard handler: a Request in, a Response out, to be mounted in any framework.
import type { ReadBody } from '../receive/bounds.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'

export interface FetchContext {
  /** Of the sender, as the framework knows it; the rate of an address and allow-lists go by it. */
  readonly address?: string
}

/** Without an address all senders are one: better too narrow than none. */
const UNKNOWN_ADDRESS = 'unknown'

export function headOf(request: Request, { address = UNKNOWN_ADDRESS }: FetchContext): RequestHead {
  return { method: request.method, url: new URL(request.url), headers: Object.fromEntries(request.headers), address }
}

export function webBody(request: Request): ReadBody {
  return async (most, hold) => {
    // Whoever read it first may have left nothing: what was sent with a body must not be taken in without it.
    const declared = hasNone(request) ? 0 : Number(request.headers.get('content-length') ?? 0)
    if (request.body === null) return declared > 0 ? 'cut-off' : new Uint8Array()
    const chunks: Uint8Array[] = []
    let length = 0
    try {
      for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
        length += chunk.length
        if (length > most) return 'too-large'
        if (hold?.(chunk.length) === false) return 'no-room'
        chunks.push(chunk)
      }
    } catch {
      return 'cut-off'
    }
    if (length < declared) return 'cut-off'
    return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, length)
  }
}

/** A web request of such a method cannot have one, whatever was sent to its framework. */
function hasNone({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Statuses whose answers have none. */
export const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

export function responseOf({ status, headers = {}, body }: SourceAnswer): Response {
  return new Response(WITHOUT_BODY.has(status) ? null : (body ?? ''), { status, headers })
}
