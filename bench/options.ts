// Reads the command line of the benchmark.
import { parseArgs } from 'node:util'
import type { DeliverPlan } from './deliver/measure.ts'
import type { IngestPlan } from './ingest/measure.ts'
import type { LanePlan } from './lanes.ts'
import type { BenchName } from './results.ts'
import type { RoundPlan } from './rounds.ts'
import type { StoreName, Through } from './sides.ts'
import type { WorkersPlan } from './workers/measure.ts'

const BENCHES: readonly BenchName[] = ['append', 'drain', 'workers', 'lanes', 'ingest', 'deliver']

export const USAGE = `node bench/main.ts [${BENCHES.join('] [')}] [options]   (no name: all of them)
  --quick          a smoke test, not a measurement: fewer rounds with less work in each
  --rounds n       how often each side is measured
  --seconds n      length of an append or ingest round
  --connections n  ingest: number of kept-alive connections (256)
  --at-once n      deliver: POSTs in progress at once (64)
  --apart          append: callers share no lanes, which spares the peer waiting for row locks
  --store name     append, drain, ingest: the store of Sluice, sqlite or postgres (sqlite)
  --through name   append, drain: an app, or the store alone (app)
  --local-queue n  localQueue.size of Graphile Worker (its documentation: 500)
  --json file      writes the results there instead of to bench/results/<date>-<names>.json
  --strict         exits with 1 also if a target is missed`

export interface Options {
  readonly benches: readonly BenchName[]
  readonly rounds: RoundPlan
  readonly lanes: LanePlan
  readonly ingest: IngestPlan
  readonly deliver: DeliverPlan
  readonly workers: WorkersPlan
  readonly store: StoreName
  readonly through: Through
  readonly localQueueSize: number
  readonly jsonFile: string | undefined
  readonly strict: boolean
}

/** `readOptions` throws a TypeError if the command line is wrong; its message says how. */
export function readOptions(line: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...line],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      apart: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      'at-once': { type: 'string' },
      'local-queue': { type: 'string', default: '500' },
      store: { type: 'string', default: 'sqlite' },
      through: { type: 'string', default: 'app' },
      json: { type: 'string' },
    },
  })
  const rounds = whole('rounds', values.rounds) ?? (values.quick ? 3 : 5)
  return {
    benches: positionals.length === 0 ? BENCHES : [...new Set(positionals.map(benchName))],
    rounds: {
      rounds,
      appendSeconds: positive('seconds', values.seconds) ?? (values.quick ? 2 : 6),
      laneSharing: values.apart ? 'apart' : 'shared',
      drainCount: values.quick ? 20_000 : 60_000,
      store: storeName(values.store),
    },
    lanes: { rounds: values.quick ? 1 : Math.min(rounds, 3), few: 1000, many: values.quick ? 100_000 : 1_000_000 },
    ingest: {
      rounds,
      seconds: positive('seconds', values.seconds) ?? (values.quick ? 2 : 5),
      connections: whole('connections', values.connections) ?? 256,
      store: storeName(values.store),
    },
    deliver: {
      rounds,
      posts: values.quick ? 10_000 : 40_000,
      atOnce: whole('at-once', values['at-once']) ?? 64,
    },
    workers: { rounds: Math.min(rounds, 3), count: values.quick ? 20_000 : 40_000 },
    store: storeName(values.store),
    through: throughName(values.through),
    localQueueSize: whole('local-queue', values['local-queue']) ?? 500,
    jsonFile: values.json,
    strict: values.strict,
  }
}

function benchName(text: string): BenchName {
  const found = BENCHES.find((name) => name === text)
  if (found === undefined) throw new TypeError(`There is no bench "${text}".`)
  return found
}

function storeName(text: string): StoreName {
  if (text === 'sqlite' || text === 'postgres') return text
  throw new TypeError(`--store is sqlite or postgres, not "${text}".`)
}

function throughName(text: string): Through {
  if (text === 'app' || text === 'store') return text
  throw new TypeError(`--through is app or store, not "${text}".`)
}

function positive(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!(value > 0 && value < Infinity)) throw new TypeError(`--${option} takes a number above 0, not "${text}".`)
  return value
}

function whole(option: string, text: string | undefined): number | undefined {
  const value = positive(option, text)
  if (value !== undefined && !Number.isInteger(value)) throw new TypeError(`--${option} takes a whole number.`)
  return value
}
