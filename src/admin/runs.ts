// `Runs` searches ended runs and shows them with their attempts.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { LaneId } from '../model/identity.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { RecordFilter, RunRecord, Store } from '../store/contract/index.ts'
import type { OperatorDependencies } from './lanes.ts'
import type { Flow } from '../model/flow.ts'
import { resolveLaneId } from './lane-view.ts'
import { describeClosing, type RunClosing } from './run-closing.ts'
import { findPageByWeight, type Page } from './pages.ts'

/** All given conditions must match. Times are the end times of the runs. */
export interface RunFilter {
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly lane?: LaneId
  readonly tenant?: string
  readonly kind?: RunRecord['kind']
  /** Runs that had this event, among the latest of its lanes. */
  readonly event?: string
  readonly from?: Millis
  readonly to?: Millis
}

export interface EventRun extends Pick<
  RunRecord,
  'id' | 'lane' | 'flow' | 'key' | 'kind' | 'reason' | 'started' | 'ended' | 'tries' | 'attempts'
> {
  /** The number of its events. */
  readonly events: number
  /** When its window ended, if that is known. */
  readonly due: Millis | undefined
}

/** A run with what is known of its batch. */
export type ListedRun = RunRecord & RunClosing

/** The store looks up each event of a page. */
const EVENTS_PER_PAGE = 5_000
const countEvents = ({ events }: Pick<RunRecord, 'events'>): number => events.length

export class Runs {
  readonly #deps: OperatorDependencies

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
  }

  /** `list` returns the newest run first. A page ends early when its runs have many events, or few match. */
  async list(filter: RunFilter = {}, cursor = '', n = 100): Promise<Page<ListedRun>> {
    const { kind, event, ...rest } = filter
    const wanted = this.#toStoreFilter(rest)
    const store = await this.#deps.store()
    const isWanted = (run: RunRecord): boolean =>
      (kind === undefined || run.kind === kind) && (event === undefined || run.events.includes(event))
    const find = (matching: RecordFilter, from: string, some: number): Promise<Page<RunRecord>> =>
      store.find({ kind: 'runs', filter: matching, cursor: from, n: some })
    if (event !== undefined) {
      const lanes = (await store.get({ kind: 'events', id: event })).item?.lanes.slice(0, MAX_LANES) ?? []
      const own = lanes.filter((lane) => wanted.lane === undefined || wanted.lane === lane)
      const pages = await Promise.all(own.map((lane) => find({ ...wanted, lane }, '', RUNS_PER_LANE)))
      const runs = pages
        .flatMap(({ items }) => items.filter(isWanted))
        .toSorted((one, other) => other.started - one.started)
      return { items: runs.slice(0, n).map((run) => this.#toListed(run)), next: undefined }
    }
    const page = { cursor, n, weightOf: countEvents, most: EVENTS_PER_PAGE, first: 5, growth: 4, isWanted }
    const { items, next } = await findPageByWeight(page, (from, some) => find(wanted, from, some))
    return { items: items.map((run) => this.#toListed(run)), next }
  }

  async show(id: string): Promise<ListedRun | undefined> {
    const store = await this.#deps.store()
    const { item } = await store.get({ kind: 'runs', id })
    return item === undefined ? undefined : this.#toListed(item)
  }

  #toListed(run: RunRecord): ListedRun {
    return { ...run, ...describeClosing(run, this.#deps.flows.get(run.flow)) }
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
  { store, flows }: { readonly store: Store; readonly flows: ReadonlyMap<string, Flow> },
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
    .map((run) => toEventRun(run, flows))
    .toSorted((one, other) => other.ended - one.ended)
}

function toEventRun(run: RunRecord, flows: ReadonlyMap<string, Flow>): EventRun {
  const { id, lane, flow, key, kind, reason, started, ended, tries, attempts, events } = run
  const { due } = describeClosing(run, flows.get(flow))
  return { id, lane, flow, key, kind, reason, started, ended, tries, attempts, events: events.length, due }
}
