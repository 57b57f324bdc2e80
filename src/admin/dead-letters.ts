// `DeadLetters` manages dead runs, and events that could not be routed: one of them, or all that match a filter (L2a,
// L9).
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { RecordFilter, DeadLetterRecord, UnroutedRecord, Store } from '../store/contract/index.ts'
import type { OperatorDependencies, SteerResult } from './lanes.ts'
import { resolveLaneId } from './lane-view.ts'
import { DeadLetterActs, type DeadLetterAct, type DeadLetterProgress } from './dead-letter-acts.ts'
import {
  countLanes,
  groupDeadLetters,
  isBlocking,
  matchesReason,
  scanDeadLetters,
  type DeadLetterReasons,
  type DeadLetterScan,
} from './dead-letter-reasons.ts'
import { countAll, findPageByWeight, type Page } from './pages.ts'

/**
 * A dead run, or an event that could not be routed. The states `queued` and `running` mean that somebody has retried the
 * dead letter; `blocks` means that the lane waits for it.
 */
export type DeadLetter =
  | ({ readonly kind: 'run' } & Omit<DeadLetterRecord, 'parent'>)
  | ({ readonly kind: 'unrouted'; readonly id: string; readonly at: Millis; readonly events: readonly string[] } & Pick<
      UnroutedRecord,
      'flow' | 'reason' | 'error' | 'tries'
    >)

/** An event as JSON, with its original bytes in base64. */
type ExportedEvent = Readonly<Record<string, unknown>> & { readonly body64: string }

export type ExportedDeadLetter = DeadLetter & { readonly contents: readonly ExportedEvent[] }

export interface DeadLetterFilter {
  readonly kind?: DeadLetter['kind']
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly tenant?: string
  /** The dead letter holds an event with this subject. */
  readonly subject?: string
  /** A text in the reason, ignoring case. */
  readonly reason?: string
  readonly from?: Millis
  readonly to?: Millis
}

const UNROUTED_PREFIX = 'unrouted-'
const PAGE = 200
/** A dead letter may have a thousand events, so a page ends early at this many. */
const EVENTS_PER_PAGE = 5_000
const EXPORT_PAGE_LENGTH = 4 * 1024 * 1024
const countEvents = ({ events }: DeadLetter): number => events.length
/** The length of the dead letter in the response. */
const jsonLength = (deadLetter: ExportedDeadLetter): number => JSON.stringify(deadLetter).length

interface DeadLettersDependencies extends OperatorDependencies {
  readonly clock: Clock
}

/** What an action by a filter would touch. */
export interface DeadLetterPreview {
  readonly count: number
  readonly lanes: number
  readonly events: number
  /** How many block their lane. */
  readonly blocking: number
  /** False if there are more than were read: the numbers are then lower bounds. */
  readonly exact: boolean
}

export class DeadLetters {
  readonly #deps: DeadLettersDependencies
  readonly #acts: DeadLetterActs

  constructor(deps: DeadLettersDependencies) {
    this.#deps = deps
    this.#acts = new DeadLetterActs(deps.store)
  }

  /** `list` returns the newest death first. It returns dead runs, or unrouted events with `unrouted`. */
  async list(filter: DeadLetterFilter = {}, cursor = '', n = 100): Promise<Page<DeadLetter>> {
    const store = await this.#deps.store()
    const wanted = this.#toStoreFilter(filter)
    const text = filter.reason?.toLowerCase()
    const isWanted = (deadLetter: DeadLetter): boolean => text === undefined || matchesReason(deadLetter, text)
    const page = { cursor, n, weightOf: countEvents, most: EVENTS_PER_PAGE, first: 5, growth: 4, isWanted }
    if (filter.kind === 'unrouted') {
      return findPageByWeight<DeadLetter>({ ...page, first: n }, async (from, some) => {
        const { items, next } = await store.find({ kind: 'unrouted', filter: wanted, cursor: from, n: some })
        return { items: items.map(fromUnroutedRecord), next }
      })
    }
    return findPageByWeight<DeadLetter>(page, async (from, some) => {
      const { items, next } = await store.find({ kind: 'dead', filter: wanted, cursor: from, n: some })
      return { items: items.map(fromDeadLetterRecord), next }
    })
  }

