// One POST to a subscriber. Whatever the other side does is an answer of this function, within one deadline and little memory.
import { errors, type Dispatcher } from 'undici'
import type { Clock, Millis } from '../clock.ts'
import { checkUrl, type GuardRules } from './addresses.ts'
import { Exchange } from './exchange.ts'
import { ConnectError, NOT_ALLOWED, type NotConnected } from './guard.ts'
import { headersFault, joined, type Headers } from './headers.ts'

export interface PostRequest {
  readonly url: string
  readonly body: Uint8Array
  /** Ours: signatures, and what the body is. */
  readonly headers: Headers
  /** The endpoint's own. */
  readonly extra?: Headers
  /** Bytes of the answer that are read. */
  readonly maxAnswer?: number
}

export interface PostParts extends GuardRules {
  readonly agent: Dispatcher
  readonly clock: Clock
  /** For all of it, from the lookup of the name to the last byte of the answer. */
  readonly deadline?: Millis
  readonly userAgent?: string
  /** Ours: a process that stops, a run whose lease is over. */
  readonly signal?: AbortSignal
}

export type PostFault =
  | NotConnected
  /** The connection was lost, or closed before the answer was whole. */
  | 'cut-off'
  /** What came is no HTTP, or has no end. */
  | 'malformed'
  /** Ours: it was not sent, or not waited for. */
  | 'unsendable'
  | 'stopped'

export interface Answered {
  readonly kind: 'answered'
  readonly status: number
  readonly retryAfter: string | undefined
  /** By the other side's clock. */
  readonly date: string | undefined
  readonly body: Buffer
  /** Otherwise it went on, and was not listened to. */
  readonly isWhole: boolean
  readonly ms: Millis
}

interface Failed {
  readonly kind: 'failed'
  readonly why: PostFault
  readonly error: string
  readonly ms: Millis
}

export type Posted = Answered | Failed

export const ANSWER_MAX: number = 16 * 1024
const DEADLINE: Millis = 30_000
const USER_AGENT = 'Sluice'

export async function post(what: PostRequest, parts: PostParts): Promise<Posted> {
  const { clock, deadline = DEADLINE, signal } = parts
  const began = clock.monotonic()
  const exchange = new Exchange(what.maxAnswer ?? ANSWER_MAX)
  const cancel = clock.after(deadline, () =>
    exchange.end(new PostError('timeout', `There was no whole answer within ${deadline} ms.`)),
  )
  const stop = (): void => exchange.end(new PostError('stopped', 'It was not waited for.'))
  signal?.addEventListener('abort', stop, { once: true })
  try {
    if (signal?.aborted === true) throw new PostError('stopped', 'It was not begun.')
    const { status, headers, body, isWhole } = await exchange.with(parts.agent, requestOf(what, parts))
    const said = { retryAfter: oneOf(headers['retry-after']), date: oneOf(headers['date']) }
    return { kind: 'answered', status, ...said, body, isWhole, ms: clock.monotonic() - began }
  } catch (error) {
    return { kind: 'failed', ...faultOf(error), ms: clock.monotonic() - began }
  } finally {
    cancel()
    signal?.removeEventListener('abort', stop)
  }
}

class PostError extends Error {
  override readonly name = 'PostError'
  readonly why: PostFault

  constructor(why: PostFault, message: string) {
    super(message)
    this.why = why
  }
}

function requestOf(what: PostRequest, parts: PostParts): Dispatcher.DispatchOptions {
  const address = addressOf(what.url, parts)
  if (address === undefined) throw new PostError('guarded', NOT_ALLOWED)
  const fault = headersFault(what.extra ?? {})
  if (fault !== undefined) throw new PostError('unsendable', fault)
  const headers = joined(
    { 'user-agent': parts.userAgent ?? USER_AGENT },
    what.extra ?? {},
    // What is packed would have to be unpacked, to a length that nobody knows before.
    { 'accept-encoding': 'identity', 'content-type': 'application/json' },
    what.headers,
  )
  return { ...address, method: 'POST', headers, body: what.body }
}

interface Address {
  readonly origin: string
  readonly path: string
}

/** Which URLs are fine is a matter of their text alone, and most are posted to again and again. */
const fine = { forAll: new Map<string, Address>(), forDevelopment: new Map<string, Address>() }
const MOST_FINE = 10_000

/** Undefined: nothing is ever posted there. */
function addressOf(url: string, rules: GuardRules): Address | undefined {
  const known = rules.allowLoopback === true ? fine.forDevelopment : fine.forAll
  const found = known.get(url)
  if (found !== undefined) return found
  const checked = checkUrl(url, rules)
  if (checked.kind === 'forbidden') return undefined
  const { origin, pathname, search } = checked.url
  const address = { origin, path: pathname + search }
  if (known.size >= MOST_FINE) known.clear()
  known.set(url, address)
  return address
}

function oneOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}

const MALFORMED: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
])

function faultOf(error: unknown): { readonly why: PostFault; readonly error: string } {
  if (error instanceof PostError || error instanceof ConnectError) return { why: error.why, error: error.message }
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const text = error instanceof Error ? error.message : String(error)
  if (error instanceof errors.HTTPParserError || MALFORMED.has(code)) return { why: 'malformed', error: text }
  if (error instanceof errors.InvalidArgumentError || error instanceof TypeError)
    return { why: 'unsendable', error: text }
  return { why: 'cut-off', error: text }
}
