// Deliveries as a whole: twenty endpoints of all kinds, workers that are killed, and no endpoint that is delayed by another.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { fleet } from '../deliver/fleet.ts'
import { fleetPairs } from '../deliver/fleet-pairs.ts'
import { startServer } from '../postgres/server.ts'

export const title =
  '50,000 events to 20 endpoints, some of which fail, ask to wait, fall silent, hang up or accept a part, while workers are ' +
  'killed: every healthy one gets what it asked for in order, twice only where nobody could know and under the same id; every ' +
  'other one in the end, or a dead letter says why; and p99 of the healthy ones is at most 1.5 times that without failing ones'

const EVENTS = 50_000
const KILLS = 20
const PAIRS = 5
const EVENTS_OF_A_PAIR = 5_000
const MOST = 1.5
const WORKERS = 3

/** `store=postgres` has three workers at once; `events=` and `kills=` make it shorter. */
export async function run(context: ProofContext): Promise<Figure> {
  const given = new Map(context.args.map((arg) => arg.split('=', 2) as [string, string]))
  const [events, kills] = [Number(given.get('events') ?? EVENTS), Number(given.get('kills') ?? KILLS)]
  const server = given.get('store') === 'postgres' ? await startServer({ version: 18 }) : undefined
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
  const storeOf = (name: string): { readonly store?: { readonly url: string; readonly workers: number } } =>
    server === undefined ? {} : { store: { url: `${server.url}&schema=${name}`, workers: WORKERS } }
  try {
    const sea = join(folder, 'killed')
    mkdirSync(sea)
    const progress = (part: number): void => context.progress(part)
    context.progress(`${events} events, ${kills} kills`)
    const killed = await fleet({ folder: sea, events, kills, seed: context.seed, progress, ...storeOf('killed') })
    context.progress(`${PAIRS} pairs with and without failing ones`)
    // One worker on a file, for any store: the test is about the engine.
    const { pairs, ratio, complaints } = await fleetPairs({
      folder,
      events: Math.min(events, EVENTS_OF_A_PAIR),
      pairs: PAIRS,
      seed: context.seed,
      progress,
    })
    const values = { ...killed.counts, complaints: [...killed.complaints, ...complaints], ratio, pairs }
    return { holds: values.complaints.length === 0 && ratio <= MOST, values }
  } finally {
    rmSync(folder, { recursive: true, force: true })
    await server?.stop()
  }
}
