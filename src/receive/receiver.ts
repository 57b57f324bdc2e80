// One request from the wire to the store and back: bounds, handshake, verify, split, name, route, store, answer, in that
// order (R1). No other code of users runs before the answer.
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { newEventId } from '../model/event.ts'
import type { AnyListener } from '../observe/events.ts'
import { BodyRoom, HeldBody, type Hold } from './body-room.ts'
import { boundedBody, type ReadBody } from './bounds.ts'
import type { DeclaredSource } from './declared-source.ts'
import type { Intake } from './intake.ts'
import { namedEvents, ownSecrets } from './named-events.ts'
import { problemAnswer, type Problem } from './problem.ts'
import type { Published } from './publisher.ts'
import { NO_SOURCE, refusedRequest, type RefusedRequests } from './refused-requests.ts'
import { networkOf, RequestRate } from './request-rate.ts'
import { EventLoopTurn } from '../event-loop-turn.ts'
import type { Handshake, HandshakeResult, ReceivedRequest, Source, SourceAnswer, SourceEvent } from './source.ts'

/** A request whose body nobody has read yet. */
export type RequestHead = Omit<ReceivedRequest, 'body'>

export interface ReceiverParts {
  readonly clock: Clock
  readonly now: () => Millis
  readonly intake: Intake
  readonly refused: RefusedRequests
  /** The secrets by which a source verifies: its own, or the one that came by handshake. */
  readonly secrets: (source: DeclaredSource) => Promise<readonly string[]>
  /** Keeps the secret that came by handshake. False: somebody was first. */
  readonly learn: (source: DeclaredSource, secret: string) => Promise<boolean>
  readonly addressRate: { readonly rate: number; readonly per: Millis }
  readonly emit: AnyListener
  /** For bodies under way, of all sources together. */
  readonly room?: BodyRoom
}

const BUSY_FOR: Millis = 1_000

type Step<T> = T | Problem
type Verify = Exclude<Source['verify'], 'none'>
type SecretBrought = Extract<HandshakeResult, { readonly kind: 'secret' }>

export class Receiver {
  readonly #parts: ReceiverParts
  readonly #byPath = new Map<string, DeclaredSource>()
  readonly #addresses: RequestRate
  readonly #rates = new Map<string, RequestRate>()
  #underWay = 0
  #idle: PromiseWithResolvers<void> | undefined
  readonly #room: BodyRoom
  readonly #turn = new EventLoopTurn()
  #isStopping = false

  constructor(parts: ReceiverParts) {
    this.#parts = parts
    this.#addresses = new RequestRate(parts.addressRate.rate, parts.addressRate.per)
    this.#room = parts.room ?? new BodyRoom()
  }

