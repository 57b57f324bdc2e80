// R1 and L12 for the whole engine: a thousand times, a process that publishes and runs is killed while it works on one file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { noCounts, type EngineCounts } from '../engine-kill/counts.ts'
import { livesAndDeaths } from '../engine-kill/lives.ts'

export const title =
  '1,000 `kill -9` of a working process: every acknowledged event ran, and no lane had two live runs at once'

const CYCLES = 1_000
/** What is on a file has to run to its end before the next one: an interrupted proof goes on with the next file. */
const CYCLES_PER_FILE = 100
const SHOWN_EVERY = 20

interface State {
  readonly counts: EngineCounts
  readonly complaints: readonly string[]
  readonly files: number
}

export async function run(context: ProofContext): Promise<Figure> {
  const asked = context.args.find((arg) => arg.startsWith('cycles='))?.slice('cycles='.length)
  const cycles = Number(asked ?? CYCLES)
  if (!Number.isSafeInteger(cycles) || cycles < 1) throw new TypeError(`cycles= takes a whole number, not "${asked}"`)
  let state = context.resume<State>() ?? { counts: noCounts(), complaints: [], files: 0 }
  while (state.counts.cycles < cycles) {
    const before = state.counts.cycles
    const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-engine-'))
    try {
      const report = await livesAndDeaths({
        folder,
        cycles: Math.min(CYCLES_PER_FILE, cycles - before),
        seed: context.seed + state.files,
        progress: (cycle) => {
          if (cycle % SHOWN_EVERY === 0) context.progress((before + cycle) / cycles)
        },
      })
      state = {
        counts: sum(state.counts, report.counts),
        complaints: [...state.complaints, ...report.complaints],
        files: state.files + 1,
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    context.checkpoint(state)
  }
  const { counts, complaints, files } = state
  const holds = counts.lost + counts.overlapping + counts.repeatedAfterDone + counts.wrong === 0
  return { holds, values: { ...counts, files, complaints } }
}

function sum(one: EngineCounts, other: EngineCounts): EngineCounts {
  const total = noCounts()
  for (const name of Object.keys(total) as (keyof EngineCounts)[]) total[name] = one[name] + other[name]
  return total
}
