// `RefusedRequests` keeps the last requests that each source rejected, with the reason and the fix, so that a wrong
// secret is found in a minute (R5).
import type { Millis } from '../clock.ts'
import type { Autopsy } from './autopsy.ts'
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
  /** The headers, without values that could be secrets. */
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number
  /** The beginning of the body, as text from a stranger: anything that shows it must escape it. */
  readonly excerpt: string
  /** What the verification read, if it refused the request. */
  readonly autopsy?: Autopsy
}

type Headers = Readonly<Record<string, string>>

export const MAX_KEPT = 50
const MAX_EXCERPT = 500
/** The name under which requests to unknown sources are kept: anybody can make up names. */
export const NO_SOURCE = ''

export class RefusedRequests {
  readonly #kept = new Map<string, readonly RefusedRequest[]>()
  readonly #counts = new Map<string, Map<ProblemCode, number>>()
  readonly #onAdded: (source: string) => void

  constructor(added: (source: string) => void = () => {}) {
    this.#onAdded = added
  }

  /** `list` returns the newest first. */
  list(source: string): readonly RefusedRequest[] {
    return this.#kept.get(source) ?? []
  }

  /** `counts` returns the number of refused requests by reason, since the process started. */
  counts(source: string): Readonly<Partial<Record<ProblemCode, number>>> {
    return Object.fromEntries(this.#counts.get(source) ?? [])
  }

  /** `allCounts` returns the counts of all sources; '' means unknown sources. */
  allCounts(): readonly { readonly source: string; readonly reason: ProblemCode; readonly count: number }[] {
    return [...this.#counts].flatMap(([source, counts]) =>
      Array.from(counts, ([reason, count]) => ({ source, reason, count })),
    )
  }

  add(refused: RefusedRequest): void {
    this.#kept.set(refused.source, [refused, ...this.list(refused.source)].slice(0, MAX_KEPT))
    const counts = this.#counts.get(refused.source) ?? new Map<ProblemCode, number>()
    counts.set(refused.code, (counts.get(refused.code) ?? 0) + 1)
    this.#counts.set(refused.source, counts)
    this.#onAdded(refused.source)
  }
}

type RefusedInput = Omit<RefusedRequest, 'code' | 'what' | 'fix' | 'bytes' | 'excerpt' | 'autopsy'> & {
  readonly body: Uint8Array | undefined
}

/** `toRefusedRequest` uses `secrets`, those of the source, to detect headers and bodies that contain one. */
export function toRefusedRequest(refused: RefusedInput, problem: Problem, secrets: readonly string[]): RefusedRequest {
  const { body, headers, ...rest } = refused
  const { code, what, fix, autopsy } = problem
  return {
    ...rest,
    code,
    what,
    fix,
    headers: SIGNATURE_CODES.has(code) ? withoutSecrets(headers, secrets) : redactUnlessHarmless(headers),
    bytes: body?.length ?? 0,
    excerpt: createExcerpt(body, problem, secrets),
    ...(autopsy !== undefined && { autopsy }),
  }
}

/** `createExcerpt` treats the body of a handshake as a secret, even from a stranger. */
function createExcerpt(
  body: Uint8Array | undefined,
  { code, containsSecret: bringsSecret }: Problem,
  secrets: readonly string[],
): string {
  if (body === undefined || code === 'HANDSHAKE_REFUSED' || bringsSecret === true) return ''
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return secrets.some((secret) => bytes.includes(secret)) ? '' : bytes.toString('utf8', 0, MAX_EXCERPT)
}

/** For these codes, headers help to find what is wrong with a signature or with the signed content. In any other
    request, an unknown header may hold a secret that is not the source's and opens another door, e.g. an old secret,
    or one sent to a wrong path. */
const SIGNATURE_CODES: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
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

/** Signatures are kept, because they help to find the fault. Credentials are not. */
const SECRET = /^(?:authorization|proxy-authorization|cookie|set-cookie)$|secret|token|password|api-?key/i

/** A cache, because the same header names come with every request. */
const secretNameCache = new Map<string, boolean>()
const MAX_CACHED = 1_000

function isSecretName(name: string): boolean {
  let does = secretNameCache.get(name)
  if (does !== undefined) return does
  if (secretNameCache.size >= MAX_CACHED) secretNameCache.clear()
  secretNameCache.set(name, (does = SECRET.test(name)))
  return does
}

/** `withoutSecrets` also checks values: a header of any name can carry the secret of a source. */
export function withoutSecrets(headers: Headers, secrets: readonly string[] = []): Headers {
  return redactValues(headers, (name, value) => isSecret(name, value, secrets))
}

/** `queryWithoutSecrets` does the same for a query. A query without secrets stays as it was sent. */
export function queryWithoutSecrets(url: URL, secrets: readonly string[]): string {
  const { search } = url
  if (search === '') return ''
  const query = [...url.searchParams]
  if (!query.some(([name, value]) => isSecret(name, value, secrets))) return search
  const shown = query.map(([name, value]): [string, string] =>
    isSecret(name, value, secrets) ? [redactName(name, secrets), ''] : [name, value],
  )
  return `?${new URLSearchParams(shown).toString()}`
}

function isSecret(name: string, value: string, secrets: readonly string[]): boolean {
  return isSecretName(name) || secrets.some((secret) => value.includes(secret) || name.includes(secret))
}

/** `redactName` covers a key in the query without a name: it is parsed as a name. */
function redactName(name: string, secrets: readonly string[]): string {
  return secrets.some((secret) => name.includes(secret)) ? `(${name.length} characters)` : name
}

function redactUnlessHarmless(headers: Headers): Headers {
  return redactValues(headers, (name) => !HARMLESS.test(name))
}

const HARMLESS = /^(?:host|user-agent|date|via|connection|content-.*|accept.*|x-forwarded-.*|x-request-id)$/

function redactValues(headers: Headers, isHidden: (name: string, value: string) => boolean): Headers {
  const shown: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name] ?? ''
    shown[name] = isHidden(name, value) ? `(${value.length} characters)` : value
  }
  return shown
}