  /** `count` includes dead letters that were retried and have not ended yet. With `reason`, it reads all of them. */
  async count(filter: DeadLetterFilter = {}): Promise<number> {
    const store = await this.#deps.store()
    const kind = filter.kind === 'unrouted' ? 'unrouted' : 'dead'
    if (filter.reason === undefined) return countAll(store, { kind, filter: this.#toStoreFilter(filter) })
    let count = 0
    for await (const deadLetter of this.#each(filter)) count += Number(deadLetter.id !== '')
    return count
  }

  /** `preview` says what an action by this filter would touch. It reads a bounded number of dead letters. */
  async preview(filter: DeadLetterFilter = {}): Promise<DeadLetterPreview> {
    const { deadLetters, isComplete } = await this.#scan(filter)
    const isCounted = filter.reason === undefined
    return {
      count: isComplete || !isCounted ? deadLetters.length : await this.count(filter),
      lanes: countLanes(deadLetters),
      events: deadLetters.reduce((sum, deadLetter) => sum + deadLetter.events.length, 0),
      blocking: deadLetters.filter(isBlocking).length,
      exact: isComplete,
    }
  }

  /** `reasons` groups the newest dead letters by why they died, and unrouted events with `kind` unrouted or without `kind`. */
  async reasons(filter: DeadLetterFilter = {}): Promise<DeadLetterReasons> {
    const store = await this.#deps.store()
    const { now } = await store.readDocs({ kind: 'flow', ids: [], after: '', n: 1 })
    const kinds = filter.kind === undefined ? (['run', 'unrouted'] as const) : [filter.kind]
    const scans = await Promise.all(kinds.map((kind) => this.#scan({ ...filter, kind })))
    const deadLetters = scans.flatMap((scan) => scan.deadLetters)
    const exact = scans.every((scan) => scan.isComplete)
    const isCounted = filter.reason === undefined && !exact
    const counts = isCounted ? await Promise.all(kinds.map((kind) => this.count({ ...filter, kind }))) : []
    const total = isCounted ? counts.reduce((sum, count) => sum + count, 0) : deadLetters.length
    return { now, total, exact, groups: groupDeadLetters(deadLetters, now) }
  }

  #scan(filter: DeadLetterFilter): Promise<DeadLetterScan> {
    return scanDeadLetters(this.#deps.clock, (cursor, n) => this.list(filter, cursor, n))
  }

  async show(id: string): Promise<(DeadLetter & { readonly contents: readonly FlowEvent[] }) | undefined> {
    const store = await this.#deps.store()
    const deadLetter = await this.#get(store, id)
    return deadLetter === undefined
      ? undefined
      : { ...deadLetter, contents: await readDeadLetterEvents(store, deadLetter.events) }
  }

  /** `retry` runs the same run again before the waiting events of its lane, with all its attempts. */
  retry(selection: string | DeadLetterFilter): Promise<SteerResult | { readonly count: number }> {
    return this.#act(selection, 'retry')
  }

  drop(selection: string | DeadLetterFilter): Promise<SteerResult | { readonly count: number }> {
    return this.#act(selection, 'drop')
  }

  /** `act` retries or drops the newest `limit` matches, and returns their number and the id under which `progress` shows them. */
  async act(
    act: DeadLetterAct,
    filter: DeadLetterFilter,
    { limit = Infinity, by = '' }: { readonly limit?: number; readonly by?: string } = {},
  ): Promise<{ readonly count: number; readonly act: string }> {
    const steered = await this.#actOnMatches(filter, act, limit)
    const ids = steered.map(({ id }) => id)
    return { count: ids.length, act: await this.#acts.record(act, by, ids) }
  }

  /** `progress` shows what became of the dead letters of an act, among the last 50 acts. */
  progress(act: string): Promise<DeadLetterProgress | undefined> {
    return this.#acts.show(act)
  }

  /** `export` yields one JSON text per dead letter, with its events and their bytes. */
  async *export(filter: DeadLetterFilter = {}): AsyncGenerator<string> {
    const store = await this.#deps.store()
    for await (const deadLetter of this.#each(filter)) {
      const contents = await readDeadLetterEvents(store, deadLetter.events)
      yield JSON.stringify({ ...deadLetter, events: contents.map(toExportedEvent) })
    }
  }

  async exportPage(filter: DeadLetterFilter = {}, cursor = '', n = 20): Promise<Page<ExportedDeadLetter>> {
    const store = await this.#deps.store()
    // Reads one at a time, because the next dead letter may be a thousand times as large.
    const page = { cursor, n, weightOf: jsonLength, most: EXPORT_PAGE_LENGTH, first: 1, growth: 1 }
    return findPageByWeight<ExportedDeadLetter>(page, async (from, one) => {
      const { items, next } = await this.list(filter, from, one)
      const [deadLetter] = items
      if (deadLetter === undefined) return { items: [], next }
      return {
        items: [
          { ...deadLetter, contents: (await readDeadLetterEvents(store, deadLetter.events)).map(toExportedEvent) },
        ],
        next,
      }
    })
  }

  async #act(
    selection: string | DeadLetterFilter,
    act: 'retry' | 'drop',
  ): Promise<SteerResult | { readonly count: number }> {
    const store = await this.#deps.store()
    if (typeof selection === 'string') {
      const deadLetter = act === 'retry' ? await this.#get(store, selection) : undefined
      const [result = 'missing'] = await steerDeadLetters(store, [selection], act)
      if (deadLetter !== undefined && result === 'ok') await this.#retried([nameOf(deadLetter)])
      return result
    }
    return { count: (await this.#actOnMatches(selection, act, Infinity)).length }
  }

  async #actOnMatches(filter: DeadLetterFilter, act: DeadLetterAct, limit: number): Promise<readonly DeadLetterName[]> {
    const store = await this.#deps.store()
    const deadLetters: DeadLetterName[] = []
    for await (const deadLetter of this.#each(filter)) {
      deadLetters.push(nameOf(deadLetter))
      if (deadLetters.length >= limit) break
    }
    const steered: DeadLetterName[] = []
    for (let from = 0; from < deadLetters.length; from += PAGE) {
      const page = deadLetters.slice(from, from + PAGE)
      const results = await steerDeadLetters(
        store,
        page.map(({ id }) => id),
        act,
      )
      steered.push(...page.filter((_, at) => results[at] === 'ok'))
    }
    if (act === 'retry') await this.#retried(steered)
    return steered
  }

  async #retried(deadLetters: readonly DeadLetterName[]): Promise<void> {
    if (deadLetters.some(({ kind }) => kind === 'unrouted')) this.#deps.retryUnrouted()
    const runs = deadLetters.filter(({ kind }) => kind === 'run')
    const lanes = new Map(runs.map((one) => [JSON.stringify([one.flow, one.key]), one]))
    await this.#deps.deliveries().retried([...lanes.values()])
  }

  async *#each(filter: DeadLetterFilter): AsyncGenerator<DeadLetter> {
    let cursor: string | undefined = ''
    while (cursor !== undefined) {
      const page: Page<DeadLetter> = await this.list(filter, cursor, PAGE)
      yield* page.items
      cursor = page.next
    }
  }

  #toStoreFilter(filter: DeadLetterFilter): RecordFilter {
    // A misread filter would act on every dead letter.
    if (typeof filter !== 'object' || filter === null)
      throw invalid('the filter must be an object, or the id of a dead letter.')
    assertKnownOptions(filter, ['kind', 'flow', 'key', 'tenant', 'subject', 'reason', 'from', 'to'], 'deadLetters: ')
    const { flow, key, tenant, subject, from, to } = filter
    if (key !== undefined && flow === undefined) throw invalid('key must be used together with flow.')
    const lane = flow !== undefined && key !== undefined ? { lane: resolveLaneId(this.#deps.flows, flow, key) } : {}
    const given = Object.entries({ flow, tenant, subject, from, to }).filter(([, value]) => value !== undefined)
    return { ...Object.fromEntries(given), ...lane }
  }

  async #get(store: Store, id: string): Promise<DeadLetter | undefined> {
    if (id.startsWith(UNROUTED_PREFIX)) {
      const { item } = await store.get({ kind: 'unrouted', id: id.slice(UNROUTED_PREFIX.length) })
      return item === undefined ? undefined : fromUnroutedRecord(item)
    }
    const { item } = await store.get({ kind: 'dead', id })
    return item === undefined ? undefined : fromDeadLetterRecord(item)
  }
}

/** What is kept of each match, so that many matches need little memory. */
type DeadLetterName = Pick<DeadLetter, 'id' | 'kind' | 'flow'> & { readonly key: string }

function nameOf(deadLetter: DeadLetter): DeadLetterName {
  const { id, kind, flow } = deadLetter
  return { id, kind, flow, key: deadLetter.kind === 'run' ? deadLetter.key : '' }
}

function invalid(message: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `deadLetters: ${message}`)
}

async function steerDeadLetters(
  store: Store,
  ids: readonly string[],
  act: 'retry' | 'drop',
): Promise<readonly SteerResult[]> {
  const unrouted = ids
    .filter((id) => id.startsWith(UNROUTED_PREFIX))
    .map((id) => Number(id.slice(UNROUTED_PREFIX.length)))
  const runs = ids.filter((id) => !id.startsWith(UNROUTED_PREFIX))
  const ofRuns = runs.length === 0 ? [] : (await store.steer({ what: 'dead', ids: runs, act })).results
  const ofUnrouted = unrouted.length === 0 ? [] : (await store.steer({ what: 'unrouted', ids: unrouted, act })).results
  return [...ofRuns, ...ofUnrouted]
}

function fromDeadLetterRecord(deadLetter: DeadLetterRecord): DeadLetter {
  const { id, lane, flow, key, tenant, reason, at, state, tries, lapses, blocks, attempts, events } = deadLetter
  return { kind: 'run', id, lane, flow, key, tenant, reason, at, state, tries, lapses, blocks, attempts, events }
}

function fromUnroutedRecord(entry: UnroutedRecord): DeadLetter {
  const { id, flow, reason, error, since, tries, event } = entry
  return { kind: 'unrouted', id: `${UNROUTED_PREFIX}${id}`, flow, reason, error, at: since, tries, events: [event] }
}

async function readDeadLetterEvents(store: Store, events: readonly string[]): Promise<readonly FlowEvent[]> {
  const found = await Promise.all(events.map((id) => store.get({ kind: 'events', id })))
  return found.flatMap(({ item }) => {
    return item?.body === undefined ? [] : new FlowEvent({ ...item, body: item.body })
  })
}

function toExportedEvent(event: FlowEvent): ExportedEvent {
  return { ...event.toJSON(), body64: Buffer.from(event.body).toString('base64') }
}
