// The full form of the outbox test: fifty thousand events of twelve writers, on a server with durable settings.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { randomFrom } from '../../bench/workload.ts'
import { outboxWriters } from '../postgres/outbox-writers.ts'
import { startServer } from '../postgres/server.ts'

export const title: string =
  'Twelve writers with transactions of random lengths publish 50,000 events through the outbox: none missing, none twice, each routed within 1 s of its commit (p99).'

const WITHIN = 1_000

export async function run(context: ProofContext): Promise<Figure> {
  const server = await startServer({ version: 18 })
  try {
    let shown = 0
    const values = await outboxWriters({
      url: server.url,
      schema: 'sluice',
      writers: 12,
      events: 50_000,
      random: randomFrom(context.seed),
      progress: (part) => {
        if (part - shown < 0.1) return
        shown = part
        context.progress(part)
      },
    })
    const { missing, twice, undone, disordered, routedP99 } = values
    return { holds: missing + twice + undone + disordered === 0 && routedP99 <= WITHIN, values: { ...values } }
  } finally {
    await server.stop()
  }
}
