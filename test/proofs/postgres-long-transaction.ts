// Vacuum on PostgreSQL: another client's open transaction keeps dead rows from being removed. A claim that had to skip them
// would get slower with every run.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { longTransaction } from '../postgres/long-transaction.ts'
import { startServer } from '../postgres/server.ts'

export const title: string =
  'A transaction held open for 100 s beside 400 runs a second on one PostgreSQL: the p99 of claims is at most twice that ' +
  'without it, the alert is raised within 60 s, and within 60 s of its end it is cleared and the p99 is normal'

const RATE = 400
/** The share of the runs that are due in each part. */
const LEAST_RATE = 0.98
const MOST_SLOWER = 2
const WITHIN = 60_000

export async function run(context: ProofContext): Promise<Figure> {
  // `before=`, `held=` and `after=`, in seconds, make it shorter.
  const part = (name: string, usual: number): number => {
    const said = context.args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1)
    return Number(said ?? usual) * 1_000
  }
  const server = await startServer({ version: 18 })
  try {
    const values = await longTransaction({
      url: server.url,
      rate: RATE,
      warmUp: 10_000,
      before: part('before', 60),
      held: part('held', 100),
      after: part('after', 60),
      progress: (what) => context.progress(what),
    })
    const { before, held, after, raisedAfter, clearedAfter, backAfter } = values
    const slower = held.p99 / before.p99
    const isInTime = [raisedAfter, clearedAfter, backAfter].every((ms) => ms !== undefined && ms <= WITHIN)
    const isAtWork = [before, held, after].every(({ runsPerSecond }) => runsPerSecond >= LEAST_RATE * RATE)
    return { holds: isAtWork && isInTime && slower <= MOST_SLOWER, values: { slower, ...values } }
  } finally {
    await server.stop()
  }
}
