// The ingest bench: signed webhooks over HTTP until they are durable. Sluice and its peers take turns in one run.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { spreadOf, type Spread } from '../figures.ts'
import { startServer } from '../../test/postgres/server.ts'
import { startRedis } from '../redis.ts'
import { judge, type Target, type Ingest } from '../results.ts'
import { postgresFolder } from '../run-folder.ts'
import type { StoreName } from '../sides.ts'
import { send, serveSide, type Sent } from './load.ts'
import type { SideName } from './sides.ts'

export interface IngestPlan {
  readonly rounds: number
  readonly seconds: number
  readonly connections: number
  readonly store: StoreName
}

type Progress = (line: string) => void

const TARGETS: Readonly<Record<Exclude<SideName, 'sluice' | 'verifies only' | 'inserts only'>, Target>> = {
  bullmq: { kind: 'at least', bound: 1.3 },
  'bullmq, synced': { kind: 'at least', bound: 1.3 },
  'pg-boss': { kind: 'at least', bound: 5 },
  'graphile-worker': { kind: 'at least', bound: 10 },
}
/** The rate of the server that stores nothing. */
const STORING: Readonly<Record<StoreName, Target>> = {
  sqlite: { kind: 'at least', bound: 0.8 },
  postgres: { kind: 'at least', bound: 0.5 },
}
const LATE: Target = { kind: 'at most', bound: 500 }
const CALM_SHARE = 0.8
const WARM_UP_SECONDS = 1

export async function measureIngest(folder: string, plan: IngestPlan, progress: Progress): Promise<Ingest> {
  progress('starting PostgreSQL and Redis …')
  const postgres = await startServer({ version: 18, folder: postgresFolder(folder) })
  const redis = await startRedis(join(folder, 'redis'), 'everysec')
  const syncedRedis = await startRedis(join(folder, 'redis-synced'), 'always')
  if (redis === undefined) progress('there is no redis-server on this machine: BullMQ is left out')
  const services: Readonly<Partial<Record<SideName, string>>> = {
    ...(redis === undefined ? {} : { bullmq: redis.url }),
    ...(syncedRedis === undefined ? {} : { 'bullmq, synced': syncedRedis.url }),
    'pg-boss': postgres.url,
    'graphile-worker': postgres.url,
  }
  const floor = plan.store === 'sqlite' ? (['inserts only'] as const) : []
  const names: readonly SideName[] = ['sluice', 'verifies only', ...floor, ...(Object.keys(services) as SideName[])]
  // An empty service means a file in the folder of the run.
  const ownStore = (name: SideName, round: number): string =>
    plan.store === 'sqlite' ? '' : `${postgres.url}&schema=ingest_${name.length}_${round}`
  const rates = new Map<SideName, number[]>(names.map((name) => [name, []]))
  try {
    for (let round = 0; round <= plan.rounds; round++) {
      for (const name of names) {
        const seconds = round === 0 ? WARM_UP_SECONDS : plan.seconds
        const service = services[name] ?? ownStore(name, round)
        const rate = await measured({ folder, name, service, round, ...plan, seconds })
        progress(
          `ingest  ${round === 0 ? 'warm-up' : `round ${round}/${plan.rounds}`}  ${name}  ${Math.round(rate).toLocaleString('en')}/s`,
        )
        if (round > 0) rates.get(name)?.push(rate)
      }
    }
    const own = rates.get('sluice') ?? []
    const ratioOf = (one: SideName, other: SideName): Spread =>
      spreadOf((rates.get(other) ?? []).map((rate, at) => (rates.get(one)?.[at] ?? 0) / rate))
    const calm = Math.floor(spreadOf(own).median * CALM_SHARE)
    const last = plan.rounds + 1
    const paced = await sendTo('sluice', { folder, service: ownStore('sluice', last), round: last, ...plan }, calm)
    progress(
      `ingest  at ${calm.toLocaleString('en')}/s  p50 ${paced.p50.toFixed(1)} ms, p99 ${paced.p99.toFixed(1)} ms`,
    )
    return {
      kind: 'ingest',
      bench: 'ingest',
      rates: names.map((side) => ({ side, perSecond: spreadOf(rates.get(side) ?? []) })),
      ratios: names
        .filter((name) => name !== 'sluice' && name !== 'inserts only')
        .map((name) => {
          const spread = ratioOf('sluice', name)
          const target = name === 'verifies only' ? STORING[plan.store] : TARGETS[name]
          return { side: name, spread, target, verdict: judge(spread.median, target) }
        }),
      floor: floor.map((side) => ({ side, of: 'verifies only', spread: ratioOf(side, 'verifies only') }))[0],
      calm: {
        perSecond: calm,
        p50: paced.p50,
        p99: paced.p99,
        refused: paced.busy + paced.other,
        target: LATE,
        verdict: judge(paced.p99, LATE),
      },
    }
  } finally {
    await redis?.stop()
    await syncedRedis?.stop()
    await postgres.stop()
  }
}

interface Turn extends IngestPlan {
  readonly folder: string
  readonly service: string
  readonly round: number
}

async function measured({ name, ...turn }: Turn & { readonly name: SideName }): Promise<number> {
  const { accepted, millis, other } = await sendTo(name, turn, 0)
  if (other > 0) throw new Error(`${name} answered ${other} requests with neither 2xx nor 503.`)
  return (accepted / millis) * 1_000
}

/** Starts a new server for each turn, on an empty folder. */
async function sendTo(name: SideName, turn: Turn, rate: number): Promise<Sent> {
  const folder = join(turn.folder, `${name.replaceAll(/\W+/g, '-')}-${turn.round}`)
  await mkdir(folder, { recursive: true })
  const serving = await serveSide(name, folder, turn.service)
  try {
    const { connections, seconds, round } = turn
    return await send({ port: serving.port, connections, seconds, rate, seed: `r${round}` })
  } finally {
    await serving.stop()
  }
}
