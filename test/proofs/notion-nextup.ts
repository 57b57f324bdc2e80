// The example app NextUp in real time on PostgreSQL: its guarantees hold while processes are killed.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { stress } from '../examples/notion-nextup/stress.ts'
import { startServer } from '../postgres/server.ts'

export const title =
  'Notion NextUp with 200 users who edit in random bursts for three minutes, four processes on one PostgreSQL, one of them ' +
  "killed twice and another once, two of these times in the middle of a run: every user's last edit is reflected in the tasks, no user runs twice at once, users start in the order " +
  'in which they became ready, and no window of one second at the stand-in for Notion holds more than 3 calls'

const MS = 180_000

export async function run(context: ProofContext): Promise<Figure> {
  // `seconds=` makes it shorter, `users=` smaller.
  const said = (name: string): string | undefined =>
    context.args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1)
  const ms = said('seconds') === undefined ? MS : Number(said('seconds')) * 1_000
  const server = await startServer({ version: 18 })
  try {
    const values = await stress({
      store: server.url,
      seed: context.seed,
      processes: 4,
      users: Number(said('users') ?? 200),
      ms,
      mostBursts: 3,
      kills: [ms / 3, (ms * 2) / 3],
      drain: 600_000,
      numbers: { lease: 6_000, debounce: { from: 10_000, to: 60_000, page: 5_000 } },
      progress: (text) => context.progress(text),
    })
    const { overlaps, inversions, stillWaiting, deadLetters, cutOff, killed, mostInASecond, closestHanded } = values
    const none = [overlaps, inversions, stillWaiting, deadLetters, values.unranked.length]
    const isLimited = mostInASecond <= 3 && closestHanded >= 1_000
    return {
      holds: none.every((n) => n === 0) && cutOff >= 2 && killed.length === 3 && isLimited,
      values: { ...values },
    }
  } finally {
    await server.stop()
  }
}
