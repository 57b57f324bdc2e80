// M1 over several processes, at the receiver, in real time: one limit holds while the processes that share it
// through one PostgreSQL stall from time to time.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { RATE, type LimitLoad } from '../figures/limit-load.ts'
import { sharedLimit, type SharedFigure } from '../postgres/limit/shared-limit.ts'
import { startServer } from '../postgres/server.ts'

export const title =
  'A limit of 3 a second over four processes: in a saturating and in a bursty load of five minutes, in which the processes ' +
  'stand still for 2 s in turns, no window of one second at the receiver holds more than 3 calls, and at least 85 % of the ' +
  'allowed calls are made'

const MS = 300_000
const PROCESSES = 4
const STALL = 2_000
const STALL_EVERY = 10_000
const LEAST_SHARE = 0.85

const LOADS: Readonly<Record<string, LimitLoad['demand']>> = {
  saturating: { waiting: 20 },
  bursty: { burst: 12, every: 5_000 },
}

export async function run(context: ProofContext): Promise<Figure> {
  const figures: Record<string, SharedFigure> = {}
  // All loads, or those that are named on the command line; `seconds=` makes them shorter.
  const seconds = context.args.find((arg) => arg.startsWith('seconds='))?.slice('seconds='.length)
  const ms = seconds === undefined ? MS : Number(seconds) * 1_000
  const named = context.args.filter((arg) => arg in LOADS)
  for (const [name, demand] of Object.entries(LOADS).filter(([load]) => named.length === 0 || named.includes(load))) {
    context.progress(`${name}, ${ms / 1_000} s`)
    const server = await startServer({ version: 18 })
    try {
      const times = momentsOf(context.seed, ms)
      const [stalls, stops] = [times.filter((_, n) => n % 2 === 0), times.filter((_, n) => n % 2 === 1)]
      figures[name] = await sharedLimit({
        url: server.url,
        demand,
        ms,
        stall: STALL,
        stalls,
        stops,
        processes: PROCESSES,
      })
    } finally {
      await server.stop()
    }
    context.progress(JSON.stringify(figures[name]))
  }
  const holds = Object.values(figures).every(
    ({ mostInASecond, share, failed }) => mostInASecond <= RATE && share >= LEAST_SHARE && failed === 0,
  )
  const reckoning = 'allowed: what an exact limiter makes of the same demand, no process of which ever stands still'
  return { holds, values: { ...figures, reckoning } }
}

/** About every ten seconds, each time at another moment of the limit's second. */
function momentsOf(seed: number, ms: number): readonly number[] {
  return Array.from(
    { length: Math.floor(ms / STALL_EVERY) },
    (_, n) => n * STALL_EVERY + 3_000 + ((seed + n * 617) % 2_000),
  )
}
