// The short fleet test: 2,000 events to twenty endpoints with all behaviours while workers are killed; and the checks
// find planted faults. test/figures measures that a failing endpoint delays no other.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { fleet, type FleetOptions, type FleetReport } from './fleet.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function sailed(options: Pick<FleetOptions, 'events' | 'kills' | 'meddle'>): Promise<FleetReport> {
  const places = { folder: mkdtempSync(join(folder, 'f-')), compiled: join(folder, 'compiled') }
  return fleet({ ...places, ...options, seed: 20_261_116 })
}

test(
  'every endpoint got its events in order, once if it responded, or a dead letter has the reason',
  { timeout: 60_000 },
  async () => {
    const { complaints, counts } = await sailed({ events: 2_000, kills: 2 })
    expect(complaints).toEqual([])
    // Proves that workers were killed.
    expect(counts.kills).toBe(2)
    expect(counts.posts).toBeGreaterThan(500)
    expect(counts.refused).toBeGreaterThan(10)
    expect(counts.cutOff).toBeGreaterThan(3)
    expect(counts.repeated).toBeGreaterThan(2)
    expect(counts.deadLetters).toBe(3)
    console.log(JSON.stringify(counts))
  },
)

test('the checks find removed log entries', { timeout: 60_000 }, async () => {
  const { complaints } = await sailed({
    events: 200,
    kills: 0,
    meddle: (posts) => posts.filter((_, at) => at % 20 !== 5),
  })
  expect(complaints.join('\n')).toContain('is missing')
})
