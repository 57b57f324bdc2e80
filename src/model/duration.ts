// `parseDuration` parses durations as people write them: '250ms', '10s', '5m', '2h', '7d', or a number of milliseconds.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'

export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}` | number

const UNITS: Readonly<Record<string, Millis>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION_PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** `parseDuration` throws for an invalid duration. `option` names the option for the error. */
export function parseDuration(duration: Duration, option: string): Millis {
  if (typeof duration === 'number') {
    if (duration >= 0) return duration
  } else if (typeof duration === 'string') {
    const [, amount, unit] = DURATION_PATTERN.exec(duration) ?? []
    if (amount !== undefined && unit !== undefined) return Number(amount) * (UNITS[unit] ?? 1)
  }
  throw new SluiceError(
    'CONFIG_INVALID',
    `${option} must be a duration like '250ms', '10s' or '7d'; got ${JSON.stringify(duration)}.`,
  )
}
