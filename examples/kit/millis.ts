// `millisOf` returns a duration of a setting in milliseconds, e.g. 90,000 for '90s'.
import type { Duration, Millis } from 'sluice'

const UNITS: Readonly<Record<string, Millis>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export function millisOf(duration: Duration): Millis {
  const [, n, unit = ''] = /^(\d+)(ms|s|m|h|d)$/.exec(String(duration)) ?? []
  return Number(n) * (UNITS[unit] ?? Number.NaN)
}
