// Shared by the proofs that kill processes: a number of kills over several files; an interrupted proof resumes with the next file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, ProofContext } from '../scripts/proof.ts'

type Counts<Name extends string> = Record<Name | 'cycles', number>

interface Report<Name extends string> {
  readonly counts: Counts<Name>
  readonly complaints: readonly string[]
}

interface State<Name extends string> extends Report<Name> {
  readonly files: number
}

/** The kills of one file. */
interface Kills {
  readonly folder: string
  readonly cycles: number
  readonly seed: number
  /** Called after each kill with the count. */
  readonly progress: (cycle: number) => void
}

export interface KillProof<Name extends string> {
  readonly cyclesPerFile: number
  readonly shownEvery: number
  readonly noCounts: () => Counts<Name>
  /** Counts that must be zero. */
  readonly offences: readonly Name[]
  readonly kill: (kills: Kills) => Promise<Report<Name>>
}

const CYCLES = 1_000

export async function killProof<Name extends string>(context: ProofContext, proof: KillProof<Name>): Promise<Figure> {
  const asked = context.args.find((arg) => arg.startsWith('cycles='))?.slice('cycles='.length)
  const cycles = Number(asked ?? CYCLES)
  if (!Number.isSafeInteger(cycles) || cycles < 1) throw new TypeError(`cycles= takes a whole number, not "${asked}"`)
  let state = context.resume<State<Name>>() ?? { counts: proof.noCounts(), complaints: [], files: 0 }
  while (state.counts.cycles < cycles) {
    const before = state.counts.cycles
    const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-'))
    try {
      const report = await proof.kill({
        folder,
        cycles: Math.min(proof.cyclesPerFile, cycles - before),
        seed: context.seed + state.files,
        progress: (cycle) => {
          if (cycle % proof.shownEvery === 0) context.progress((before + cycle) / cycles)
        },
      })
      state = {
        counts: sum(state.counts, report.counts, proof.noCounts()),
        complaints: [...state.complaints, ...report.complaints],
        files: state.files + 1,
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    context.checkpoint(state)
  }
  const { counts, complaints, files } = state
  const holds = proof.offences.every((offence) => counts[offence] === 0)
  return { holds, values: { ...counts, files, complaints } }
}

function sum<C extends Record<string, number>>(one: C, other: C, total: C): C {
  for (const name of Object.keys(total) as (keyof C)[]) {
    total[name] = ((one[name] ?? 0) + (other[name] ?? 0)) as C[keyof C]
  }
  return total
}
