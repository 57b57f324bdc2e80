// The workers bench: 1, 2 and 4 processes on one PostgreSQL process the same jobs. Sluice and its peers take turns.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Pool } from 'pg'
import { startServer } from '../../test/postgres/server.ts'
import { spreadOf } from '../figures.ts'
import { judge, type Target, type WorkersResult } from '../results.ts'
import { CONCURRENCY } from '../workload.ts'
import { calm, workers, type WorkersName } from './sides.ts'

export interface WorkersPlan {
  readonly rounds: number
  readonly count: number
}

interface Setup {
  readonly name: WorkersName
  readonly processes: number
}

const SETUPS: readonly Setup[] = [
  ...[1, 2, 4].map((processes) => ({ name: 'sluice', processes }) as const),
  ...[1, 2, 4].map((processes) => ({ name: 'graphile-worker', processes }) as const),
  { name: 'pg-boss', processes: 1 },
]
/** pg-boss gets a tenth of the jobs: it is a tenth as fast, and would take ten times as long. */
const PG_BOSS_PART = 0.1
const TARGETS: Readonly<Record<Exclude<WorkersName, 'sluice'>, Target>> = {
  'graphile-worker': { kind: 'at least', bound: 0.6, goal: 1 },
  'pg-boss': { kind: 'at least', bound: 10 },
}

export async function measureWorkers(
  folder: string,
  plan: WorkersPlan,
  progress: (line: string) => void,
): Promise<WorkersResult> {
  const server = await startServer({ version: 18, folder: join(folder, 'workers-postgres') })
  const pool = new Pool({ connectionString: server.url, max: 1 })
  const rates = new Map<string, number[]>(SETUPS.map((setup) => [labelOf(setup), []]))
  try {
    for (let round = 1; round <= plan.rounds; round++) {
      for (const setup of SETUPS) {
        const rate = await measured(setup, plan.count, { url: server.url, pool })
        progress(
          `workers  round ${round}/${plan.rounds}  ${labelOf(setup)}  ${Math.round(rate).toLocaleString('en')}/s`,
        )
        rates.get(labelOf(setup))?.push(rate)
      }
    }
  } finally {
    await pool.end()
    await server.stop()
  }
  return resultOf(rates)
}

/** The best rate of each side, with any number of processes. */
function resultOf(rates: ReadonlyMap<string, readonly number[]>): WorkersResult {
  const bestOf = (name: WorkersName): readonly number[] => {
    const all = SETUPS.filter((setup) => setup.name === name).map((setup) => rates.get(labelOf(setup)) ?? [])
    return all.toSorted((one, other) => spreadOf(other).median - spreadOf(one).median)[0] ?? []
  }
  const own = bestOf('sluice')
  return {
    kind: 'workers',
    bench: 'workers',
    rates: [...rates].map(([side, all]) => ({ side, perSecond: spreadOf(all) })),
    ratios: (['graphile-worker', 'pg-boss'] as const).map((name) => {
      const spread = spreadOf(bestOf(name).map((rate, at) => (own[at] ?? 0) / rate))
      const side = SETUPS.find((setup) => setup.name === name) ?? { name, processes: 1 }
      return { side: labelOf(side), spread, target: TARGETS[name], verdict: judge(spread.median, TARGETS[name]) }
    }),
  }
}

async function measured(
  { name, processes }: Setup,
  all: number,
  { url, pool }: { readonly url: string; readonly pool: Pool },
): Promise<number> {
  const count = name === 'pg-boss' ? Math.round(all * PG_BOSS_PART) : all
  const side = workers[name]
  await pool.query(side.empty)
  await side.fill(url, count)
  await calm(pool)
  const children = Array.from({ length: processes }, () => forked(name, url, Math.round(CONCURRENCY / processes)))
  try {
    await Promise.all(children.map((child) => once(child, 'message')))
    const began = performance.now()
    for (const child of children) child.send('work')
    while ((await pool.query(side.waiting)).rowCount !== 0) await sleep(5)
    return (count / (performance.now() - began)) * 1_000
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

function forked(name: WorkersName, url: string, concurrency: number): ChildProcess {
  return fork(fileURLToPath(new URL('worker.ts', import.meta.url)), [name, url, String(concurrency)])
}

function labelOf({ name, processes }: Setup): string {
  return `${name}, ${processes} process${processes === 1 ? '' : 'es'}`
}
