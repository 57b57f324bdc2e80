// L20: permits of killed processes are deleted, so that a request for permits costs the same after a year of restarts.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { MemorySmallTables } from '../../src/store/memory/small-tables.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { createRetentionPolicy } from '../conformance/builders.ts'
import { ownFolder } from '../temporary-folder.ts'

const HOUR = 3_600_000

test('permits of killed processes are removed', async () => {
  const file = join(ownFolder(), 'store.db')
  const clock = new VirtualClock()
  const store = await openSqliteStore({ file, clock })
  const looker = new DatabaseSync(file, { readOnly: true })
  onTestFinished(async () => {
    looker.close()
    await store.close()
  })
  const rows = (): readonly unknown[] =>
    looker
      .prepare('select process from permits order by process')
      .all()
      .map((row) => row['process'])
  const ask = (process: string, lease: number): Promise<unknown> =>
    store.leasePermits({ process, lease, requests: [{ name: 'flow', want: 1, max: 1_000 }] })
  for (let n = 0; n < 20; n++) await ask(`killed ${n}`, 1_000)
  await ask('live', 2 * HOUR)
  await store.maintain({ budget: 1_000, policy: createRetentionPolicy() })
  expect(rows()).toHaveLength(21)
  clock.advance(HOUR + 1_000)
  await store.maintain({ budget: 1_000, policy: createRetentionPolicy() })
  expect(rows()).toEqual(['live'])
})

test('the same holds in memory', () => {
  const small = new MemorySmallTables()
  small.putPermit('flow', 'killed', { n: 1, until: 1_000 })
  small.putPermit('flow', 'live', { n: 1, until: 1_001 })
  small.putPermit('gone', 'killed', { n: 1, until: 1_000 })
  small.forgetPermits(1_000)
  expect(small.findPermits('flow').map(({ process }) => process)).toEqual(['live'])
  expect(small.findPermits('gone')).toEqual([])
})
