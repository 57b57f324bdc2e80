// `post` makes one POST to a subscriber. Everything the other side does becomes a result, within one deadline and
// bounded memory.
import { errors, type Dispatcher } from 'undici'
import type { Clock, Millis } from '../../clock.ts'
import { checkUrl, type GuardRules } from './addresses.ts'
import { Exchange, MAX_RESPONSE_BYTES } from './exchange.ts'
import { ConnectError, NOT_ALLOWED, type ConnectFault } from './guard.ts'
import { headersFault, mergeHeaders, type HeaderMap } from './headers.ts'

export interface PostRequest {
  readonly url: string
  readonly body: Uint8Array
  /** Sluice's headers: the signatures and the content type. */
  readonly headers: HeaderMap
  /** The endpoint's own headers. */
  readonly endpointHeaders?: HeaderMap
  /** The number of response bytes that are read. */
  readonly maxResponseBytes?: number
}

export interface PostDependencies extends GuardRules {
  readonly agent: Dispatcher
  readonly clock: Clock
  /** From the lookup of the name to the last byte of the response. */
  readonly deadline?: Millis
  readonly userAgent?: string
  /** Aborts the POST when the process stops or the run loses its lease. */
  readonly signal?: AbortSignal
}

export type PostFault =
  | ConnectFault
  /** The connection was lost or closed before the response was complete. */
  | 'cut-off'
  /** The response is not HTTP, or does not end. */
  | 'malformed'
  /** Sluice's own failure: the request was not sent, or its response was not awaited. */
  | 'unsendable'
  | 'stopped'

export interface PostResponse {
  readonly kind: 'answered'
  readonly status: number
  readonly retryAfter: string | undefined
  /** The `Date` header, by the other side's clock. */
  readonly date: string | undefined
  readonly body: Buffer
  /** False if the response was longer than `maxResponseBytes` and was cut. */
  readonly isComplete: boolean
  readonly ms: Millis
}

interface PostFailure {
  readonly kind: 'failed'
  readonly why: PostFault
  /** Shown to the subscriber. */
  readonly error: string
  /** Only for the operator's log. */
  readonly detail?: string
  readonly ms: Millis
}

export type PostResult = PostResponse | PostFailure

const DEADLINE: Millis = 30_000
const USER_AGENT = 'Sluice'

export async function post(what: PostRequest, deps: PostDependencies): Promise<PostResult> {
  const { clock, deadline = DEADLINE, signal } = deps
  const began = clock.monotonic()
  const exchange = new Exchange(what.maxResponseBytes ?? MAX_RESPONSE_BYTES)
  const cancel = clock.after(deadline, () =>
    exchange.abort(new PostError('timeout', `No complete response within ${deadline} ms.`)),
  )
  const stop = (): void => exchange.abort(new PostError('stopped', 'The response was not awaited.'))
  signal?.addEventListener('abort', stop, { once: true })
  try {
    if (signal?.aborted === true) throw new PostError('stopped', 'The POST was not started.')
    const { status, headers, body, isComplete } = await exchange.send(deps.agent, toDispatchOptions(what, deps))
    const said = { retryAfter: firstValue(headers['retry-after']), date: firstValue(headers['date']) }
    return { kind: 'answered', status, ...said, body, isComplete, ms: clock.monotonic() - began }
  } catch (error) {
    return { kind: 'failed', ...toPostFault(error), ms: clock.monotonic() - began }
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

function toDispatchOptions(what: PostRequest, deps: PostDependencies): Dispatcher.DispatchOptions {
  const address = checkAddress(what.url, deps)
  if (address === undefined) throw new PostError('guarded', NOT_ALLOWED)
  const fault = headersFault(what.endpointHeaders ?? {})
  if (fault !== undefined) throw new PostError('unsendable', fault)
  const headers = mergeHeaders(
    { 'user-agent': deps.userAgent ?? USER_AGENT },
    what.endpointHeaders ?? {},
    // `identity`, because a compressed response has no known length before it is decompressed.
    { 'accept-encoding': 'identity', 'content-type': 'application/json' },
    what.headers,
  )
  return { ...address, method: 'POST', headers, body: what.body }
}

interface PostAddress {
  readonly origin: string
  readonly path: string
}

/** A cache of checked URLs. The check depends only on the text and the rules, and the same URLs recur. */
interface FineUrls {
  readonly forAll: Map<string, PostAddress>
  readonly forDevelopment: Map<string, PostAddress>
}
const checkedAddresses = new WeakMap<object, FineUrls>()
const NONE_DENIED = {}
const MAX_CHECKED = 10_000

/** Returns undefined for a forbidden URL. */
function checkAddress(url: string, rules: GuardRules): PostAddress | undefined {
  const of = rules.denied ?? NONE_DENIED
  const both = checkedAddresses.get(of) ?? {
    forAll: new Map<string, PostAddress>(),
    forDevelopment: new Map<string, PostAddress>(),
  }
  checkedAddresses.set(of, both)
  const known = rules.allowLoopback === true ? both.forDevelopment : both.forAll
  const found = known.get(url)
  if (found !== undefined) return found
  const checked = checkUrl(url, rules)
  if (checked.kind === 'forbidden') return undefined
  const { origin, pathname, search } = checked.url
  const address = { origin, path: pathname + search }
  if (known.size >= MAX_CHECKED) known.clear()
  known.set(url, address)
  return address
}

function firstValue(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}

const MALFORMED: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
])

function toPostFault(error: unknown): Pick<PostFailure, 'why' | 'error' | 'detail'> {
  if (error instanceof PostError) return { why: error.why, error: error.message }
  if (error instanceof ConnectError) {
    const { why, message, detail } = error
    return { why, error: message, ...(detail !== undefined && { detail }) }
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const text = error instanceof Error ? error.message : String(error)
  if (error instanceof errors.HTTPParserError || MALFORMED.has(code)) return { why: 'malformed', error: text }
  if (error instanceof errors.InvalidArgumentError || error instanceof TypeError)
    return { why: 'unsendable', error: text }
  return { why: 'cut-off', error: text }
}