  get sources(): readonly DeclaredSource[] {
    return [...this.#byPath.values()]
  }

  /** Of the source that has the path. */
  nameAt(path: string): string | undefined {
    return this.#byPath.get(path)?.name
  }

  declare(source: DeclaredSource): void {
    this.#byPath.set(source.path, source)
    if (source.rate !== undefined) this.#rates.set(source.name, new RequestRate(source.rate.rate, source.rate.per))
  }

  /** From now on all are refused. Resolves when those that came before are answered (L13). */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#idle ??= Promise.withResolvers<void>()
    if (this.#underWay > 0) await this.#idle.promise
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Never fails: whatever goes wrong is an answer. */
  async receive(head: RequestHead, read: ReadBody): Promise<SourceAnswer> {
    this.#underWay++
    try {
      return await this.#answer(head, read)
    } finally {
      this.#underWay--
      if (this.#underWay === 0) this.#idle?.resolve()
    }
  }

  /** Something came that never became a request: nobody knows to which source. */
  broken(problem: Problem, address: string): void {
    const head = { method: '', url: NO_URL, headers: {}, address }
    this.#refuse(problem, { head, id: newEventId(this.#parts.now()), source: undefined, body: undefined })
  }

  async #answer(head: RequestHead, read: ReadBody): Promise<SourceAnswer> {
    const id = newEventId(this.#parts.now())
    const source = this.#byPath.get(head.url.pathname)
    let body: Uint8Array | undefined
    const watched: ReadBody = async (most, hold) => {
      const got = await read(most, hold)
      if (typeof got !== 'string') body = got
      return got
    }
    const held = new HeldBody(this.#room)
    const answer = await this.#take(source, { head, id, read: watched, hold: held.hold }).catch(failed)
    held.release()
    if (!('code' in answer)) return answer
    this.#refuse(answer, { head, id, source, body })
    return problemAnswer(answer)
  }

  async #take(source: DeclaredSource | undefined, { head, id, read, hold }: Arriving): Promise<Step<SourceAnswer>> {
    if (this.#isStopping) throw new SluiceError('APP_STOPPED', 'The app was stopped.')
    const tooMany = this.#tooManyOf(head)
    if (tooMany !== undefined) return tooMany
    if (source === undefined) return unknownSource(head)
    const { verify } = source.source
    const unread = verify === 'none' ? this.#tooManyTo(source) : undefined
    if (unread !== undefined) return unread
    const body = await boundedBody(head.headers, read, source, hold)
    if ('code' in body) return body
    await this.#turn.over()
    const request: ReceivedRequest = { ...head, body }
    const { handshake } = source.source
    const greeted = handshake?.verified === false ? await this.#greeted(source, request, handshake) : undefined
    if (greeted !== undefined) return greeted
    const methods = source.source.methods ?? POST
    if (!methods.includes(head.method)) return wrongMethod(methods)
    const unproven = verify === 'none' ? undefined : await this.#unproven(source, request, verify)
    if (unproven !== undefined) return unproven
    // Only who is proven uses up what the source may get: strangers would keep the true sender out.
    const proven = verify === 'none' ? undefined : this.#tooManyTo(source)
    if (proven !== undefined) return proven
    const answered = handshake?.verified === true ? await this.#greeted(source, request, handshake) : undefined
    if (answered !== undefined) return answered
    const events = readBy(() => source.source.events(request))
    if ('code' in events) return events
    if (events.length > source.maxEvents) return tooManyEvents(events.length, source)
    return this.#stored(source, request, id, events)
  }

  #tooManyOf({ address }: RequestHead): Problem | undefined {
    const after = this.#addresses.refuses(networkOf(address), this.#parts.clock.monotonic())
    return after === undefined ? undefined : tooManyRequests('This address', after)
  }

  #tooManyTo({ name }: DeclaredSource): Problem | undefined {
    const after = this.#rates.get(name)?.refuses('', this.#parts.clock.monotonic())
    return after === undefined ? undefined : tooManyRequests('This source', after)
  }

  /** Requests that are no events. Those that are signed are looked at once that is sure. */
  async #greeted(
    source: DeclaredSource,
    request: ReceivedRequest,
    handshake: Handshake,
  ): Promise<Step<SourceAnswer> | undefined> {
    const result = readBy(() => handshake.answer(request))
    if (result === undefined || 'code' in result) return result
    if (result.kind === 'refused') return result.refusal
    if (result.kind === 'answer') return result.answer
    return this.#learned(source, result)
  }

  async #learned(source: DeclaredSource, { secret, answer }: SecretBrought): Promise<Step<SourceAnswer>> {
    try {
      if (await this.#parts.learn(source, secret)) {
        this.#parts.emit('source.keyed', { source: source.name })
        return answer
      }
    } catch (error) {
      // It comes again, and may well be the right one.
      return { ...failed(error), bringsSecret: true }
    }
    const fix = `Call app.sources.forgetSecret('${source.name}') first, if the sending side was set up anew.`
    return { code: 'HANDSHAKE_REFUSED', what: 'The source has its secret already.', fix }
  }

