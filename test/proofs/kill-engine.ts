// R1 and L12 for the whole engine: a process that publishes and runs is killed a thousand times while it works on one file.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { noCounts } from '../engine-kill/counts.ts'
import { livesAndDeaths } from '../engine-kill/lives.ts'
import { killProof } from '../kill-proof.ts'

export const title =
  '1,000 `kill -9` of a working process: every acknowledged event ran, and no lane had two live runs at once'

export function run(context: ProofContext): Promise<Figure> {
  return killProof(context, {
    // Everything in a file must run to its end before the next file starts.
    cyclesPerFile: 100,
    shownEvery: 20,
    noCounts,
    offences: ['lost', 'overlapping', 'repeatedAfterDone', 'wrong'],
    kill: livesAndDeaths,
  })
}
