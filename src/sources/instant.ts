// When it happened, as payloads say it: seconds since 1970, or RFC 3339. What is neither is undefined.
import type { Millis } from '../clock.ts'

const WRITTEN = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:Z|[+-]\d\d:\d\d)$/

export function instantOfSeconds(seconds: string | undefined): Millis | undefined {
  return seconds !== undefined && /^\d{1,11}$/.test(seconds) ? Number(seconds) * 1_000 : undefined
}

export function instantOfText(text: string | undefined): Millis | undefined {
  const upper = text?.toUpperCase() ?? ''
  const at = WRITTEN.test(upper) ? Date.parse(upper) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}
