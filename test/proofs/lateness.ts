// L5: the index of deadlines is both timer and queue. Measures how late a due lane is served.
import { join } from 'node:path'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { lateness } from '../figures/due-lanes.ts'
import { inFolder } from '../figures/folder.ts'

export const title =
  'At 1,000 due lanes a second on SQLite, p99 from the deadline until the handler is entered is below 10 ms'

const P99_BELOW = 10

export async function run(context: ProofContext): Promise<Figure> {
  context.progress('1,000 lanes a second are published, and as many fall due, for 20 s')
  const figure = await inFolder((folder) =>
    lateness({ perSecond: 1_000, seconds: 20, warmUp: 2, store: `sqlite:${join(folder, 'due.db')}` }),
  )
  return { holds: figure.p99 < P99_BELOW && figure.earliest >= 0, values: { ...figure } }
}
