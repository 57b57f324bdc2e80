// Runs the sides in turn, round after round, so that disturbances of the machine affect both of them.
import { spreadOf } from './figures.ts'
import { judge } from './results.ts'
import type { Target, ComparedBench, Comparison, Ratio, Round } from './results.ts'
import type { Measurement, Side, StoreName } from './sides.ts'
import { appendWork, drainWork } from './workload.ts'
import type { LaneSharing } from './workload.ts'

export interface Contenders {
  /** The side that is judged. */
  readonly subject: Side | undefined
  readonly peer: Side
}

export interface RoundPlan {
  readonly rounds: number
  readonly appendSeconds: number
  readonly laneSharing: LaneSharing
  readonly drainCount: number
  readonly store: StoreName
}

const TARGETS: Readonly<Record<StoreName, Readonly<Record<ComparedBench, Target>>>> = {
  sqlite: { append: { kind: 'at least', bound: 1.7, goal: 2 }, drain: { kind: 'at least', bound: 1.5 } },
  postgres: { append: { kind: 'at least', bound: 1.4 }, drain: { kind: 'at least', bound: 0.6, goal: 1 } },
}
// A warm-up compiles the code and fills the caches of both sides; it is not counted.
const WARM_UP = 0
const WARM_UP_PART = 0.2

export async function compare(
  bench: ComparedBench,
  contenders: Contenders,
  plan: RoundPlan,
  progress: (line: string) => void,
): Promise<Comparison> {
  const sides = [contenders.subject, contenders.peer].filter((side) => side !== undefined)
  const rounds: Round[] = []
  for (let round = WARM_UP; round <= plan.rounds; round += 1) {
    for (const side of sides) {
      const label = `${bench}  ${round === WARM_UP ? 'warm-up' : `round ${round}/${plan.rounds}`}  ${side.name}`
      progress(`${label} …`)
      const measurement = await measure(bench, side, plan, round)
      progress(`${label}  ${Math.round(perSecond(measurement)).toLocaleString('en')}/s`)
      if (round !== WARM_UP) rounds.push({ side: side.name, round, measurement })
    }
  }
  const ratio = ratioOf(rounds, contenders, TARGETS[plan.store][bench])
  return {
    kind: 'comparison',
    bench,
    rounds,
    rates: sides.map((side) => ({ side: side.name, perSecond: spreadOf(ratesOf(rounds, side)) })),
    ...(ratio === undefined ? {} : { ratio }),
  }
}

/** In one round all sides get the same work; the next round has other keys. */
async function measure(bench: ComparedBench, side: Side, plan: RoundPlan, round: number): Promise<Measurement> {
  const part = round === WARM_UP ? WARM_UP_PART : 1
  try {
    switch (bench) {
      case 'append':
        return await side.append(appendWork(plan.appendSeconds * part, round, plan.laneSharing))
      case 'drain':
        return await side.drain(drainWork(Math.ceil(plan.drainCount * part)))
    }
  } catch (error) {
    throw new Error(`${side.name} failed in ${bench}.`, { cause: error })
  }
}

function ratioOf(rounds: readonly Round[], { subject, peer }: Contenders, target: Target): Ratio | undefined {
  if (subject === undefined) return undefined
  const peerRates = ratesOf(rounds, peer)
  const spread = spreadOf(ratesOf(rounds, subject).map((rate, index) => rate / (peerRates[index] ?? Number.NaN)))
  return { spread, target, verdict: judge(spread.median, target) }
}

function ratesOf(rounds: readonly Round[], side: Side): readonly number[] {
  return rounds.filter((round) => round.side === side.name).map((round) => perSecond(round.measurement))
}

function perSecond({ count, millis }: Measurement): number {
  return (count / millis) * 1000
}
