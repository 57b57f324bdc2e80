// The faults that a request can have, tried on every source in the same way. Each source declares one valid
// request and the expected result of each fault (test/sources/cases/); the table tests all of them.
import type { Millis } from '../../src/clock.ts'
import { SluiceError } from '../../src/errors.ts'
import type { ReceivedRequest, Refusal, RefusalCode, Source, SourceEvent } from '../../src/receive/source.ts'

/** `answered`: it is a handshake. `duplicate`: accepted, and recognised by its dedupe ids. */
export type Outcome = 'accepted' | 'duplicate' | 'answered' | RefusalCode | 'CONFIG_INVALID'

/** Several results, because the fault is tried at every byte, and each result occurs somewhere. */
export type Expected = Outcome | readonly Outcome[]

export interface SourceCase {
  readonly name: string
  /** The source with this secret. An empty secret must be rejected. */
  readonly build: (secret: string) => Source
  readonly secret: string
  readonly wrongSecret: string
  /** A valid request, signed now with this secret. */
  readonly request: (secret: string, at: Millis) => ReceivedRequest
  readonly expected: {
    readonly bodyChanged: Expected
    /** By header: one byte of it is changed. */
    readonly headerChanged: Readonly<Record<string, Expected>>
    readonly headerMissing: Readonly<Record<string, Expected>>
    readonly wrongSecret: Expected
    /** One hour ago, and in one hour. */
    readonly old: Expected
    readonly future: Expected
    readonly replayed: Expected
    /** The content type is `text/plain`. */
    readonly contentType: Expected
  }
  /** Whether a verified part differs from the genuine request. Default: whether the body differs. */
  readonly isForged?: (request: ReceivedRequest, genuine: ReceivedRequest) => boolean
}

export const NOW: Millis = Date.UTC(2026, 0, 15, 12)
const HOUR: Millis = 3_600_000

const BASE = 'https://hooks.example.com/in/source'

export interface Sending {
  readonly body: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly url?: string
  readonly method?: string
  readonly address?: string
}

/** A JSON request unless the headers say otherwise. */
export function requestOf({ body, headers, url, method, address }: Sending): ReceivedRequest {
  return {
    method: method ?? 'POST',
    url: new URL(url ?? BASE),
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? Buffer.from(body) : body,
    address: address ?? '203.0.113.7',
  }
}

export interface Received {
  readonly outcome: Outcome
  readonly events: readonly SourceEvent[]
}

/** The steps of receiving in which a source takes part, in their order (R1). */
export function receive(source: Source, request: ReceivedRequest, secret: string, now: Millis = NOW): Received {
  const early = source.handshake?.verified === false ? greeted(source, request) : undefined
  if (early !== undefined) return early
  if (!(source.methods ?? ['POST']).includes(request.method)) return without('METHOD_NOT_ALLOWED')
  const secrets = source.secrets === 'by-handshake' ? [secret] : source.secrets
  const refused = source.verify === 'none' ? undefined : source.verify(request, { now, secrets })
  if (refused !== undefined) return without(refused.code)
  const late = source.handshake?.verified === true ? greeted(source, request) : undefined
  if (late !== undefined) return late
  const events = source.events(request)
  return isRefusal(events) ? without(events.code) : { outcome: 'accepted', events }
}

function greeted(source: Source, request: ReceivedRequest): Received | undefined {
  const result = source.handshake?.answer(request)
  if (result === undefined) return undefined
  return without(result.kind === 'refused' ? result.refusal.code : 'answered')
}

function isRefusal(events: readonly SourceEvent[] | Refusal): events is Refusal {
  return !Array.isArray(events)
}

function without(outcome: Outcome): Received {
  return { outcome, events: [] }
}

/** The same request with one byte changed, for each byte of its body. */
function bodiesChanged(request: ReceivedRequest): readonly ReceivedRequest[] {
  return Array.from(request.body, (byte, at) => {
    const body = Uint8Array.from(request.body)
    body[at] = byte ^ 1
    return { ...request, body }
  })
}

function headerChanged(request: ReceivedRequest, name: string): readonly ReceivedRequest[] {
  const value = request.headers[name] ?? ''
  return Array.from(value, (deadLetter, at) => {
    const other = String.fromCharCode(deadLetter.charCodeAt(0) ^ 1)
    return withHeader(request, name, value.slice(0, at) + other + value.slice(at + 1))
  })
}

export function withHeader(request: ReceivedRequest, name: string, value: string | undefined): ReceivedRequest {
  const { [name]: _, ...others } = request.headers
  return { ...request, headers: value === undefined ? others : { ...others, [name]: value } }
}

/** The expected result of each fault of the case, one row per fault. */
export function faultsOf(one: SourceCase): readonly (readonly [fault: string, expected: Expected, got: Expected])[] {
  const source = one.build(one.secret)
  const valid = one.request(one.secret, NOW)
  const outcome = (request: ReceivedRequest): Outcome => receive(source, request, one.secret).outcome
  const outcomes = (requests: readonly ReceivedRequest[]): Expected => listed(requests.map(outcome))
  const { expected } = one
  return [
    ['nothing', 'accepted', outcome(valid)],
    ['one byte of the body', sorted(expected.bodyChanged), outcomes(bodiesChanged(valid))],
    ...Object.entries(expected.headerChanged).map(
      ([name, wanted]) => [`one byte of ${name}`, sorted(wanted), outcomes(headerChanged(valid, name))] as const,
    ),
    ...Object.entries(expected.headerMissing).map(
      ([name, wanted]) => [`no ${name}`, sorted(wanted), outcome(withHeader(valid, name, undefined))] as const,
    ),
    ['wrong secret', expected.wrongSecret, outcome(one.request(one.wrongSecret, NOW))],
    ['an hour old', expected.old, outcome(one.request(one.secret, NOW - HOUR))],
    ['an hour ahead', expected.future, outcome(one.request(one.secret, NOW + HOUR))],
    ['replayed', expected.replayed, replayed(one)],
    ['empty secret', 'CONFIG_INVALID', built(one)],
    ['content type text/plain', expected.contentType, outcome(withHeader(valid, 'content-type', 'text/plain'))],
  ]
}

function replayed(one: SourceCase): Outcome {
  const source = one.build(one.secret)
  const request = one.request(one.secret, NOW)
  const [first, second] = [receive(source, request, one.secret), receive(source, request, one.secret)]
  if (second.outcome !== 'accepted') return second.outcome
  const isKnown = second.events.every(
    ({ dedupeId }, n) => dedupeId !== undefined && dedupeId === first.events[n]?.dedupeId,
  )
  return isKnown ? 'duplicate' : 'accepted'
}

function built(one: SourceCase): Outcome {
  try {
    one.build('')
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'CONFIG_INVALID') return 'CONFIG_INVALID'
    throw error
  }
  return 'accepted'
}

/** A single outcome, or several as a sorted list without repetitions. */
function listed(outcomes: readonly Outcome[]): Expected {
  const list = [...new Set(outcomes)].toSorted()
  return list.length === 1 && list[0] !== undefined ? list[0] : list
}

function sorted(expected: Expected): Expected {
  return typeof expected === 'string' ? expected : listed(expected)
}
