// `Receiver` takes one request from the wire to the store: bounds, handshake, verify, split, name, route, store,
// respond, in that order (R1). No other user code runs before the response.
import { EventLoopTurn, type Clock, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { newEventId, type PublishResult } from '../model/event.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { toAcceptedResponse } from './accepted-response.ts'
import { BodyMemory, BodyReservation, type ReserveBytes } from './body-budget.ts'
import { readBoundedBody, type ReadBody } from './body.ts'
import type { DeclaredSource } from './source-options.ts'
import { DecoderPool } from './decompression.ts'
import { nameEvents, configuredSecrets } from './named-events.ts'
import { toProblemResponse, type Problem } from './problem.ts'
import { findUnknownSuffix, SourcePaths } from './source-paths.ts'
import type { RoutableEvent } from '../model/new-event.ts'
import { NO_SOURCE, toRefusedRequest, type RefusedRequests } from './refused-requests.ts'
import { describeTrace, traceVerification } from './autopsy.ts'
import { toNetwork, RequestRateLimiter } from './rate.ts'
import type { Handshake, HandshakeResult, ReceivedRequest, Source, SourceResponse, SourceEvent } from './source.ts'

/** `RequestHead` is a request whose body has not been read. */
export type RequestHead = Omit<ReceivedRequest, 'body'>

/** `EventIntake` stores the events of a request in a commit that it shares with others. */
interface EventIntake {
  /** `take` resolves once the events would survive a crash. It returns undefined if the buffer is full. */
  take(events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> | undefined
}

export interface ReceiverDependencies {
  readonly clock: Clock
  readonly now: () => Millis
  readonly intake: EventIntake
  readonly refusedRequests: RefusedRequests
  /** Returns the secrets by which a source verifies: the configured ones, or the one that came by handshake. */
  readonly readSecrets: (source: DeclaredSource) => Promise<readonly string[]>
  /** Stores the secret that came by handshake. Returns false if the source already has one. */
  readonly saveSecret: (source: DeclaredSource, secret: string) => Promise<boolean>
  readonly addressRate: { readonly rate: number; readonly per: Millis }
  readonly emit: AnyListener
  /** The memory for the bodies of all sources together. */
  readonly bodyBudget?: BodyMemory
  /** The decoders for compressed bodies of all sources together. */
  readonly decoders?: DecoderPool
}

const BUSY_FOR: Millis = 1_000

type Step<T> = T | Problem
type Verify = Exclude<Source['verify'], 'none'>
type HandshakeSecret = Extract<HandshakeResult, { readonly kind: 'secret' }>

export class Receiver {
  readonly #deps: ReceiverDependencies
  readonly #paths = new SourcePaths()
  readonly #addressRate: RequestRateLimiter
  readonly #rates = new Map<string, RequestRateLimiter>()
  readonly #subjectRates = new Map<string, RequestRateLimiter>()
  #activeRequests = 0
  #idle: PromiseWithResolvers<void> | undefined
  readonly #bodyMemory: BodyMemory
  readonly #decoders: DecoderPool
  readonly #eventLoopTurn = new EventLoopTurn()
  #isStopping = false

  constructor(parts: ReceiverDependencies) {
    this.#deps = parts
    this.#addressRate = new RequestRateLimiter(parts.addressRate.rate, parts.addressRate.per)
    this.#bodyMemory = parts.bodyBudget ?? new BodyMemory()
    this.#decoders = parts.decoders ?? new DecoderPool()
  }

  get sources(): readonly DeclaredSource[] {
    return this.#paths.sources
  }

  /** `findSourceName` returns the name of the source at the path. */
  findSourceName(path: string): string | undefined {
    return this.#paths.find(path)?.name
  }

  declare(source: DeclaredSource): void {
    this.#paths.add(source)
    const { name, rate, subjectRate } = source
    if (rate !== undefined) this.#rates.set(name, new RequestRateLimiter(rate.rate, rate.per))
    if (subjectRate !== undefined)
      this.#subjectRates.set(name, new RequestRateLimiter(subjectRate.rate, subjectRate.per))
  }

  /** `stop` rejects all further requests. It resolves when all earlier requests have a response (L13). */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#idle ??= Promise.withResolvers<void>()
    if (this.#activeRequests > 0) await this.#idle.promise
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** `receive` never rejects: every fault becomes a response. */
  async receive(head: RequestHead, read: ReadBody): Promise<SourceResponse> {
    this.#activeRequests++
    try {
      return await this.#respond(head, read)
    } finally {
      this.#activeRequests--
      if (this.#activeRequests === 0) this.#idle?.resolve()
    }
  }

  /** `reportBroken` records bytes that never became a request, so their source is unknown. */
  reportBroken(problem: Problem, address: string): void {
    this.recordRefused(problem, { method: '', url: NO_URL, headers: {}, address })
  }

  /** `recordRefused` records a request that was rejected before its source was looked up. */
  recordRefused(problem: Problem, head: RequestHead): void {
    this.#recordRefusal(problem, { head, id: newEventId(this.#deps.now()), source: undefined, body: undefined })
  }

  async #respond(head: RequestHead, read: ReadBody): Promise<SourceResponse> {
    const id = newEventId(this.#deps.now())
    const source = this.#paths.find(head.url.pathname)
    let body: Uint8Array | undefined
    const recordingRead: ReadBody = async (most, reserve) => {
      const got = await read(most, reserve)
      if (typeof got !== 'string') body = got
      return got
    }
    const reservation = new BodyReservation(this.#bodyMemory, toNetwork(head.address))
    const answer = await this.#process(source, { head, id, read: recordingRead, reserve: reservation.reserve }).catch(
      toStoreProblem,
    )
    reservation.release()
    if (!('code' in answer)) return answer
    this.#recordRefusal(answer, { head, id, source, body })
    return toProblemResponse(answer)
  }

  async #process(
    source: DeclaredSource | undefined,
    { head, id, read, reserve }: IncomingRequest,
  ): Promise<Step<SourceResponse>> {
    if (this.#isStopping) throw new SluiceError('APP_STOPPED', 'The app was stopped.')
    const tooMany = this.#checkAddressRate(head)
    if (tooMany !== undefined) return tooMany
    if (source === undefined) return unknownSource(head)
    const unknownSuffix = findUnknownSuffix(source, head.url.pathname)
    if (unknownSuffix !== undefined) return unknownSuffix
    const { verify, handshake, methods = POST } = source.source
    const tooManyUnverified = verify === 'none' ? this.#checkSourceRate(source) : undefined
    if (tooManyUnverified !== undefined) return tooManyUnverified
    const body = await readBoundedBody(head.headers, read, source, { reserve, decoders: this.#decoders })
    if ('code' in body) return body
    await this.#eventLoopTurn.waitForEnd()
    const request: ReceivedRequest = { ...head, body }
    const reply = handshake?.verified === false ? await this.#handleHandshake(source, request, handshake) : undefined
    if (reply !== undefined) return reply
    if (!methods.includes(head.method)) return methodNotAllowed(methods)
    if (verify !== 'none') {
      // Only verified requests count toward the rate of the source. Otherwise strangers could keep the true sender out.
      const problem = (await this.#verify(source, request, verify)) ?? this.#checkSourceRate(source)
      if (problem !== undefined) return problem
    }
    const signedReply =
      handshake?.verified === true ? await this.#handleHandshake(source, request, handshake) : undefined
    if (signedReply !== undefined) return signedReply
    const events = tryRead(() => source.source.events(request))
    if ('code' in events) return events
    if (events.length > source.maxEvents) return tooManyEvents(events.length, source)
    const tooManyOfSubject = this.#checkSubjectRate(source, events)
    if (tooManyOfSubject !== undefined) return tooManyOfSubject
    return this.#storeEvents(source, request, id, events)
  }

  #checkAddressRate({ address }: RequestHead): Problem | undefined {
    const after = this.#addressRate.count(toNetwork(address), this.#deps.clock.monotonic())
    return after === undefined ? undefined : tooManyRequests('This address', after)
  }

  #checkSourceRate({ name }: DeclaredSource): Problem | undefined {
    const after = this.#rates.get(name)?.count('', this.#deps.clock.monotonic())
    return after === undefined ? undefined : tooManyRequests('This source', after)
  }

  /** `#checkSubjectRate` counts a request once for each of its subjects. */
  #checkSubjectRate({ name }: DeclaredSource, events: readonly SourceEvent[]): Problem | undefined {
    const rate = this.#subjectRates.get(name)
    if (rate === undefined) return undefined
    const now = this.#deps.clock.monotonic()
    for (const subject of new Set(events.map((event) => event.subject))) {
      const after = subject === undefined ? undefined : rate.count(subject, now)
      if (after !== undefined) return tooManyRequests('The subject of this request', after)
    }
    return undefined
  }

  /** `#handleHandshake` handles requests that are not events. A signed handshake is handled after verification. */
  async #handleHandshake(
    source: DeclaredSource,
    request: ReceivedRequest,
    handshake: Handshake,
  ): Promise<Step<SourceResponse> | undefined> {
    const result = tryRead(() => handshake.answer(request))
    if (result === undefined || 'code' in result) return result
    if (result.kind === 'refused') return result.refusal
    if (result.kind === 'answer') return result.answer
    return this.#saveSecret(source, result)
  }

  async #saveSecret(source: DeclaredSource, { secret, answer }: HandshakeSecret): Promise<Step<SourceResponse>> {
    try {
      if (await this.#deps.saveSecret(source, secret)) {
        this.#deps.emit('source.keyed', { source: source.name })
        return answer
      }
    } catch (error) {
      // The sender will repeat the handshake, and this secret may well be the right one.
      return { ...toStoreProblem(error), containsSecret: true }
    }
    const fix = `Call app.admin.sources.forgetSecret('${source.name}') first if the sender was set up again.`
    return { code: 'HANDSHAKE_REFUSED', what: 'The source already has its secret.', fix }
  }

  async #verify(source: DeclaredSource, request: ReceivedRequest, verify: Verify): Promise<Problem | undefined> {
    const own = source.source.secrets
    const secrets = own === 'by-handshake' ? await this.#deps.readSecrets(source) : own
    if (secrets.length === 0) {
      return {
        code: 'SOURCE_PENDING',
        what: 'The source waits for its handshake.',
        fix: 'Make the sender repeat its handshake.',
      }
    }
    const now = this.#deps.now()
    const { result, trace } = traceVerification(() => tryRead(() => verify(request, { now, secrets })))
    return result && { ...result, autopsy: describeTrace(trace, { headers: request.headers, secrets, now }) }
  }

  async #storeEvents(
    source: DeclaredSource,
    request: ReceivedRequest,
    id: string,
    events: readonly SourceEvent[],
  ): Promise<Step<SourceResponse>> {
    const named = nameEvents(source, request, { id, at: this.#deps.now() }, events)
    const stored = named.length === 0 ? Promise.resolve([]) : this.#deps.intake.take(named)
    if (stored === undefined) {
      const fix = 'The store is slower than the arrivals. Check its disk, or spread the load.'
      return { code: 'BUSY', what: 'Too many events wait for the store.', fix, retryAfter: BUSY_FOR }
    }
    const published = await stored
    // A sender that gets a 2xx does not send again, so all events must be stored (R2).
    if (published.some(({ kind }) => kind === 'refused')) {
      const fix = 'The event.refused events say which one, and why.'
      return { code: 'STORE_FAILED', what: 'Not all events could be stored.', fix, retryAfter: BUSY_FOR }
    }
    return toAcceptedResponse(source.source.answer, request, published)
  }

  #recordRefusal(problem: Problem, { head, id, source, body }: RejectedRequest): void {
    const { method, url, address, headers } = head
    const at = this.#deps.now()
    const name = source?.name ?? NO_SOURCE
    const request = { at, request: id, source: name, method, path: url.pathname, address, headers, body }
    this.#deps.refusedRequests.add(
      toRefusedRequest(request, problem, source === undefined ? [] : configuredSecrets(source)),
    )
    this.#deps.emit('event.refused', { event: id, source: name, type: '', field: problem.code, fix: problem.fix })
  }
}

