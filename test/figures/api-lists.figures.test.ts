// With a hundred thousand events and fifty thousand lanes in a file, each list of the admin API returns in under 100 ms.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { laneId } from '../../src/model/identity.ts'
import { lists } from './api-lists.ts'
import { inFolder } from './folder.ts'

const MOST_MS = 100
const LOAD = { events: 110_000, lanes: 50_000, runs: 40_000, dead: 20_000, alone: 10_000 }

const PATHS = [
  '/v1/events',
  '/v1/events?limit=1000',
  '/v1/events?source=app&type=ping',
  '/v1/events?type=nothing',
  '/v1/events?tenant=tenant-7',
  '/v1/events?tenant=nobody',
  '/v1/events?flow=waits&key=user-7',
  '/v1/events?from=2100-01-01',
  '/v1/events?own=true',
  '/v1/lanes',
  '/v1/lanes?limit=1000',
  '/v1/lanes?flow=waits',
  '/v1/lanes?flow=nothing',
  '/v1/lanes?flow=waits&tenant=tenant-7',
  '/v1/lanes?tenant=nobody',
  '/v1/lanes?flow=waits&key=user-7',
  `/v1/lanes/${laneId('waits', 'user-10007')}`,
  `/v1/lanes/${laneId('waits', 'user-10007')}/explain`,
  '/v1/runs',
  '/v1/runs?limit=1000',
  '/v1/runs?flow=does',
  '/v1/runs?flow=nothing',
  '/v1/runs?tenant=tenant-7',
  '/v1/runs?flow=does&key=batch-27',
  '/v1/runs?flow=each',
  '/v1/dead-letters',
  '/v1/dead-letters?limit=1000',
  '/v1/dead-letters?flow=fails&key=batch-7',
  '/v1/dead-letters?flow=nothing',
  '/v1/dead-letters?kind=unrouted',
  '/v1/dead-letters/count',
  '/v1/dead-letters/export',
  '/v1/dead-letters/reasons',
  '/v1/status',
  '/v1/pulse',
  '/v1/stats?window=1h&step=1m&by=flow',
  '/v1/lanes?order=due',
  '/v1/lanes?state=waiting&q=user-7',
  '/v1/events?q=nothing',
  '/v1/events/histogram?tenant=tenant-7',
  '/v1/replays/plan?type=ping',
  '/v1/flows',
  '/v1/limits',
  '/v1/replays',
  '/v1/sources',
  '/v1/keys',
  '/v1/audit',
]

test('each list returns in under 100 ms', { timeout: 120_000 }, async () => {
  const figures = await inFolder((folder) => lists({ ...LOAD, store: `sqlite:${join(folder, 'lists.db')}` }, PATHS))
  expect(figures.filter(({ status }) => status !== 200)).toEqual([])
  expect(figures.find(({ path }) => path === '/v1/events?limit=1000')?.items).toBe(1_000)
  expect(figures.find(({ path }) => path === '/v1/runs?limit=1000')?.items).toBeGreaterThan(100)
  expect(figures.filter(({ ms }) => ms >= MOST_MS)).toEqual([])
})
