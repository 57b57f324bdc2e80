// R1: an acknowledgement means stored. A thousand times, a process is killed while it appends and settles on one file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { killCycles } from '../sqlite/kill-cycles.ts'
import { noCounts, type KillCounts } from '../sqlite/kill-counts.ts'

export const title = '1,000 `kill -9` cycles of an appending and settling process on SQLite lose nothing acknowledged'

const CYCLES = 1_000
/** Enough for the file to outgrow what the store keeps in memory of it; an interrupted run goes on with the next file. */
const CYCLES_PER_FILE = 334
const SHOWN_EVERY = 25

interface State {
  readonly counts: KillCounts
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
    const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-'))
    try {
      const report = await killCycles({
        folder,
        cycles: Math.min(CYCLES_PER_FILE, cycles - before),
        seed: context.seed + state.files,
        between: (_, cycle) => {
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
  const holds = counts.lost + counts.repeatedAfterDone + counts.wrong === 0
  return { holds, values: { ...counts, files, complaints } }
}

function sum(one: KillCounts, other: KillCounts): KillCounts {
  const total = noCounts()
  for (const name of Object.keys(total) as (keyof KillCounts)[]) total[name] = one[name] + other[name]
  return total
}
