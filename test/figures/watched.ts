// Measures what a watcher costs a receiving server: bursts of signed webhooks to one server, in turns with and without an open
// stream and a scrape per second. Both are in one process, because two processes of the same code differ by more than the cost.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { send, serveSide } from '../../bench/ingest/load.ts'
import { quantile } from '../../bench/figures.ts'
import { watch } from './watcher.ts'

export interface WatchedPlan {
  readonly folder: string
  /** Each pair starts with an empty store. */
  readonly servers: number
  readonly pairsOfEach: number
  /** The requests of a burst. */
  readonly seconds: number
  readonly progress: (part: number) => void
}

export interface Watched {
  readonly pairs: number
  /** Median requests per second. */
  readonly alone: number
  readonly watched: number
  /** The share of the rate: the median of the pairs, and the 95 % confidence interval of the median. */
  readonly cost: number
  readonly costBetween: readonly [number, number]
  /** The lowest of all pairs. */
  readonly leastCost: number
  readonly changesSeen: number
  readonly scrapes: number
}

const CONNECTIONS = 256

export async function watchedPairs(plan: WatchedPlan): Promise<Watched> {
  const pairs: { readonly alone: number; readonly watched: number }[] = []
  const seen = { changes: 0, scrapes: 0 }
  for (let server = 0; server < plan.servers; server++) {
    const folder = join(plan.folder, `server-${server}`)
    mkdirSync(folder)
    const serving = await serveSide('sluice', folder, '')
    const burst = async (name: string): Promise<number> => {
      const load = { port: serving.port, connections: CONNECTIONS, seconds: plan.seconds, rate: 0, seed: name }
      const { accepted, millis, busy, other } = await send(load)
      if (busy + other > 0) throw new Error(`${busy + other} requests were not taken.`)
      return (accepted / millis) * 1_000
    }
    const watchedBurst = async (name: string): Promise<number> => {
      const watcher = await watch(serving.port)
      const rate = await burst(name)
      const { changes, scrapes } = await watcher.end()
      seen.changes += changes
      seen.scrapes += scrapes
      return rate
    }
    try {
      await watchedBurst('warm-up')
      for (let pair = 0; pair < plan.pairsOfEach; pair++) {
        // Everything that grows during the test affects both sides equally often.
        const first = pair % 2 === 0 ? await burst(`a${pair}`) : undefined
        const watched = await watchedBurst(`w${pair}`)
        pairs.push({ watched, alone: first ?? (await burst(`a${pair}`)) })
        plan.progress((server + (pair + 1) / plan.pairsOfEach) / plan.servers)
      }
    } finally {
      await serving.stop()
    }
  }
  const costs = sorted(pairs.map(({ alone, watched }) => 1 - watched / alone))
  return {
    pairs: pairs.length,
    alone: quantile(sorted(pairs.map(({ alone }) => alone)), 0.5),
    watched: quantile(sorted(pairs.map(({ watched }) => watched)), 0.5),
    cost: quantile(costs, 0.5),
    costBetween: medianBetween(costs),
    leastCost: costs[0] ?? NaN,
    changesSeen: seen.changes,
    scrapes: seen.scrapes,
  }
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((one, other) => one - other)
}

/** By the binomial distribution: how far from the middle of the sorted values the true median may be. */
function medianBetween(costs: readonly number[]): readonly [number, number] {
  const n = costs.length
  const away = 0.98 * Math.sqrt(n)
  const at = (place: number): number => costs[Math.min(n - 1, Math.max(0, place))] ?? 0
  return [at(Math.floor(n / 2 - away)), at(Math.ceil(n / 2 + away) - 1)]
}
