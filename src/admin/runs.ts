// `Runs` searches ended runs and shows them with their attempts.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { LaneId } from '../model/identity.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { RecordFilter, RunRecord, Store } from '../store/contract/index.ts'
import type { OperatorDependencies } from './lanes.ts'
import { resolveLaneId } from './lane-view.ts'
import { findPageByWeight, type Page } from './pages.ts'

/** All given conditions must match. Times are the end times of the runs. */
export interface RunFilter {
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly lane?: LaneId
  readonly tenant?: string
  readonly from?: Millis
  readonly to?: Millis
}

/** A run of an event. */
export type EventRun = Pick<RunRecord, 'id' | 'lane' | 'flow' | 'key' | 'kind' | 'started' | 'ended'>

/** The store looks up each event of a page. */
const EVENTS_PER_PAGE = 5_000
const countEvents = ({ events }: Pick<RunRecord, 'events'>): number => events.length

export class Runs {
  readonly #deps: OperatorDependencies

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
  }

  /** `list` returns the newest run first. A page ends early when its runs have many events. */
  async list(filter: RunFilter = {}, cursor = '', n = 100): Promise<Page<RunRecord>> {
    const wanted = this.#toStoreFilter(filter)
    const store = await this.#deps.store()
    const page = { cursor, n, weightOf: countEvents, most: EVENTS_PER_PAGE, first: 5, growth: 4 }
    return findPageByWeight(page, (from, some) => store.find({ kind: 'runs', filter: wanted, cursor: from, n: some }))
  }

  async show(id: string): Promise<RunRecord | undefined> {
    const store = await this.#deps.store()
    return (await store.get({ kind: 'runs', id })).item
  }

  #toStoreFilter(filter: RunFilter): RecordFilter {
    assertKnownOptions(filter, ['flow', 'key', 'lane', 'tenant', 'from', 'to'], 'runs: ')
    const { key, ...rest } = filter
    if (key === undefined) return rest
    if (rest.flow === undefined || rest.lane !== undefined) {
      throw new SluiceError('CONFIG_INVALID', 'runs: key must be used together with flow, and without lane.')
    }
    return { ...rest, lane: resolveLaneId(this.#deps.flows, rest.flow, key) }
  }
}

/** An event may be in a hundred lanes, each with a million runs, so only this many lanes are read. */
const MAX_LANES = 20
const RUNS_PER_LANE = 100

/** `findRunsOfEvent` returns the runs that had the event, newest first, among the latest runs of its lanes. */
export async function findRunsOfEvent(
  store: Store,
  lanes: readonly LaneId[],
  event: string,
): Promise<readonly EventRun[]> {
  const pages = await Promise.all(
    lanes
      .slice(0, MAX_LANES)
      .map((lane) => store.find({ kind: 'runs', filter: { lane }, cursor: '', n: RUNS_PER_LANE })),
  )
  return pages
    .flatMap(({ items }) => items.filter((run) => run.events.includes(event)))
    .map(({ id, lane, flow, key, kind, started, ended }) => ({ id, lane, flow, key, kind, started, ended }))
    .toSorted((one, other) => other.ended - one.ended)
}
