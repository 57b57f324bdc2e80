// The flows of Garmin: items become metrics, and people leave or change what they share.
import { drop, partial, PermanentError, type Ending, type FlowEvent, type Run } from 'sluice'
import { GARMIN_TYPES, mapGarmin } from '../domain/garmin.ts'
import { isRecord, MalformedError } from '../domain/metric.ts'
import { maySend, parsePermissions } from '../domain/permissions.ts'
import { retryOf, type Parts } from '../parts.ts'
import { disconnect, lastArrival } from './connection-events.ts'

export function garminFlows(parts: Parts): void {
  const { app, records } = parts

  app.flow('garmin-metrics', {
    on: GARMIN_TYPES.map((type) => `garmin/${type}`),
    // A lane per item: its versions stay in order, and a bad item holds up no other one of the person.
    key: (event) => itemKey(event) ?? event.id,
    retry: retryOf(parts),
    keep: '90d',
    share: 'tenant',
    run: (run) => saveItems(parts, run),
  })

  app.flow('garmin-deregistration', {
    on: 'garmin/deregistrations',
    key: (event) => event.tenant,
    retry: retryOf(parts),
    run: async (run) => {
      const connection = await records.find('garmin', run.tenant)
      if (connection === undefined) return drop('unknown person')
      const reason = 'The person disconnected at Garmin.'
      await disconnect(parts, run, connection, { at: lastArrival(run), reason })
      return undefined
    },
  })

  app.flow('garmin-permissions', {
    on: 'garmin/userPermissionsChange',
    key: (event) => event.tenant,
    retry: retryOf(parts),
    run: async ({ events, tenant }) => {
      const connection = await records.find('garmin', tenant)
      if (connection === undefined) return drop('unknown person')
      const changes = events.flatMap(({ data }) => (isRecord(data) ? [data] : []))
      const newest = changes.toSorted((one, other) => changedAt(one) - changedAt(other)).at(-1)
      const permissions = parsePermissions(newest?.['permissions'])
      if (newest === undefined || permissions === undefined)
        throw new PermanentError('The change has no list of permissions.')
      // Changes may arrive in another order than they happened.
      if (changedAt(newest) < changedAt(connection.metadata)) return drop('a newer change is known')
      const { metadata } = connection
      const changeTimeInSeconds = changedAt(newest)
      await records.setMetadata(connection, { ...metadata, permissions, changeTimeInSeconds })
      return undefined
    },
  })
}

function changedAt(change: Readonly<Record<string, unknown>>): number {
  return Number(change['changeTimeInSeconds'] ?? 0)
}

function itemKey({ tenant, type, data }: FlowEvent): string | undefined {
  const item = isRecord(data) ? data['summaryId'] : undefined
  return tenant === undefined || typeof item !== 'string' || item === '' ? undefined : `${tenant}/${type}/${item}`
}

async function saveItems({ records }: Parts, run: Run): Promise<Ending | undefined> {
  const connection = await records.find('garmin', run.tenant)
  if (run.tenant === undefined) throw new PermanentError('The item has no userId.')
  // The events stay stored. They are replayed when the person connects.
  if (connection === undefined) return drop('unknown person')
  if (!connection.isConnected) return drop('the person is not connected')
  const failed: { id: string; reason: string; permanent: boolean }[] = []
  for (const event of run.events) {
    const reason = await saveItem(event).catch((error: unknown) => {
      if (error instanceof MalformedError) return error.message
      throw error
    })
    if (reason !== undefined) failed.push({ id: event.id, reason, permanent: true })
  }
  if (failed.length === 0) return undefined
  if (failed.length === run.events.length) throw new PermanentError(failed.map(({ reason }) => reason).join(' '))
  return partial({ failed })

  /** Returns why it cannot be saved, now or later. */
  async function saveItem(event: FlowEvent): Promise<string | undefined> {
    if (connection === undefined) return undefined
    const item = itemKey(event)
    if (item === undefined)
      return isRecord(event.data) && event.data['callbackURL'] !== undefined
        ? "The item is a ping, which has no data. Choose push for its type in Garmin's endpoint tool."
        : 'The item has no summaryId.'
    if (!maySend(event.type, connection.permissions)) {
      run.count('withheld')
      return undefined
    }
    const mapped = mapGarmin(event.type, event.data)
    if (mapped.missing.length > 0) {
      run.count('missing', mapped.missing.length)
      run.log.info('took what is there', { event: event.id, missing: mapped.missing })
    }
    const { id, type, arrived = 0, text: raw } = event
    await records.save({ connection, item, type, version: arrived, event: id, raw }, mapped)
    run.count('metrics', mapped.metrics.length)
    return undefined
  }
}
