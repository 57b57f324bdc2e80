// Runs that have ended, one way or another: searched, and looked at with their attempts.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { LaneId } from '../model/identity.ts'
import { onlyKnown } from '../model/options.ts'
import type { Filter, RunRecord, Store } from '../store/contract/index.ts'
import type { OperateParts, Page } from './lanes.ts'
import { laneOf } from './name-lane.ts'
import { shortPage } from './short-page.ts'

/** All of these together. Times are those of the run's end. */
export interface RunFilter {
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly lane?: LaneId
  readonly tenant?: string
  readonly from?: Millis
  readonly to?: Millis
}

/** One of an event's. */
export type RunOfEvent = Pick<RunRecord, 'id' | 'lane' | 'flow' | 'key' | 'kind' | 'started' | 'ended'>

const FILTERS: ReadonlySet<string> = new Set<keyof RunFilter>(['flow', 'key', 'lane', 'tenant', 'from', 'to'])

/** A store looks each of them up. */
const EVENTS_A_PAGE = 5_000
const eventsOf = ({ events }: Pick<RunRecord, 'events'>): number => events.length

export class Runs {
  readonly #parts: OperateParts

  constructor(parts: OperateParts) {
    this.#parts = parts
  }

  /** Newest first. A page ends early when its runs have many events. */
  async list(filter: RunFilter = {}, cursor = '', n = 100): Promise<Page<RunRecord>> {
    const wanted = this.#filterOf(filter)
    const store = await this.#parts.store()
    const page = { cursor, n, weightOf: eventsOf, most: EVENTS_A_PAGE, first: 5, growth: 4 }
    return shortPage(page, (from, some) => store.find({ kind: 'runs', filter: wanted, cursor: from, n: some }))
  }

  async show(id: string): Promise<RunRecord | undefined> {
    const store = await this.#parts.store()
    return (await store.get({ kind: 'runs', id })).item
  }

  #filterOf(filter: RunFilter): Filter {
    onlyKnown(filter, FILTERS, 'runs: ')
    const { key, ...rest } = filter
    if (key === undefined) return rest
    if (rest.flow === undefined || rest.lane !== undefined) {
      throw new SluiceError('CONFIG_INVALID', 'runs: key comes with the flow it is a key of, and without lane.')
    }
    return { ...rest, lane: laneOf(this.#parts.flows, rest.flow, key) }
  }
}

/** An event may be in a hundred lanes, and a lane may have had a million runs: nobody waits for all of them. */
const LANES_LOOKED_AT = 20
const RUNS_LOOKED_AT = 100

/** Newest first: those that had the event, among the latest of its lanes. */
export async function runsWith(store: Store, lanes: readonly LaneId[], event: string): Promise<readonly RunOfEvent[]> {
  const pages = await Promise.all(
    lanes
      .slice(0, LANES_LOOKED_AT)
      .map((lane) => store.find({ kind: 'runs', filter: { lane }, cursor: '', n: RUNS_LOOKED_AT })),
  )
  return pages
    .flatMap(({ items }) => items.filter((run) => run.events.includes(event)))
    .map(({ id, lane, flow, key, kind, started, ended }) => ({ id, lane, flow, key, kind, started, ended }))
    .toSorted((one, other) => other.ended - one.ended)
}
