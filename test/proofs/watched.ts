// Watching a receiving server must not slow it down.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { inFolder, rounded } from '../figures/folder.ts'
import { watchedPairs } from '../figures/watched.ts'

export const title =
  'An open stream and a scrape of the metrics a second cost under 5 % of the rate at which webhooks are received'

const MOST = 0.05

export async function run(context: ProofContext): Promise<Figure> {
  const given = new Map(context.args.map((arg) => arg.split('=', 2) as [string, string]))
  const servers = Number(given.get('servers') ?? 6)
  const seen = await inFolder((folder) =>
    watchedPairs({ folder, servers, pairsOfEach: 10, seconds: 2, progress: (part) => context.progress(part) }),
  )
  const { cost, costBetween, alone, watched, leastCost: _, ...counts } = seen
  const values = {
    ...counts,
    perSecondAlone: Math.round(alone),
    perSecondWatched: Math.round(watched),
    costPercent: rounded(cost * 100),
    costPercentBetween: costBetween.map((one) => rounded(one * 100)),
  }
  return { holds: cost < MOST, values }
}
