// Measures that a failing endpoint delays no other: the same load with and without failing endpoints, alternately, in
// pairs.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fleet, type FleetOptions } from './fleet.ts'
import { median } from './fleet-check.ts'

interface Pair {
  /** In milliseconds, of the healthy endpoints. */
  readonly calm: number
  readonly wild: number
}

export interface PairsReport {
  readonly pairs: readonly Pair[]
  readonly ratio: number
  readonly complaints: readonly string[]
}

export interface PairsOptions extends Pick<FleetOptions, 'folder' | 'events' | 'seed'> {
  readonly pairs: number
  readonly progress?: (part: number) => void
}

/** Twenty events per this many milliseconds, a load that a slow machine handles without a queue. */
const PAUSE = 40
const WARM_UP = 200

export async function fleetPairs({ pairs: count, progress, ...options }: PairsOptions): Promise<PairsReport> {
  const pairs: Pair[] = []
  const complaints: string[] = []
  const compiled = join(options.folder, 'compiled')
  const run = async (name: string, isCalm: boolean): Promise<number> => {
    const folder = join(options.folder, name)
    mkdirSync(folder)
    const report = await fleet({ ...options, folder, compiled, isCalm, kills: 0, pause: PAUSE, warmUp: WARM_UP })
    complaints.push(...report.complaints)
    return report.p99
  }
  for (let at = 0; at < count; at++) {
    // Each variant is first as often as it is second.
    const isCalmFirst = at % 2 === 0
    const first = await run(`${at}-first`, isCalmFirst)
    const second = await run(`${at}-second`, !isCalmFirst)
    pairs.push(isCalmFirst ? { calm: first, wild: second } : { calm: second, wild: first })
    progress?.((at + 1) / count)
  }
  return { pairs, complaints, ratio: median(pairs.map(({ calm, wild }) => wild / calm)) }
}
