// The lanes bench: how much slower a claim becomes, and how much memory it takes, when a thousand times as many lanes wait.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { spreadOf } from './figures.ts'
import { judge } from './results.ts'
import type { Target, ClaimTimes, LaneGrowth } from './results.ts'
import type { DueOrder } from './sides.ts'

export interface LanePlan {
  readonly rounds: number
  readonly few: number
  readonly many: number
}

const PROBE = fileURLToPath(new URL('./lanes-probe.ts', import.meta.url))
const TARGETS: Readonly<Record<DueOrder, Target>> = {
  arrival: { kind: 'at most', bound: 1.5 },
  random: { kind: 'at most', bound: 5 },
}
const MEMORY_TARGET: Target = { kind: 'at most', bound: 300 }
const ORDERS: readonly DueOrder[] = ['arrival', 'random']

export async function measureLanes(
  folder: string,
  plan: LanePlan,
  progress: (line: string) => void,
): Promise<LaneGrowth> {
  const times: ClaimTimes[] = []
  for (let round = 1; round <= plan.rounds; round += 1) {
    for (const due of ORDERS) {
      for (const lanes of [plan.few, plan.many]) {
        const label = `lanes  round ${round}/${plan.rounds}  ${lanes.toLocaleString('en')} lanes, due by ${due}`
        progress(`${label} …`)
        const found = await runProbe(folder, lanes, due)
        progress(`${label}  ${found.medianMicros.toFixed(0)} µs a claim, ${found.peakMegabytes.toFixed(0)} MB`)
        times.push(found)
      }
    }
  }
  const megabytes = spreadOf(times.filter((one) => one.lanes === plan.many).map((one) => one.peakMegabytes))
  return {
    kind: 'lanes',
    bench: 'lanes',
    times,
    growth: ORDERS.map((due) => growthOf(times, due, plan)),
    // The worst round counts: a limit that holds in most rounds does not hold.
    memory: { megabytes, target: MEMORY_TARGET, verdict: judge(megabytes.most, MEMORY_TARGET) },
  }
}

function growthOf(times: readonly ClaimTimes[], due: DueOrder, plan: LanePlan): LaneGrowth['growth'][number] {
  const micros = (lanes: number): readonly number[] =>
    times.filter((one) => one.due === due && one.lanes === lanes).map((one) => one.medianMicros)
  const few = micros(plan.few)
  const many = micros(plan.many)
  const spread = spreadOf(many.map((time, index) => time / (few[index] ?? Number.NaN)))
  const target = TARGETS[due]
  return { due, lanes: plan.many, micros: spreadOf(many), spread, target, verdict: judge(spread.median, target) }
}

async function runProbe(folder: string, lanes: number, due: DueOrder): Promise<ClaimTimes> {
  const own = await mkdtemp(join(folder, 'lanes-'))
  const running = promisify(execFile)(process.execPath, [PROBE, own, String(lanes), due])
  const kill = (): boolean => running.child.kill()
  process.once('exit', kill)
  try {
    const { stdout } = await running
    return JSON.parse(stdout) as ClaimTimes
  } finally {
    process.off('exit', kill)
    await rm(own, { recursive: true, force: true })
  }
}
