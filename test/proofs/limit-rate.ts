// M1 at the receiver, in real time: the limit holds although the event loop of the sender stalls.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { inFolder } from '../figures/folder.ts'
import { RATE, underLimit, type LimitFigure, type LimitLoad } from '../figures/limit-load.ts'

export const title =
  'A limit of 3 a second: in a saturating and in a bursty load of two minutes with event-loop stalls of 2 s, no window ' +
  'of one second at the receiver holds more than 3 calls, and at least 85 % of the allowed calls are made'

const MS = 120_000
const STALL = 2_000
const STALL_EVERY = 10_000
const LEAST_SHARE = 0.85

const LOADS: Readonly<Record<string, LimitLoad['demand']>> = {
  /** All calls find a slot within the limit's `maxWait`. */
  saturating: { waiting: 20 },
  /** Few calls find a slot: the others are deferred and run later (M6). */
  flooded: { burst: 1, every: 10 },
  bursty: { burst: 12, every: 5_000 },
}

export async function run(context: ProofContext): Promise<Figure> {
  const figures: Record<string, LimitFigure> = {}
  // All loads, or those that are named on the command line.
  const asked = Object.entries(LOADS).filter(([name]) => context.args.length === 0 || context.args.includes(name))
  for (const [name, demand] of asked) {
    context.progress(`${name}, ${MS / 1_000} s`)
    const load = { demand, ms: MS, stalls: stalls(context.seed), stall: STALL }
    figures[name] = await inFolder((folder) => underLimit({ ...load, folder }))
    context.progress(JSON.stringify(figures[name]))
  }
  const holds = Object.values(figures).every(
    ({ mostInASecond, share, failed }) => mostInASecond <= RATE && share >= LEAST_SHARE && failed === 0,
  )
  const reckoning = 'allowed: what an exact limiter makes of the same demand while the event loop is not blocked'
  return { holds, values: { ...figures, reckoning } }
}

/** About every ten seconds, each time at another moment of the limit's second. */
function stalls(seed: number): readonly number[] {
  return Array.from({ length: MS / STALL_EVERY }, (_, n) => n * STALL_EVERY + 3_000 + ((seed + n * 617) % 2_000))
}
