// The last requests that each source refused, with the reason and the fix: a wrong secret is found in a minute (R5).
import type { Millis } from '../clock.ts'
import type { Problem, ProblemCode } from './problem.ts'

export interface RefusedRequest {
  readonly at: Millis
  readonly request: string
  readonly source: string
  readonly code: ProblemCode
  readonly what: string
  readonly fix: string
  readonly method: string
  readonly path: string
  readonly address: string
  /** Without what could be a secret. */
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number
  /** The beginning of the body, as text: whoever shows it must not take it for anything else. */
  readonly excerpt: string
}

type Headers = Readonly<Record<string, string>>

export const KEPT = 50
const EXCERPT = 500
/** Of sources that do not exist: anybody can make up names. */
export const NO_SOURCE = ''

export class RefusedRequests {
  readonly #kept = new Map<string, readonly RefusedRequest[]>()
  readonly #counts = new Map<string, Map<ProblemCode, number>>()
  readonly #added: (source: string) => void

  constructor(added: (source: string) => void = () => {}) {
    this.#added = added
  }

  /** Newest first. */
  of(source: string): readonly RefusedRequest[] {
    return this.#kept.get(source) ?? []
  }

  /** Since the process began, by reason. */
  counts(source: string): Readonly<Partial<Record<ProblemCode, number>>> {
    return Object.fromEntries(this.#counts.get(source) ?? [])
  }

  /** The same of all sources; '' is none. */
  allCounts(): readonly { readonly source: string; readonly reason: ProblemCode; readonly count: number }[] {
    return [...this.#counts].flatMap(([source, counts]) =>
      Array.from(counts, ([reason, count]) => ({ source, reason, count })),
    )
  }

  add(refused: RefusedRequest): void {
    this.#kept.set(refused.source, [refused, ...this.of(refused.source)].slice(0, KEPT))
    const counts = this.#counts.get(refused.source) ?? new Map<ProblemCode, number>()
    counts.set(refused.code, (counts.get(refused.code) ?? 0) + 1)
    this.#counts.set(refused.source, counts)
    this.#added(refused.source)
  }
}

export interface Refused {
  readonly at: Millis
  readonly request: string
  readonly source: string
  readonly method: string
  readonly path: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

/** `secrets` are those of the source, by which a header or a body is known that carries one. */
export function refusedRequest(refused: Refused, problem: Problem, secrets: readonly string[]): RefusedRequest {
  const { body, headers, ...rest } = refused
  const { code, what, fix } = problem
  return {
    ...rest,
    code,
    what,
    fix,
    headers: SIGNED.has(code) ? withoutSecrets(headers, secrets) : onlyHarmless(headers),
    bytes: body?.length ?? 0,
    excerpt: excerptOf(body, problem, secrets),
  }
}

/** What a handshake brings is a secret, whoever sent it. */
function excerptOf(body: Uint8Array | undefined, { code, bringsSecret }: Problem, secrets: readonly string[]): string {
  if (body === undefined || code === 'HANDSHAKE_REFUSED' || bringsSecret === true) return ''
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return secrets.some((secret) => bytes.includes(secret)) ? '' : bytes.toString('utf8', 0, EXCERPT)
}

/**
 * Headers help to find what is wrong with a signature, or with what was signed. Of any other request nobody knows which
 * one has a secret that the source has not, and that may open another door: an old one, or one sent to a wrong path.
 */
const SIGNED: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'SIGNATURE_MISSING',
  'SIGNATURE_WRONG',
  'TIMESTAMP_MISSING',
  'TIMESTAMP_OLD',
  'TIMESTAMP_IN_FUTURE',
  'CONTENT_TYPE_WRONG',
  'BODY_NOT_UNDERSTOOD',
  'TOO_MANY_EVENTS',
  'EVENT_INVALID',
])

/** Signatures are kept, for they help to find what is wrong; what would open a door is not. */
const SECRET = /^(?:authorization|proxy-authorization|cookie|set-cookie)$|secret|token|password|api-?key/i

/** The same names come with every request. */
const sounding = new Map<string, boolean>()
const REMEMBERED = 1_000

function soundsSecret(name: string): boolean {
  let does = sounding.get(name)
  if (does !== undefined) return does
  if (sounding.size >= REMEMBERED) sounding.clear()
  sounding.set(name, (does = SECRET.test(name)))
  return does
}

/** A header of any name can carry the secret of a source: such a one is known by its value. */
export function withoutSecrets(headers: Headers, secrets: readonly string[] = []): Headers {
  return hidden(headers, (name, value) => isSecret(name, value, secrets))
}

/** The same for the query of an address, which stays as it was sent when there is none in it. */
export function queryWithoutSecrets(url: URL, secrets: readonly string[]): string {
  const { search } = url
  if (search === '') return ''
  const query = [...url.searchParams]
  if (!query.some(([name, value]) => isSecret(name, value, secrets))) return search
  const shown = query.map(([name, value]): [string, string] =>
    isSecret(name, value, secrets) ? [nameOnly(name, secrets), ''] : [name, value],
  )
  return `?${new URLSearchParams(shown).toString()}`
}

function isSecret(name: string, value: string, secrets: readonly string[]): boolean {
  return soundsSecret(name) || secrets.some((secret) => value.includes(secret) || name.includes(secret))
}

/** A key without a name of its own stands where names do. */
function nameOnly(name: string, secrets: readonly string[]): string {
  return secrets.some((secret) => name.includes(secret)) ? `(${name.length} characters)` : name
}

function onlyHarmless(headers: Headers): Headers {
  return hidden(headers, (name) => !HARMLESS.test(name))
}

const HARMLESS = /^(?:host|user-agent|date|via|connection|content-.*|accept.*|x-forwarded-.*|x-request-id)$/

function hidden(headers: Headers, isHidden: (name: string, value: string) => boolean): Headers {
  const shown: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name] ?? ''
    shown[name] = isHidden(name, value) ? `(${value.length} characters)` : value
  }
  return shown
}
