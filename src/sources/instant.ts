// This file parses times in payloads: seconds since 1970, or RFC 3339. Anything else is undefined.
import type { Millis } from '../clock.ts'

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:Z|[+-]\d\d:\d\d)$/

export function parseUnixSeconds(seconds: string | undefined): Millis | undefined {
  return seconds !== undefined && /^\d{1,11}$/.test(seconds) ? Number(seconds) * 1_000 : undefined
}

export function parseTimestamp(text: string | undefined): Millis | undefined {
  const upper = text?.toUpperCase() ?? ''
  const at = RFC_3339.test(upper) ? Date.parse(upper) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}
