// R2 from the socket to the store: a server that receives webhooks over 64 connections is killed a thousand times.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { kills, noCounts } from '../http-kill/kills.ts'
import { killProof } from '../kill-proof.ts'

export const title =
  '1,000 `kill -9` of a server under 64 connections: every webhook that was answered 2xx is stored, once, as it was sent'

export function run(context: ProofContext): Promise<Figure> {
  return killProof(context, {
    // What is known of each webhook is in memory, and the whole file is read at the end.
    cyclesPerFile: 100,
    shownEvery: 20,
    noCounts: () => ({ ...noCounts() }),
    offences: ['lost', 'twice', 'wrong'],
    kill: kills,
  })
}
