// What all flows of the app share.
import type { Clock, RetryOptions, Run, Sluice } from 'sluice'
import type { Connection, HealthRecords } from '../data/records.ts'
import type { Settings } from '../settings.ts'

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

/** A person was connected. */
export const CONNECTED = 'connection.made'
/** A person's connection has ended, at the provider or by a revoked permission. */
export const DISCONNECTED = 'connection.lost'

export interface ConnectionNews {
  readonly provider: Connection['provider']
  readonly externalId: string
  readonly profileId: string
  readonly reason?: string
  /** When an earlier connection of the person ended. */
  readonly since?: number
}

/** Clears the tokens and has the person notified: once for each connection, however often it is attempted. */
export async function disconnect(
  { records }: Parts,
  { publish }: Pick<Run, 'publish'>,
  connection: Connection,
  { at, reason }: { readonly at: number; readonly reason: string },
): Promise<void> {
  const { provider, externalId, profileId, connectedAt } = connection
  // The person has come back since.
  if (at < connectedAt) return
  await records.disconnect(provider, externalId, at)
  const data: ConnectionNews = { provider, externalId, profileId, reason }
  publish({ type: DISCONNECTED, tenant: externalId, data, dedupeId: `lost/${provider}/${externalId}/${connectedAt}` })
}

/** When the last of the events arrived. */
export function lastArrival({ events }: Pick<Run, 'events'>): number {
  return Math.max(...events.map(({ arrived }) => arrived ?? 0))
}