interface IncomingRequest {
  readonly head: RequestHead
  readonly id: string
  readonly read: ReadBody
  readonly reserve: ReserveBytes
}

interface RejectedRequest {
  readonly head: RequestHead
  readonly id: string
  readonly source: DeclaredSource | undefined
  readonly body: Uint8Array | undefined
}

const POST = ['POST'] as const
const NO_URL = new URL('unknown:')

function unknownSource({ url }: RequestHead): Problem {
  const what = `There is no source at ${url.pathname.slice(0, 200)}.`
  return { code: 'SOURCE_UNKNOWN', what, fix: 'Compare the path with that of the source.' }
}

function tooManyRequests(caller: string, after: Millis): Problem {
  const fix = 'Raise rate or subjectRate of the source, or addressRate of the app, to accept more.'
  return { code: 'TOO_MANY_REQUESTS', what: `${caller} exceeds its rate.`, fix, retryAfter: after }
}

function tooManyEvents(count: number, { maxEvents }: DeclaredSource): Problem {
  const what = `The request has ${count} events; at most ${maxEvents} are allowed.`
  return { code: 'TOO_MANY_EVENTS', what, fix: 'Make the sender send fewer events at a time.' }
}

function methodNotAllowed(methods: readonly string[]): Problem {
  const allow = methods.join(', ')
  const what = `The method must be ${allow}.`
  return { code: 'METHOD_NOT_ALLOWED', what, fix: 'Check the method that the sender uses.', headers: { allow } }
}

/** `tryRead` fails closed: an error thrown by a source also rejects the request. */
function tryRead<T>(read: () => T): T | Problem {
  try {
    return read()
  } catch {
    const fix = 'Check the request that was sent.'
    return { code: 'BODY_NOT_UNDERSTOOD', what: 'The request could not be read.', fix }
  }
}

/** `toStoreProblem` asks the sender to send again, unless the event itself is invalid. */
function toStoreProblem(error: unknown): Problem {
  const { code, message, fix } = error instanceof SluiceError ? error : UNKNOWN_FAILURE
  if (code === 'EVENT_INVALID') return { code, what: message, fix }
  if (code === 'APP_STOPPED') return { code, what: 'The process is stopping.', fix, retryAfter: BUSY_FOR }
  return { code: 'STORE_FAILED', what: 'The store does not respond.', fix: message, retryAfter: BUSY_FOR }
}

const UNKNOWN_FAILURE = { code: 'STORE_FAILED', message: 'Check the log of the process.', fix: '' } as const
