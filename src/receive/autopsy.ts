// The autopsy of a refused request: which header was read, which bytes were signed, how far the clocks are apart, and how many secrets
// were tried. The verification notes what it reads, and only that of a refused request is described.
import type { Millis } from '../clock.ts'

export interface Autopsy {
  readonly header?: string
  readonly given?: string
  /** What the source computed the signature of, and its length. */
  readonly signedParts?: readonly string[]
  readonly signedBytes?: number
  /** How much later the request arrived than it was signed. */
  readonly skewMs?: Millis
  readonly secretsTried: number
}

interface Trace {
  missingHeader?: string
  given: readonly string[]
  parts: readonly (string | Uint8Array)[]
  secrets: number
  signedAt?: Millis
}

/** Verification is synchronous, so one trace at a time is enough. */
let current: Trace | undefined

/** `traceSignature` is called with what a source compares. */
export function traceSignature(
  values: readonly string[],
  parts: readonly (string | Uint8Array)[],
  secrets: number,
): void {
  if (current !== undefined) Object.assign(current, { given: values, parts, secrets })
}

export function traceMissingHeader(header: string): void {
  if (current !== undefined) current.missingHeader = header
}

export function traceSignedTime(at: Millis): void {
  if (current !== undefined) current.signedAt = at
}

interface AutopsyInput {
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
  readonly now: Millis
}

const MAX_GIVEN = 100
const MAX_PARTS = 8
const MAX_PART = 60

/** `traceVerification` returns what `verify` returns, and what it read meanwhile. */
export function traceVerification<T>(verify: () => T): { readonly result: T; readonly trace: Trace } {
  const trace: Trace = { given: [], parts: [], secrets: 0 }
  current = trace
  try {
    return { result: verify(), trace }
  } finally {
    current = undefined
  }
}

/** `describeTrace` shows no secret and no body. */
export function describeTrace(trace: Trace, { headers, secrets, now }: AutopsyInput): Autopsy {
  const [given] = trace.given
  const header = trace.missingHeader ?? findHeader(headers, given)
  const isShown = given !== undefined && !secrets.some((secret) => given.includes(secret))
  return {
    ...(header !== undefined && { header }),
    ...(isShown && { given: given.slice(0, MAX_GIVEN) }),
    ...(trace.parts.length > 0 && {
      signedParts: trace.parts.slice(0, MAX_PARTS).map((part) => describePart(part, secrets)),
      signedBytes: trace.parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0),
    }),
    ...(trace.signedAt !== undefined && { skewMs: now - trace.signedAt }),
    secretsTried: trace.secrets,
  }
}

function findHeader(headers: AutopsyInput['headers'], given: string | undefined): string | undefined {
  if (given === undefined || given === '') return undefined
  return Object.entries(headers).find(([, value]) => value.toLowerCase().includes(given.toLowerCase()))?.[0]
}

/** A signed text may contain a secret, e.g. in a query, so only short texts without one are shown. */
function describePart(part: string | Uint8Array, secrets: readonly string[]): string {
  if (typeof part !== 'string') return `the body, ${part.length} bytes`
  const isShown = part.length <= MAX_PART && !part.includes('?') && !secrets.some((secret) => part.includes(secret))
  return isShown ? JSON.stringify(part) : `a text of ${part.length} characters`
}
