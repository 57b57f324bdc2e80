// The example app WhatsApp assistant in real time on PostgreSQL: each message is answered exactly once while processes are killed.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { conversations } from '../examples/whatsapp-assistant/conversations.ts'
import { wrongs } from '../examples/whatsapp-assistant/judge.ts'
import { startServer } from '../postgres/server.ts'

export const title =
  'WhatsApp assistant with 1,000 conversations of people who type at random, provider retries, failures that are reported late, responses ' +
  'that come too late, four processes on one PostgreSQL whose clocks are off by up to an hour, eight of them killed in the middle of a run: ' +
  'each message is answered exactly once, in order, to the person who wrote it, and an answer is sent again, with the same text, only if its ' +
  'process was killed before it recorded that, or if the provider did not say in time that it had accepted it'

const PEOPLE = 1_000
const KILLS = 8
const MS = 120_000

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
    const { deadLetters, killed, failedLate, sentAgainAfterTimeout } = values
    const wasPlayed = killed === KILLS && failedLate > 0 && sentAgainAfterTimeout > 0
    return { holds: wasPlayed && deadLetters === 0 && wrongs(values).length === 0, values: { ...values } }
  } finally {
    await server.stop()
  }
}
