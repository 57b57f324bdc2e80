// The full form of the simulation on SQLite: as many histories as on memory, with a new seed each time.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { simulate } from '../simulation/simulate.ts'
import { opener } from '../simulation/stores.ts'

export const title: string =
  '10,000 random histories on SQLite, with crashes, lapses, lost replies, clock jumps and purges, keep every rule: each reply is the one that the reference model predicts'

const HISTORIES = 10_000
const PIECES = 10

export async function run(context: ProofContext): Promise<Figure> {
  for (let piece = 0; piece < PIECES; piece++) {
    const { violation } = await simulate({
      open: opener('sqlite'),
      runs: HISTORIES / PIECES,
      seed: context.seed + piece,
    })
    if (violation !== undefined) return { holds: false, values: { histories: HISTORIES, violation } }
    context.progress((piece + 1) / PIECES)
  }
  return { holds: true, values: { histories: HISTORIES } }
}
