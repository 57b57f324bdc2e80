// The events of connections: a person connects, or a connection ends.
import { defineEvent, type Run } from 'sluice'
import type { Connection } from '../data/records.ts'
import type { Parts } from '../parts.ts'

export interface ConnectionNews {
  readonly provider: Connection['provider']
  readonly externalId: string
  readonly profileId: string
  readonly reason?: string
  /** When an earlier connection of the person ended. */
  readonly since?: number
}

/** A person was connected. The id is the same when a connected person is connected once more. */
export const connectionMade = defineEvent<ConnectionNews & { readonly id: string }>('connection.made')
/** A person's connection has ended, at the provider or by a revoked permission. */
export const connectionLost = defineEvent<ConnectionNews>('connection.lost')

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
  const dedupeId = `lost/${provider}/${externalId}/${connectedAt}`
  publish(connectionLost({ provider, externalId, profileId, reason }, { tenant: externalId, dedupeId }))
}

/** When the last of the events arrived. */
export function lastArrival({ events }: Pick<Run, 'events'>): number {
  return Math.max(...events.map(({ arrived }) => arrived ?? 0))
}
