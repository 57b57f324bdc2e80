// A backfill: a command asks for it, each part is a run, and Garmin pushes the data within hours.
import { defineEvent, drop, retry, snooze } from 'sluice'
import { backfillParts, type BackfillPart } from '../domain/backfill.ts'
import { mayBackfill } from '../domain/permissions.ts'
import { GarminApi } from '../garmin-api.ts'
import { retryOf, type Parts } from '../parts.ts'

interface WantedPart extends BackfillPart {
  readonly backfill: string
}

const backfillWanted = defineEvent<WantedPart>('backfill.wanted')

export interface BackfillProgress {
  readonly id: string
  readonly profileId: string
  /** Requests to Garmin: all, those that were made, and those that Garmin or the person refuses. */
  readonly parts: number
  readonly asked: number
  readonly refused: number
  readonly reasons: readonly string[]
  /** Days of a type: those that were asked for, and those for which data is there. */
  readonly days: number
  readonly arrived: number
}

export function backfillFlow(parts: Parts): void {
  const { app, records, settings, url } = parts
  const garmin = new GarminApi(app, url('garmin'), settings.garmin)

  app.flow('backfill', {
    on: backfillWanted,
    key: ({ tenant, data: { backfill, type, from } }) => `${tenant}/${backfill}/${type}/${from}`,
    share: 'tenant',
    retry: retryOf(parts),
    run: async ({ events, tenant, signal }) => {
      const part = events[0]?.data
      if (part === undefined) return drop('The event was purged.')
      const connection = await records.find('garmin', tenant)
      const why =
        connection?.isConnected !== true || connection.tokens === undefined
          ? 'The person is not connected.'
          : mayBackfill(part.type, connection.permissions)
            ? undefined
            : `The person does not share ${part.type} of the past.`
      if (connection?.tokens === undefined || why !== undefined) return refuse(parts, part, why ?? '')
      const result = await garmin.backfill(part, connection.tokens.access, signal)
      switch (result) {
        case 'asked':
        case 'asked before':
          await setState(parts, part, 'asked', '')
          return undefined
        case 'refused':
          return refuse(parts, part, `Garmin refuses ${part.type}: the person withholds historical data.`)
        case 'not accepted':
          await setState(parts, part, 'failed', 'Garmin does not accept the token. The person has to connect again.')
          return retry({ reason: 'Garmin does not accept the token.' })
        case 'too often':
          return snooze({ after: '1m' })
      }
    },
  })
}

async function refuse(parts: Parts, part: WantedPart, reason: string): Promise<ReturnType<typeof drop>> {
  await setState(parts, part, 'refused', reason)
  return drop(reason)
}

async function setState({ records }: Parts, part: WantedPart, state: string, reason: string): Promise<void> {
  const sql = 'update wt_backfills set state = ?, reason = ? where id = ? and event_type = ? and from_time = ?'
  await records.database.rows(sql, [state, reason, part.backfill, part.type, part.from])
}

/** Starts a backfill, or continues the one with this id: parts that Garmin has accepted are not asked for again. */
export async function wantBackfill(
  { app, records, clock }: Parts,
  { id, profileId, days }: { readonly id: string; readonly profileId: string; readonly days: number },
): Promise<BackfillProgress | undefined> {
  const connections = await records.connectionsOf(profileId)
  const externalId = connections.find(({ provider }) => provider === 'garmin')?.externalId
  if (externalId === undefined) return undefined
  const now = clock.now()
  const { database } = records
  const known = await database.rows('select 1 from wt_backfills where id = ?', [id])
  const wanted = known.length > 0 ? [] : backfillParts(days, Math.floor(now / 1_000))
  await database.batch(
    wanted.map(({ type, from, to }) => ({
      sql: `insert into wt_backfills (id, profile_id, external_id, event_type, from_time, to_time, state, reason, asked_at)
            values (?, ?, ?, ?, ?, ?, 'wanted', '', ?) on conflict (id, event_type, from_time) do nothing`,
      values: [id, profileId, externalId, type, from, to, now],
    })),
  )
  const left = await database.rows(
    "select event_type, from_time, to_time, external_id from wt_backfills where id = ? and state in ('wanted', 'failed')",
    [id],
  )
  const events = left.map((row) => {
    const [type, from, to] = [String(row['event_type']), Number(row['from_time']), Number(row['to_time'])]
    // A second command within the minute asks for nothing twice.
    const dedupeId = `${id}/${type}/${from}/${Math.floor(now / 60_000)}`
    return backfillWanted({ backfill: id, type, from, to }, { tenant: String(row['external_id']), dedupeId })
  })
  if (events.length > 0) await app.publish(events)
  return backfillProgress(records, id)
}

export async function backfillProgress(
  { database }: Parts['records'],
  id: string,
): Promise<BackfillProgress | undefined> {
  const parts = await database.rows('select * from wt_backfills where id = ?', [id])
  const [first] = parts
  if (first === undefined) return undefined
  let [days, arrived] = [0, 0]
  for (const part of parts) {
    if (part['state'] === 'refused') continue
    const [from, to] = [Number(part['from_time']), Number(part['to_time'])]
    days += Math.ceil((to - from) / 86_400)
    const [row] = await database.rows(
      `select count(distinct item_date) as n from wt_health_items
       where provider = 'garmin' and external_id = ? and event_type = ? and item_date > ? and item_date <= ?`,
      [String(part['external_id']), String(part['event_type']), dayOf(from), dayOf(to)],
    )
    arrived += Number(row?.['n'] ?? 0)
  }
  return {
    id,
    profileId: String(first['profile_id']),
    parts: parts.length,
    asked: parts.filter(({ state }) => state === 'asked').length,
    refused: parts.filter(({ state }) => state === 'refused').length,
    reasons: [...new Set(parts.map(({ reason }) => String(reason)).filter((reason) => reason !== ''))],
    days,
    arrived,
  }
}

function dayOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().slice(0, 10)
}
