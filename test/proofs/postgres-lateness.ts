// L5 on PostgreSQL: measures how late a due lane is served, including the round trip to the server.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { lateness } from '../figures/due-lanes.ts'
import { startServer } from '../postgres/server.ts'

export const title =
  'At 1,000 due lanes a second on PostgreSQL, p99 from the deadline until the handler is entered is below 10 ms'

const P99_BELOW = 10

export async function run(context: ProofContext): Promise<Figure> {
  const server = await startServer({ version: 18 })
  try {
    context.progress('1,000 lanes a second are published, and as many fall due, for 20 s')
    const figure = await lateness({ perSecond: 1_000, seconds: 20, warmUp: 4, store: server.url })
    return { holds: figure.p99 < P99_BELOW && figure.earliest >= 0, values: { ...figure } }
  } finally {
    await server.stop()
  }
}
