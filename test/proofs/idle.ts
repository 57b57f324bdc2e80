// L5: a process sleeps until the next deadline. Lanes that wait for an hour cost nothing until then.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { inFolder, rounded } from '../figures/folder.ts'
import { idle } from '../figures/idle-cpu.ts'

export const title = 'An idle engine uses under 1 % of a core, and 100,000 waiting lanes change nothing in that'

const LANES = 100_000
const MOST = 0.01
/** Zero, within the accuracy of a measurement of ten seconds. */
const NOTHING = 0.0025

const percent = (share: number): number => rounded(share * 100)

export async function run(context: ProofContext): Promise<Figure> {
  context.progress('empty, then filled, then full')
  const { empty, waiting, lanes } = await inFolder((folder) =>
    idle({ lanes: LANES, ms: 10_000, settle: 3_000, folder }),
  )
  const holds = empty < MOST && waiting < MOST && waiting - empty < NOTHING && lanes === LANES
  return { holds, values: { percentOfACoreEmpty: percent(empty), percentOfACoreWaiting: percent(waiting), lanes } }
}
