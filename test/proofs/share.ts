// L5 and L5g: which lane is served next when a hundred thousand lanes are ready.
import { join } from 'node:path'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { inFolder } from '../figures/folder.ts'
import { served, shared } from '../figures/share-order.ts'

export const title =
  "With share: 'tenant', a tenant with 100,000 ready lanes delays another tenant's single lane by at most two rounds; " +
  'without it the order is exactly first ready, first served'

const LANES = 100_000
const ORDERED = 10_000
const MOST_ROUNDS = 2

export async function run(context: ProofContext): Promise<Figure> {
  const { seed } = context
  return inFolder(async (folder) => {
    const store = (name: string): string => `sqlite:${join(folder, `${name}.db`)}`
    const load = { lanes: LANES, singles: 200, maxConcurrentRuns: 10 }
    context.progress('one tenant may take every slot')
    const unbounded = await shared({ store: store('unbounded'), ...load })
    context.progress('each tenant has three slots at most')
    const bounded = await shared({ store: store('bounded'), ...load, concurrency: 3 })
    context.progress('no shares')
    const order = await served({ store: store('order'), lanes: ORDERED, seed })
    const isFair = [unbounded, bounded].every(
      ({ rounds, stillReady }) => rounds <= MOST_ROUNDS && stillReady > LANES / 2,
    )
    const holds = isFair && order.inversions === 0 && order.lanes === ORDERED && order.mixed > 0
    return { holds, values: { unbounded, bounded, order } }
  })
}
