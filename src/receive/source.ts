// A way in for requests: how one proves where it comes from, how a handshake is answered, and what events are in it.
// Sources are data and pure functions; the steps of receiving call them, in order (R1).
import type { Millis } from '../clock.ts'
import type { Duration } from '../model/duration.ts'

/** A request as it came. The body is what was sent: nobody has parsed it yet. */
export interface ReceivedRequest {
  readonly method: string
  /** As the sender called it: behind a listed proxy, with the public scheme and host. */
  readonly url: URL
  /** The same letter by letter, where the server knows it: a URL spells some of them anew. */
  readonly called?: string
  /** Names are lower case; one that came twice is joined by ', '. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Of the sender, or of the last proxy that is not listed. */
  readonly address: string
}

/** Why a request is not accepted, as a value: `fix` tells the owner of the source what to look at. */
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

/** What a request is held against. */
export interface VerifyContext {
  readonly now: Millis
  /** All that are active now: while one is exchanged for another, both count. */
  readonly secrets: readonly string[]
}

/** One event of a request, named. */
export interface SourceEvent {
  readonly type: string
  /** The same one again is a duplicate (L10). Undefined: nothing in it tells a re-send from a new event. */
  readonly dedupeId: string | undefined
  /** The whole body of the request unless there are several events in it. */
  readonly body: Uint8Array
  readonly subject?: string
  readonly tenant?: string
  /** When it happened, if it says so. */
  readonly time?: Millis
  /** Further CloudEvents attributes. */
  readonly attributes?: Readonly<Record<string, unknown>>
}

export interface SourceAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Source {
  /** The kind, as docs and errors call it: 'stripe'. */
  readonly scheme: string
  /** Empty only if there is nothing to hold a request against: then `verify` is 'none', in so many words. */
  readonly secrets: readonly string[] | 'by-handshake'
  /** Undefined: it is who it says it is. */
  readonly verify: 'none' | ((request: ReceivedRequest, context: VerifyContext) => Refusal | undefined)
  /** Requests that are no events. Undefined: it is none of those. Called before `verify` unless `verified` is set. */
  readonly handshake?: Handshake
  /** After `verify`. Throws nothing: what it cannot read is a refusal. An empty list is a request without events. */
  readonly events: (request: ReceivedRequest) => readonly SourceEvent[] | Refusal
  /** How long an identity is known: longer where nothing that is signed says when (L10). */
  readonly dedupeFor?: Duration
  /** How old, or how far ahead, a signed time may be: for twice as long the same request can be sent again. */
  readonly tolerance?: Millis
  readonly maxBody?: number
  /** Of one request; 10,000 unless said. */
  readonly maxEvents?: number
  /** Undefined: the secret is all. */
  readonly sender?: Sender
  /** 'POST' unless said. */
  readonly methods?: readonly string[]
  /** What an accepted request is answered: 2xx, for anything else is sent again. 202 with the ids unless said. */
  readonly answer?: SourceAnswer
}

/** What a sender has to know beside the secret. For test requests (`sluice send`): nothing is verified by it. */
export interface Sender {
  readonly proof?: SenderProof
  /** Where the type is looked for: a path into the body, or `header:x-name`. */
  readonly type?: string
  /** Of Strava. */
  readonly subscription?: { readonly id: string; readonly isSigned: boolean }
  /** Of Twilio: the address as it is set there. */
  readonly url?: string
}

export type SenderProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'bearer' }
  | { readonly kind: 'basic'; readonly username: string }
  | { readonly kind: 'header'; readonly header: string }
  | { readonly kind: 'query'; readonly name: string }
  | {
      readonly kind: 'mac'
      readonly header: string
      readonly mac: {
        readonly algorithm: 'sha1' | 'sha256' | 'sha384' | 'sha512'
        readonly encoding: 'hex' | 'base64'
        readonly prefix?: string
      }
      /** The header that has the time. */
      readonly timestamp: string | undefined
      readonly content: (request: ReceivedRequest) => readonly (string | Uint8Array)[] | Refusal
    }

export interface Handshake {
  /** Whether its signature is looked at first. */
  readonly verified: boolean
  readonly answer: (request: ReceivedRequest) => HandshakeResult | undefined
}

export type HandshakeResult =
  | { readonly kind: 'answer'; readonly answer: SourceAnswer }
  /** The secret by which requests are verified from now on. Taken only while the source has none. */
  | { readonly kind: 'secret'; readonly secret: string; readonly answer: SourceAnswer }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
