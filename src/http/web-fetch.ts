// The receiving part as a web-standard handler: a Request in, a Response out, to be mounted in any framework.
import type { Clock, Millis } from '../clock.ts'
import type { ReadBody } from '../receive/bounds.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'

export interface FetchContext {
  /** Of the sender, as the framework knows it; the rate of an address and allow-lists go by it. */
  readonly address?: string
}

/** Without an address all senders are one: better too narrow than none. */
const UNKNOWN_ADDRESS = 'unknown'
/** As a server of ours has it: what mounts this may have no bound, or a much longer one. */
const BODY_WITHIN: Millis = 30_000

export function headOf(request: Request, { address = UNKNOWN_ADDRESS }: FetchContext): RequestHead {
  return { method: request.method, url: new URL(request.url), headers: Object.fromEntries(request.headers), address }
}

export function webBody(request: Request, clock: Pick<Clock, 'after'>): ReadBody {
  return async (most, hold) => {
    // Whoever read it first may have left nothing: what was sent with a body must not be taken in without it.
    const declared = hasNone(request) ? 0 : Number(request.headers.get('content-length') ?? 0)
    if (request.body === null) return declared > 0 ? 'cut-off' : new Uint8Array()
    if (request.body.locked) return 'cut-off'
    const chunks: Uint8Array[] = []
    let length = 0
    let isLate = false
    const reader = request.body.getReader()
    const end = (): void => void reader.cancel().catch(() => {})
    const inTime = clock.after(BODY_WITHIN, () => {
      isLate = true
      end()
    })
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        length += part.value.length
        if (length > most) return 'too-large'
        if (hold?.(part.value.length) === false) return 'no-room'
        chunks.push(part.value)
      }
    } catch {
      return isLate ? 'too-slow' : 'cut-off'
    } finally {
      inTime()
      end()
    }
    if (isLate) return 'too-slow'
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
