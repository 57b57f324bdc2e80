// A backfill: a command asks for it, each part is a run, and Garmin pushes the data within hours.
import { defineEvent, drop, snooze } from 'sluice'
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
  /** Requests to Garmin: all, those that were made, those that Garmin or the person refuses, and those that failed. */
  readonly parts: number
  readonly asked: number
  readonly refused: number
  readonly failed: number
  readonly reasons: readonly string[]
  /** Days of a type: those that may come, without refused and failed requests, and those for which data is there. */
  readonly days: number
  readonly arrived: number
}

export function backfillFlow(parts: Parts): void {
  const { app, records } = parts
  const garmin = new GarminApi(parts)

  app.flow('backfill', {
    on: backfillWanted,
    key: ({ tenant, data: { backfill, type, from } }) => `${tenant}/${backfill}/${type}/${from}`,
    // One call of a person at a time, because a token is refreshed once.
    share: 'tenant',
    concurrency: 1,
    retry: retryOf(parts),
    run: async ({ events, tenant, signal }) => {
      const part = events[0]?.data
      // A command that was repeated, or a person who was purged.
      if (part === undefined || !(await isWanted(parts, part))) return drop('The part is not wanted any more.')
      const connection = await records.find('garmin', tenant)
      if (connection?.isConnected !== true) return end(parts, part, 'failed', 'The person is not connected.')
      if (!mayBackfill(part.type, connection.permissions))
        return end(parts, part, 'refused', `The person does not share ${part.type} of the past.`)
      switch (await garmin.backfill(connection, part, signal)) {
        case 'asked':
        case 'asked before':
          await setState(parts, part, 'asked', '')
          return undefined
        case 'refused':
          return end(parts, part, 'refused', `Garmin refuses ${part.type}: the person withholds historical data.`)
        case 'not accepted':
          return end(parts, part, 'failed', 'Garmin does not accept the tokens. The person has to connect again.')
        case 'too often':
          return snooze({ after: '1m' })
      }
    },
  })
}

/** A part that was refused or has failed is asked for again when the backfill is continued. */
async function end(
  parts: Parts,
  part: WantedPart,
  state: 'refused' | 'failed',
  reason: string,
): Promise<ReturnType<typeof drop>> {
  await setState(parts, part, state, reason)
  return drop(reason)
}

async function isWanted({ records }: Parts, { backfill, type, from }: WantedPart): Promise<boolean> {
  const sql = "select 1 from wt_backfills where id = ? and event_type = ? and from_time = ? and state <> 'asked'"
  return (await records.database.rows(sql, [backfill, type, from])).length > 0
}

async function setState({ records }: Parts, part: WantedPart, state: string, reason: string): Promise<void> {
  const sql = 'update wt_backfills set state = ?, reason = ? where id = ? and event_type = ? and from_time = ?'
  await records.database.rows(sql, [state, reason, part.backfill, part.type, part.from])
}

/**
 * Starts a backfill, or continues the one with this id: only parts that Garmin has not accepted are asked for again. Returns why if
 * that is not possible.
 */
export async function wantBackfill(
  { app, records, clock }: Parts,
  { id, profileId, days }: { readonly id: string; readonly profileId: string; readonly days: number },
): Promise<BackfillProgress | 'not connected' | 'of somebody else'> {
  const { database } = records
  const [known] = await database.rows('select profile_id from wt_backfills where id = ?', [id])
  if (known !== undefined && known['profile_id'] !== profileId) return 'of somebody else'
  const connections = await records.connectionsOf(profileId)
  const externalId = connections.find(({ provider }) => provider === 'garmin')?.externalId
  if (externalId === undefined) return 'not connected'
  const now = clock.now()
  // Two first commands of the same minute ask for the same parts.
  const wanted = known === undefined ? backfillParts(days, Math.floor(now / 60_000) * 60) : []
  await database.batch(
    wanted.map(({ type, from, to }) => ({
      sql: `insert into wt_backfills (id, profile_id, external_id, event_type, from_time, to_time, state, reason, asked_at)
            values (?, ?, ?, ?, ?, ?, 'wanted', '', ?) on conflict (id, event_type, from_time) do nothing`,
      values: [id, profileId, externalId, type, from, to, now],
    })),
  )
  const left = await database.rows(
    `update wt_backfills set state = 'wanted', reason = '' where id = ? and state <> 'asked'
     returning event_type, from_time, to_time`,
    [id],
  )
  const events = left.map((row) => {
    const part = { type: String(row['event_type']), from: Number(row['from_time']), to: Number(row['to_time']) }
    return backfillWanted({ backfill: id, ...part }, { tenant: externalId })
  })
  if (events.length > 0) await app.publish(events)
  const progress = await backfillProgress(records, id)
  return progress ?? 'not connected'
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
    if (part['state'] === 'refused' || part['state'] === 'failed') continue
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
    failed: parts.filter(({ state }) => state === 'failed').length,
    reasons: [...new Set(parts.map(({ reason }) => String(reason)).filter((reason) => reason !== ''))],
    days,
    arrived,
  }
}

function dayOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().slice(0, 10)
}
