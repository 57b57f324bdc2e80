// Each event rewrites its debounced lane, and finished events are deleted. Measures whether PostgreSQL with default settings frees
// space as fast as a busy app uses it.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { rounded } from '../figures/folder.ts'
import { growthOf, type Growth } from '../postgres/bloat/growth.ts'
import { Load } from '../postgres/bloat/load.ts'
import { look, type Look } from '../postgres/bloat/relations.ts'
import { startServer } from '../postgres/server.ts'

export const title: string =
  'An hour of 120 events a second, debounced, on a PostgreSQL with its own settings, with what is done kept for 5 minutes: after a ' +
  'quarter of an hour no table and no index grows without end, an event that pushes a deadline back touches no index, and nothing is lost'

const MINUTES = 60
const LOOKS = 60
/** The share of the time for which finished events are kept: with a quarter, space is reused three times. */
const KEPT = 1 / 12
/** Identities of deleted events are kept for a while longer: the row is first emptied, then deleted. */
const KNOWN = 1.2
const LOAD = { rate: 110, alone: 10, keys: 3_000 }
const SCHEMA = 'sluice'
const MEGABYTE = 2 ** 20

/** Vacuum runs at its own times, so a single table or index may vary; the sum of all varies much less. */
const MOST_GROWN = 1.5
const MOST_GROWN_IN_ALL = 1.2
/** Some pages more or less mean nothing for a small table. */
const SMALL = MEGABYTE / 4
/** Sizes mean nothing if the amount of kept data changes. */
const MOST_UNSTEADY = 0.1
/** HOT updates for each webhook, without those of claims. An update that also moves its lane in an index cannot be HOT. */
const LEAST_HOT = 0.9

export async function run(context: ProofContext): Promise<Figure> {
  // `minutes=` makes it shorter: everything but the server's own times.
  const minutes = Number(context.args.find((arg) => arg.startsWith('minutes='))?.slice('minutes='.length) ?? MINUTES)
  const keep = minutes * 60_000 * KEPT
  const server = await startServer({ version: 18 })
  const onlooker = new pg.Client({ connectionString: server.url })
  const load = new Load({ ...LOAD, url: server.url, seed: context.seed, keep, dedupe: keep * KNOWN })
  try {
    await onlooker.connect()
    await load.start()
    const looks: Look[] = []
    const began = performance.now()
    for (let n = 1; n <= LOOKS; n++) {
      await sleep(began + (n * minutes * 60_000) / LOOKS - performance.now())
      looks.push(await look(onlooker, SCHEMA))
      context.progress(inShort(n, looks.at(-1)))
    }
    const loaded = await load.finish()
    const values = figures(looks)
    const hotPerPush = rounded(((looks.at(-1)?.tables['lanes']?.hot ?? 0) - loaded.runs) / loaded.pushes, 3)
    const holds =
      loaded.lost === 0 &&
      values.growing.length === 0 &&
      values.whole.ratio <= MOST_GROWN_IN_ALL &&
      Math.abs(values.events.ratio - 1) <= MOST_UNSTEADY &&
      hotPerPush >= LEAST_HOT
    return {
      holds,
      values: { ...loaded, cpu: rounded(loaded.cpu), hotPerPush, ...values },
    }
  } finally {
    await load.close()
    await onlooker.end()
    await server.stop()
  }
}

interface Figures {
  /** Tables and indexes that grew by more than half. */
  readonly growing: readonly string[]
  readonly lanes: {
    readonly hotShare: number
    readonly updates: number
    readonly inserts: number
    readonly deletes: number
  }
  /** The number of live rows of events, counted. */
  readonly events: Growth
  /** All tables with their indexes, in MB. */
  readonly whole: Growth
  /** Each of them that is not small, in MB, per minute. */
  readonly sizes: Readonly<Record<string, Growth>>
  /** Dead rows, and live ones. */
  readonly dead: Readonly<Record<string, Growth>>
  readonly live: Readonly<Record<string, Growth>>
  readonly autovacuums: Readonly<Record<string, number>>
  readonly criterion: string
}

function figures(looks: readonly Look[]): Figures {
  const last = looks.at(-1) ?? { sizes: {}, tables: {} }
  const tables = Object.keys(last.tables)
  const sizes = named(
    Object.keys(last.sizes),
    (name) => looks.map((one) => (one.sizes[name] ?? 0) / MEGABYTE),
    SMALL / MEGABYTE,
  )
  const lanes = last.tables['lanes'] ?? { hot: 0, updates: 0, inserts: 0, deletes: 0 }
  const { updates, inserts, deletes } = lanes
  return {
    growing: Object.keys(sizes).filter((name) => (sizes[name]?.ratio ?? 0) > MOST_GROWN),
    lanes: { hotShare: rounded(lanes.hot / updates, 3), updates, inserts, deletes },
    events: growthOf(looks.map((one) => one.tables['events']?.counted ?? 0)),
    whole: growthOf(looks.map((one) => sum(Object.values(one.tables).map(({ total }) => total)) / MEGABYTE)),
    sizes,
    dead: named(tables, (name) => looks.map((one) => one.tables[name]?.dead ?? 0)),
    live: named(tables, (name) => looks.map((one) => one.tables[name]?.counted ?? 0)),
    autovacuums: Object.fromEntries(tables.map((name) => [name, last.tables[name]?.autovacuums ?? 0])),
    criterion:
      `early and late: medians of the second quarter of the looks and of the last. Holds if late is at most ${MOST_GROWN} times ` +
      `early for each table and index above ${SMALL / 1_024} KB, ${MOST_GROWN_IN_ALL} times for all together, the rows of events ` +
      `stay the same by ${MOST_UNSTEADY * 100} %, and there are ${LEAST_HOT} HOT updates of lanes or more for each push`,
  }
}

/** Those that ever exceeded the size. */
function named(
  names: readonly string[],
  values: (name: string) => readonly number[],
  smallest = 0,
): Readonly<Record<string, Growth>> {
  const all = names.toSorted().map((name) => [name, values(name)] as const)
  return Object.fromEntries(
    all.filter(([, found]) => Math.max(...found) > smallest).map(([name, found]) => [name, growthOf(found)]),
  )
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

function inShort(n: number, { sizes, tables }: Look = { sizes: {}, tables: {} }): string {
  const megabytes = (name: string): number => rounded((sizes[name] ?? 0) / MEGABYTE)
  const { lanes, events } = tables
  return (
    `${n}: events ${megabytes('events')} MB, ${events?.counted} rows, ${events?.dead} dead; ` +
    `lanes ${megabytes('lanes')} MB, ${lanes?.counted} rows, ${lanes?.dead} dead, ` +
    `HOT ${rounded((lanes?.hot ?? 0) / (lanes?.updates ?? 1), 3)}, vacuumed ${lanes?.autovacuums} times`
  )
}