  async #unproven(source: DeclaredSource, request: ReceivedRequest, verify: Verify): Promise<Problem | undefined> {
    const own = source.source.secrets
    const secrets = own === 'by-handshake' ? await this.#parts.secrets(source) : own
    if (secrets.length === 0) {
      return {
        code: 'SOURCE_PENDING',
        what: 'The source waits for its handshake.',
        fix: 'Have the sending side send its token.',
      }
    }
    return readBy(() => verify(request, { now: this.#parts.now(), secrets }))
  }

  async #stored(
    source: DeclaredSource,
    request: ReceivedRequest,
    id: string,
    events: readonly SourceEvent[],
  ): Promise<Step<SourceAnswer>> {
    const named = namedEvents(source, request, { id, at: this.#parts.now() }, events)
    const stored = named.length === 0 ? Promise.resolve([]) : this.#parts.intake.take(named)
    if (stored === undefined) {
      const fix = 'The store takes in less than arrives: look at its disk, or spread the load.'
      return { code: 'BUSY', what: 'Too much waits for the store just now.', fix, after: BUSY_FOR }
    }
    const published = await stored
    // Whoever is told 2xx does not send it again (R2).
    if (published.some(({ kind }) => kind === 'refused')) {
      const fix = 'The events event.refused tell which one, and why.'
      return { code: 'STORE_FAILED', what: 'Not all of it could be stored.', fix, after: BUSY_FOR }
    }
    return source.source.answer ?? accepted(published)
  }

  #refuse(problem: Problem, { head, id, source, body }: Unwanted): void {
    const { method, url, address, headers } = head
    const at = this.#parts.now()
    const name = source?.name ?? NO_SOURCE
    const request = { at, request: id, source: name, method, path: url.pathname, address, headers, body }
    this.#parts.refused.add(refusedRequest(request, problem, source === undefined ? [] : ownSecrets(source)))
    this.#parts.emit('event.refused', { event: id, source: name, type: '', field: problem.code, fix: problem.fix })
  }
}

interface Arriving {
  readonly head: RequestHead
  readonly id: string
  readonly read: ReadBody
  readonly hold: Hold
}

interface Unwanted {
  readonly head: RequestHead
  readonly id: string
  readonly source: DeclaredSource | undefined
  readonly body: Uint8Array | undefined
}

const POST = ['POST'] as const
const NO_URL = new URL('unknown:')

function unknownSource({ url }: RequestHead): Problem {
  const what = `There is no source at ${url.pathname.slice(0, 200)}.`
  return { code: 'SOURCE_UNKNOWN', what, fix: 'Compare the address with that of the source.' }
}

function tooManyRequests(who: string, after: Millis): Problem {
  const fix = 'Raise the rate of the source, or addressRate of the app, if so many are to be taken.'
  return { code: 'TOO_MANY_REQUESTS', what: `${who} gets more requests than it may.`, fix, after }
}

function tooManyEvents(count: number, { maxEvents }: DeclaredSource): Problem {
  const what = `There are ${count} events in it; at most ${maxEvents} are taken at once.`
  return { code: 'TOO_MANY_EVENTS', what, fix: 'Have the sending side send fewer at a time.' }
}

function wrongMethod(methods: readonly string[]): Problem {
  const allow = methods.join(', ')
  const what = `Requests to this source are ${allow}.`
  return { code: 'METHOD_NOT_ALLOWED', what, fix: 'Look at how the sending side calls it.', headers: { allow } }
}

/** Fails closed: what a source throws is a refusal as well. */
function readBy<T>(read: () => T): T | Problem {
  try {
    return read()
  } catch {
    const fix = 'Look at the request that was sent.'
    return { code: 'BODY_NOT_UNDERSTOOD', what: 'The request could not be read.', fix }
  }
}

/** Whoever sent it is to send it again, unless it is the event that is at fault. */
function failed(error: unknown): Problem {
  const { code, message, fix } = error instanceof SluiceError ? error : NO_ANSWER
  if (code === 'EVENT_INVALID') return { code, what: message, fix }
  if (code === 'APP_STOPPED') return { code, what: 'This process stops.', fix, after: BUSY_FOR }
  return { code: 'STORE_FAILED', what: 'The store does not answer just now.', fix: message, after: BUSY_FOR }
}

const NO_ANSWER = { code: 'STORE_FAILED', message: 'Look at the log of the process.', fix: '' } as const

function accepted(published: readonly Published[]): SourceAnswer {
  const events = published.map(({ id, kind, of }) => (of === undefined ? { id, kind } : { id, kind, of }))
  return { status: 202, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ events }) }
}
