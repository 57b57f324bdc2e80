// `settingsFrom` reads the settings of the app from variables of the environment. README.md lists them.
import type { Duration } from 'sluice'
import type { Env } from '../kit/example.ts'

export interface Settings {
  /** An alert and event type with so many waiting events is sent at once. */
  readonly maxEventsPerKey: number
  /** In a workspace with more open windows than this, the oldest is sent at once. */
  readonly maxKeysPerWorkspace: number
  /** A window or a notification that is later than this raises an alert. Nothing expires. */
  readonly lateAfter: Duration
}

export function settingsFrom(env: Env): Settings {
  return {
    maxEventsPerKey: count(env, 'MAX_EVENTS_PER_KEY', 5_000),
    maxKeysPerWorkspace: count(env, 'MAX_KEYS_PER_WORKSPACE', 1_000),
    lateAfter: (env['LATE_AFTER'] ?? '2m') as Duration,
  }
}

function count(env: Env, name: string, otherwise: number): number {
  const value = Number(env[name] ?? otherwise)
  if (Number.isInteger(value) && value > 0) return value
  throw new Error(`${name} must be a whole number above 0; got ${env[name]}.`)
}
