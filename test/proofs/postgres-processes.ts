// R1, L1 and L12 for many processes on one PostgreSQL: kills and stalls lose no acknowledged event, and no
// lane has two live runs.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { killProof } from '../kill-proof.ts'
import { noCounts, storm } from '../postgres/kill/storm.ts'

export const title =
  'Four workers and two receivers on one PostgreSQL, 1,000 `kill -9` of workers, 200 stops past a lease of 1 s, 20 kills ' +
  'of the server, 500 answers cut off after COMMIT: nothing acknowledged is lost, no lane has two live runs, every stale ' +
  'settlement is refused'

export function run(context: ProofContext): Promise<Figure> {
  return killProof(context, {
    // Everything on a server must run to its end before the next server starts.
    cyclesPerFile: 100,
    shownEvery: 20,
    noCounts: () => ({ ...noCounts() }),
    offences: ['lost', 'overlapping', 'repeatedAfterDone', 'wrong'],
    kill: ({ cycles, ...kills }) =>
      storm({
        ...kills,
        kills: cycles,
        stops: Math.ceil(cycles / 5),
        crashes: Math.ceil(cycles / 50),
        cuts: Math.ceil(cycles / 2),
      }),
  })
}
