// The example app WhatsApp assistant in real time on PostgreSQL: each message is answered exactly once while processes are killed.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { conversations } from '../examples/whatsapp-assistant/conversations.ts'
import { startServer } from '../postgres/server.ts'

export const title =
  'WhatsApp assistant with 1,000 conversations of people who type at random, provider retries, four processes on one PostgreSQL whose ' +
  'clocks are off by up to an hour, eight of them killed in the middle of a run: each message is answered exactly once, in order, and an ' +
  'answer is sent again only if its process died between the send and its record'

const PEOPLE = 1_000
const KILLS = 8
const MS = 120_000
/** A process works on so many runs at a time at most. */
const RUNS = 100

export async function run(context: ProofContext): Promise<Figure> {
  const server = await startServer({ version: 18, settings: { max_connections: '200' } })
  try {
    const kills = Array.from({ length: KILLS }, (_, n) => ((n + 1) * MS) / (KILLS + 1))
    const progress = (text: string): void => context.progress(text)
    const values = await conversations({
      store: server.tcpUrl,
      seed: context.seed,
      people: PEOPLE,
      ms: MS,
      kills,
      progress,
    })
    const { unanswered, answeredTwice, mixed, deadLetters, killed, sentAgain } = values
    const wrong = [...unanswered, ...answeredTwice, ...mixed].length + deadLetters
    return { holds: wrong === 0 && killed === KILLS && sentAgain <= KILLS * RUNS, values: { ...values } }
  } finally {
    await server.stop()
  }
}
