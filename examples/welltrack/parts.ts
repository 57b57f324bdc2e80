// `Parts` is what the flows and routes of the app are built from.
import type { Clock, RetryOptions, Sluice } from 'sluice'
import type { HealthRecords } from './data/records.ts'
import type { Settings } from './settings.ts'

export interface Parts {
  readonly app: Sluice
  readonly settings: Settings
  readonly records: HealthRecords
  readonly clock: Clock
  readonly url: (service: string) => string
}

/** The delays of the settings, to the second. */
export function retryOf({ settings }: Parts): RetryOptions {
  return { delays: settings.retry, jitter: 0 }
}
