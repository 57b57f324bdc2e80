// R1 in its short form: a killed process loses nothing that it acknowledged. kill-checker.test.ts shows that the
// checker would notice a loss.
import { expect, it } from 'vitest'
import { inFolder } from '../figures/folder.ts'
import { killCycles } from './kill-cycles.ts'

it('50 killed processes that append and settle lose nothing acknowledged', { timeout: 300_000 }, async () => {
  const { counts, complaints } = await inFolder((folder) => killCycles({ cycles: 50, folder, seed: 20_261_115 }))
  expect(complaints).toEqual([])
  expect(counts).toMatchObject({ cycles: 50, lost: 0, repeatedAfterDone: 0, wrong: 0 })
  // Otherwise the processes would have died while idle.
  expect(counts.ackedAppends).toBeGreaterThan(500)
  expect(counts.ackedSettlements).toBeGreaterThan(200)
  expect(counts.unknownAbsent + counts.unknownPresent).toBeGreaterThan(50)
  expect(counts.sentAgain).toBeGreaterThan(10)
})
