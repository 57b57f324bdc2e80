// What protects a person's data in the app's own tables.
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDatabase } from '../../kit/database.ts'
import { openPlace, type StorePlace } from '../../kit/postgres.ts'
import { HealthRecords, type Connection } from '../data/records.ts'
import { DATABASE } from '../data/schema.ts'
import { Vault } from '../data/vault.ts'
import { mapGarmin } from '../domain/garmin.ts'
import { dailies } from '../stand-in/payloads.ts'

const [ONE, OTHER] = ['b25l', 'b3RoZXI='] as const
let place: StorePlace

beforeAll(async () => {
  place = await openPlace(process.env['DATABASE_URL'] ?? 'postgres')
})
afterAll(() => place.close())

async function keep(records: HealthRecords, person: string): Promise<Connection> {
  const tokens = { access: 'the access token', refresh: 'the refresh token', expiresAt: 1 }
  const made = { provider: 'garmin', externalId: `g-${person}`, profileId: person, tokens, metadata: {} } as const
  await records.connect(made, 1)
  const connection = await records.find('garmin', made.externalId)
  if (connection === undefined) throw new Error('The connection was not kept.')
  const raw = JSON.stringify(dailies())
  await records.save(
    { connection, item: 'i1', type: 'dailies', version: 5, event: 'e5', raw },
    mapGarmin('dailies', dailies()),
  )
  return connection
}

it('keeps tokens and payloads encrypted, and an older version replaces no newer one', async () => {
  const records = new HealthRecords(openDatabase('memory:', DATABASE), new Vault(ONE))
  const connection = await keep(records, 'ada')
  expect(connection.tokens?.access).toBe('the access token')
  const kept = async (): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    records.database.rows('select * from wt_health_metrics order by metric_type')
  const all = JSON.stringify([await kept(), await records.database.rows('select * from wt_health_connections')])
  expect(all).not.toMatch(/the access token|the refresh token|activityType/)
  const [first] = await records.database.rows('select * from wt_health_metrics')
  expect(first === undefined ? undefined : records.raw(first)).toEqual(dailies())
  const older = mapGarmin('dailies', { ...dailies(), steps: 1 })
  await records.save({ connection, item: 'i1', type: 'dailies', version: 4, event: 'e4', raw: '{}' }, older)
  expect((await kept()).map((row) => row['value_num'])).toEqual([512, 6_320.5, 54, 8_412])
  await records.save({ connection, item: 'i1', type: 'dailies', version: 6, event: 'e6', raw: '{}' }, older)
  expect((await kept()).map((row) => row['value_num'])).toEqual([512, 6_320.5, 54, 1])
})

it('decrypts with an older key, and only where the text belongs', () => {
  const text = new Vault(ONE).encrypt('secret', 'here')
  expect(new Vault(`${OTHER},${ONE}`).decrypt(text, 'here')).toBe('secret')
  expect(() => new Vault(ONE).decrypt(text, 'there')).toThrow('No key')
  expect(() => new Vault(OTHER).decrypt(text, 'here')).toThrow('No key')
})

it('shows another role on PostgreSQL only the metrics of the profile that its session names', async () => {
  const records = new HealthRecords(
    openDatabase(`${place.store}${place.store.includes('?') ? '&' : '?'}schema=rls`, DATABASE),
    new Vault(ONE),
  )
  await keep(records, 'ada')
  await keep(records, 'ben')
  const backfill = "insert into wt_backfills values ('b', 'ada', 'g-ada', 'sleeps', 0, 1, 'wanted', '', 1)"
  await records.database.rows(backfill)
  const client = new Client({ connectionString: place.store })
  await client.connect()
  try {
    const role = `reader_${process.pid}`
    await client.query(`create role ${role}; grant usage on schema welltrack_rls to ${role};
      grant select on all tables in schema welltrack_rls to ${role}; set role ${role}; set search_path = welltrack_rls`)
    const seen = async (table: string): Promise<readonly unknown[]> =>
      (await client.query<{ profile_id: string }>(`select distinct profile_id from ${table}`)).rows
    expect(await seen('wt_health_metrics')).toEqual([])
    await client.query("set welltrack.profile_id = 'ada'")
    expect(await seen('wt_health_metrics')).toEqual([{ profile_id: 'ada' }])
    for (const table of ['wt_health_connections', 'wt_health_items', 'wt_backfills'])
      expect((await client.query(`select * from ${table}`)).rows, table).toEqual([])
    await expect(client.query("update wt_health_metrics set value_num = 0 where profile_id = 'ada'")).rejects.toThrow(
      'permission denied',
    )
    await client.query(`reset role; drop owned by ${role}; drop role ${role}`)
  } finally {
    await client.end()
  }
})
