// The engine survives `kill -9` at any moment: the short form of the proof. checker.faults.test.ts shows that the checker
// would notice otherwise.
import { describe, expect, it } from 'vitest'
import { inFolder } from '../figures/folder.ts'
import { livesAndDeaths, type LivesOptions, type LivesReport } from './lives.ts'

function lives(options: Pick<LivesOptions, 'cycles' | 'named'>): Promise<LivesReport> {
  return inFolder((folder) => livesAndDeaths({ ...options, folder, seed: 20_261_115 }))
}

describe('kill -9 of a working process', { timeout: 300_000 }, () => {
  it('after 30 kills, every acknowledged event has run, and no lane had two runs at once', async () => {
    const { counts, complaints } = await lives({ cycles: 30 })
    expect(complaints).toEqual([])
    expect(counts).toMatchObject({ cycles: 30, lost: 0, overlapping: 0, repeatedAfterDone: 0, wrong: 0 })
    // Otherwise the processes would have died while idle.
    expect(counts.acked).toBeGreaterThan(300)
    expect(counts.done).toBeGreaterThan(300)
    expect(counts.published).toBeGreaterThan(50)
    expect(counts.lapsed).toBeGreaterThan(10)
    expect(counts.resumed).toBeGreaterThan(10)
    expect(counts.resent).toBeGreaterThan(5)
  })

  it('nothing is lost when the next process has the name of the killed one', async () => {
    const { complaints } = await lives({ cycles: 4, named: true })
    expect(complaints).toEqual([])
  })
})
