// A `Source` says how a request is verified, how a handshake is answered, and which events a request contains. Sources
// are data and pure functions; the receiver calls them in order (R1).
import type { Millis } from '../clock.ts'
import type { Duration } from '../model/duration.ts'

/** `ReceivedRequest` is a request as it arrived. The body holds the sent bytes, not parsed. */
export interface ReceivedRequest {
  readonly method: string
  /** The URL that the sender called: behind a trusted proxy, with the public scheme and host. */
  readonly url: URL
  /** The same URL, character by character, where the server knows it: `URL` normalizes some spellings. */
  readonly calledUrl?: string
  /** Names are lower case. The values of a repeated header are joined by ', '. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The address of the sender, or of the last proxy that is not trusted. */
  readonly address: string
}

/** `Refusal` says why a request is rejected; `fix` tells the owner of the source what to check. */
export interface Refusal {
  readonly code: RefusalCode
  readonly what: string
  readonly fix: string
}

export type RefusalCode =
  | 'SIGNATURE_MISSING'
  | 'SIGNATURE_WRONG'
  | 'TIMESTAMP_MISSING'
  | 'TIMESTAMP_OLD'
  | 'TIMESTAMP_IN_FUTURE'
  | 'CREDENTIALS_MISSING'
  | 'CREDENTIALS_WRONG'
  | 'ADDRESS_NOT_ALLOWED'
  | 'HANDSHAKE_REFUSED'
  | 'SOURCE_PENDING'
  | 'CONTENT_TYPE_WRONG'
  | 'BODY_NOT_UNDERSTOOD'
  | 'METHOD_NOT_ALLOWED'

/** `VerifyContext` is what a request is verified against. */
export interface VerifyContext {
  readonly now: Millis
  /** All active secrets: during a rotation, the old and the new one. */
  readonly secrets: readonly string[]
}

export interface SourceEvent {
  readonly type: string
  /** An event with the same id is a duplicate (L10). Undefined: nothing in the request tells a re-send from a new
      event. */
  readonly dedupeId: string | undefined
  /** The whole body of the request, unless it contains several events. */
  readonly body: Uint8Array
  readonly subject?: string | undefined
  readonly tenant?: string | undefined
  /** When the event happened, if the request says so. */
  readonly time?: Millis | undefined
  /** Further CloudEvents attributes. */
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

/** `ParsedEvents` are the events of a request, or why they cannot be read. */
export type ParsedEvents = readonly SourceEvent[] | Refusal

export type ParseEvents = (request: ReceivedRequest) => ParsedEvents

export interface SourceResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Source {
  /** The scheme as docs and errors call it, e.g. 'stripe'. */
  readonly scheme: string
  /** Empty only if there is nothing to verify with; `verify` is then 'none'. */
  readonly secrets: readonly string[] | 'by-handshake'
  /** Returns undefined if the request is genuine. */
  readonly verify: 'none' | ((request: ReceivedRequest, context: VerifyContext) => Refusal | undefined)
  /** Handles requests that are not events. Returns undefined for any other request. Called before `verify`, unless
      `verified` is set. */
  readonly handshake?: Handshake
  /** Called after `verify`. Must not throw: a request that cannot be read is a refusal. An empty list is a request
      without events. */
  readonly events: ParseEvents
  /** How long an identity is remembered: longer for schemes that do not sign a timestamp (L10). */
  readonly dedupeFor?: Duration | undefined
  /** How far a signed time may be in the past or future: for twice that long, the same request can be sent again. */
  readonly tolerance?: Millis | undefined
  readonly maxBody?: number
  /** The most events in one request. The default is 10,000. */
  readonly maxEvents?: number
  /** Builds a test request (`sluice send`) as the provider would send it, or returns why it cannot. */
  readonly sign?: SignRequest | undefined
  /** The default is 'POST'. */
  readonly methods?: readonly string[]
  /** The response to an accepted request. It must be 2xx, because senders repeat anything else. The default is 202
      with the event ids. */
  readonly answer?: SourceResponse | undefined
}

/** `SignOptions` describe a test request. */
export interface SignOptions {
  /** The type of the event; undefined for the most common one. */
  readonly type: string | undefined
  /** The body to send; undefined for an example. */
  readonly data: Uint8Array | undefined
  /** Unique per request, so that none is a duplicate. */
  readonly id: string
  readonly now: Millis
  readonly secret: string
  readonly url: URL
  /** Headers to send besides those of the scheme. */
  readonly headers?: Readonly<Record<string, string>>
}

export type SignedRequest = Pick<ReceivedRequest, 'url' | 'headers' | 'body'>

/** `SignRequest` returns why it cannot sign, if so. */
export type SignRequest = (input: SignOptions) => SignedRequest | string

export interface Handshake {
  /** Whether the request is verified first. */
  readonly verified: boolean
  readonly answer: (request: ReceivedRequest) => HandshakeResult | undefined
}

export type HandshakeResult =
  | { readonly kind: 'answer'; readonly answer: SourceResponse }
  /** The secret that verifies requests from now on. Accepted only while the source has none. */
  | { readonly kind: 'secret'; readonly secret: string; readonly answer: SourceResponse }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
