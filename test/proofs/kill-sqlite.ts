// R1: an acknowledged event is stored. A process is killed a thousand times while it appends and settles on one file.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { killProof } from '../kill-proof.ts'
import { killCycles } from '../sqlite/kill-cycles.ts'
import { noCounts } from '../sqlite/kill-counts.ts'

export const title = '1,000 `kill -9` cycles of an appending and settling process on SQLite lose nothing acknowledged'

export function run(context: ProofContext): Promise<Figure> {
  return killProof(context, {
    // Enough for the file to outgrow the memory that the store uses for it.
    cyclesPerFile: 334,
    shownEvery: 25,
    noCounts,
    offences: ['lost', 'repeatedAfterDone', 'wrong'],
    kill: killCycles,
  })
}
