// L20: the permits of a killed process are forgotten, so that asking for permits costs the same after a year of deploys.
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { createRetentionPolicy } from '../conformance/builders.ts'

const HOUR = 3_600_000

test.each(inject('postgresServers'))('L20 $name: permits of killed processes are removed', async ({ url }) => {
  const schema = `permits_${process.pid}`
  const clock = new VirtualClock()
  const store = await openPostgresStore({ url, schema, clock, connections: 2, acceptLoss: true })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(async () => void (await Promise.all([store.close(), client.end()])))
  const rows = async (): Promise<readonly string[]> => {
    const found = await client.query<{ process: string }>(`select process from ${schema}.permits order by process`)
    return found.rows.map((row) => row.process)
  }
  const ask = (process: string, lease: number): Promise<unknown> =>
    store.leasePermits({ process, lease, requests: [{ name: 'flow', want: 1, max: 1_000 }] })
  for (let n = 0; n < 20; n++) await ask(`killed ${n}`, 1_000)
  await ask('live', 2 * HOUR)
  await store.maintain({ budget: 1_000, policy: createRetentionPolicy() })
  expect(await rows()).toHaveLength(21)
  clock.advance(HOUR + 1_000)
  await store.maintain({ budget: 1_000, policy: createRetentionPolicy() })
  expect(await rows()).toEqual(['live'])
})
