// Many processes on one Redis stay consistent when any of them dies, as on PostgreSQL. test/engine-kill tests that the checks detect
// violations.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { storm } from '../../postgres/kill/storm.ts'
import { REDIS_STORM } from './backend.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-storm-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('four workers and two receivers on one Redis', () => {
  it(
    '40 kills, 10 stops beyond the lease, 3 server crashes and 25 lost replies lose and repeat nothing',
    { timeout: 400_000 },
    async () => {
      const { counts, complaints } = await storm({
        folder,
        seed: 20_261_115,
        kills: 40,
        stops: 10,
        crashes: 3,
        cuts: 25,
        backend: REDIS_STORM,
      })
      expect(complaints).toEqual([])
      expect(counts).toMatchObject({ lost: 0, overlapping: 0, repeatedAfterDone: 0, wrong: 0 })
      // The processes did work.
      for (const count of ['acked', 'done', 'published', 'resumed', 'refused'] as const) {
        expect(counts[count], count).toBeGreaterThan(0)
      }
    },
  )
})
