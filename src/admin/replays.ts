// `Replays` runs stored events again: it counts them first, places them behind live events at their own rate, and can
// be cancelled (L16). A replay is a lane: each of its runs places one page and publishes the next step.
import { randomUUID } from 'node:crypto'
import { NEVER, type Clock, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { MIN_PER } from '../limit/options.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { laneId } from '../model/identity.ts'
import { assertKnownOptions, assertWholeNumber, invalidOption } from '../validate/options.ts'
import type { DeadLetterRecord, RecordFilter, Store } from '../store/contract/index.ts'
import type { OperatorDependencies } from './lanes.ts'
import { resolveLaneId } from './lane-view.ts'
import { countAll } from './pages.ts'
import { planReplay, type ReplayPlan } from './replay-plan.ts'
import { MAX_REPLAYS, readReplay, readReplays, writeReplay, type ReplayRecord } from './replay-record.ts'

/** All given conditions must match. Times are arrival times. */
export interface ReplayFilter {
  readonly source?: string
  readonly type?: string
  readonly tenant?: string
  readonly subject?: string
  /** Events of one lane: give both or neither. */
  readonly flow?: string
  readonly key?: string
  readonly from?: Date | Millis
  readonly to?: Date | Millis
  /** One event, by its id. */
  readonly event?: string
}

export interface ReplayOptions {
  /** Starting a replay with the same id again has no effect. */
  readonly id?: string
  /** The flows that get the events they match. Default: all flows of this app. */
  readonly into?: string | readonly string[]
  /** At most `rate` events per `per`. Default 100 per second. */
  readonly rate?: number
  readonly per?: Duration
  /** Only this many of the events, the oldest ones: a try before all of them run. */
  readonly most?: number
}

/** `stuck` means that the replay failed too often: it is a dead letter of the flow `sluice.replay`. */
export interface Replay extends Omit<ReplayRecord, 'cursor' | 'step' | 'until' | 'isPlaced' | 'state'> {
  readonly state: ReplayRecord['state'] | 'stuck'
}

export interface ReplaysDependencies extends OperatorDependencies {
  readonly clock: Clock
  /** The prefix of Sluice's own sources, whose events cannot be replayed. */
  readonly reservedSourcePrefix: string
  /** Publishes the event for the next run of the replay's lane, which starts or continues the replay. */
  readonly publishStep: (of: ReplayRecord) => Promise<unknown>
}

export const REPLAY_FLOW = 'sluice.replay'

const ID_LENGTH_MAX = 200
const DEFAULT_RATE = 100
/** The endpoint itself sets the pace of its history, because the next events are placed when it has got those before. */
const HISTORY_RATE = { rate: 1_000, per: 1_000 } as const
/** How far the arrival time of a stored event may lie in the future. */
const ESTIMATE_MARGIN: Millis = 60_000

export interface HistoryToSend {
  readonly endpoint: string
  readonly tenant: string
  readonly from: Millis
  /** The deliveries. */
  readonly into: readonly string[]
}

type ReplayRequest = Pick<
  ReplayRecord,
  'id' | 'filter' | 'event' | 'into' | 'rate' | 'per' | 'endpoint' | 'isHistory' | 'most'
>

export class Replays {
  readonly #deps: ReplaysDependencies

  constructor(deps: ReplaysDependencies) {
    this.#deps = deps
  }

  /** `count` returns how many events a replay with this filter would read. */
  async count(filter: ReplayFilter): Promise<number> {
    const wanted = this.#toStoreFilter(filter)
    const store = await this.#deps.store()
    return countReplayedEvents(store, wanted, filter.event)
  }

  /** `plan` returns what a replay would do, from a sample of the newest matching events. */
  async plan(filter: ReplayFilter, into?: ReplayOptions['into']): Promise<ReplayPlan> {
    const wanted = this.#toStoreFilter(filter)
    const flows = this.#targetFlows(into).flatMap((name) => this.#deps.flows.get(name) ?? [])
    const store = await this.#deps.store()
    return planReplay({ store, clock: this.#deps.clock, filter: wanted, event: filter.event, flows })
  }

  /** `start` returns once the replay is stored. The events are placed in the background. */
  async start(filter: ReplayFilter, options: ReplayOptions = {}): Promise<Replay> {
    assertKnownOptions(options, ['id', 'into', 'rate', 'per', 'most'], 'replays: ')
    const wanted = this.#toStoreFilter(filter)
    const into = this.#targetFlows(options.into)
    const pace = parseRate(options)
    const id = parseReplayId(options.id)
    const { most } = options
    if (most !== undefined) assertWholeNumber(most, 1, 'replays: most')
    const store = await this.#deps.store()
    await this.#assertSourceNotReserved(store, filter.event)
    const limited = most === undefined ? {} : { most }
    return this.#begin(store, { id, filter: wanted, event: filter.event, into, ...limited, ...pace })
  }

  /** `sendAgain` is `start` for one endpoint. One replay of an endpoint runs at a time. */
  async sendAgain(endpoint: string, filter: ReplayFilter, { into, ...pace }: ReplayOptions): Promise<Replay> {
    const [wanted, flows, rate] = [this.#toStoreFilter(filter), this.#targetFlows(into), parseRate(pace)]
    const store = await this.#deps.store()
    const { all } = await readReplays(store)
    const other = all.find(({ record }) => record.endpoint === endpoint && record.state === 'running')
    if (other !== undefined) {
      const text = `The replay ${other.record.id} to this endpoint is running. Wait for its end, or cancel it.`
      throw new SluiceError('CONFLICT', text)
    }
    return this.#begin(store, { id: parseReplayId(), filter: wanted, event: undefined, into: flows, endpoint, ...rate })
  }

  /** `sendHistory` places the events since `from` before the live events of a new endpoint. */
  async sendHistory(id: string, { endpoint, tenant, from, into }: HistoryToSend): Promise<Replay> {
    const store = await this.#deps.store()
    const filter = { ...(tenant !== '' && { tenant }), from, withoutSource: this.#deps.reservedSourcePrefix }
    return this.#begin(store, { id, filter, event: undefined, into, endpoint, isHistory: true, ...HISTORY_RATE })
  }

  async #begin(store: Store, request: ReplayRequest): Promise<Replay> {
    const { id, event, filter, isHistory = false } = request
    const known = await this.#findExisting(store, request)
    if (known !== undefined) return known
    const now = await removeOldReplays(store)
    // An event of a history whose arrival was estimated may seem to be later than the endpoint. It is not placed twice.
    const until = Math.min(filter.to ?? Infinity, now + (isHistory ? ESTIMATE_MARGIN : 1))
    const found = await countReplayedEvents(store, { ...filter, to: until }, event)
    const record: ReplayRecord = {
      ...request,
      state: 'running',
      started: now,
      ended: undefined,
      found: Math.min(found, request.most ?? Infinity),
      scanned: 0,
      placed: 0,
      skipped: 0,
      gone: 0,
      failed: 0,
      error: '',
      until,
      cursor: '',
      step: 0,
    }
    const isFirst = (await writeReplay(store, record, 0)) === 'written'
    if (isFirst) this.#deps.emit('replay.started', { replay: id, found })
    if (!isFirst) return this.#begin(store, request)
    await this.#deps.publishStep(record)
    return toReplay(record)
  }

  async show(id: string): Promise<Replay | undefined> {
    const store = await this.#deps.store()
    const kept = await readReplay(store, id)
    return kept === undefined ? undefined : readReplayState(store, kept.record)
  }

  /** `list` returns the newest replay first. */
  async list(): Promise<readonly Replay[]> {
    const store = await this.#deps.store()
    const records = (await readReplays(store)).all.map(({ record }) => record)
    const all = records.toSorted((one, other) => other.started - one.started)
    return Promise.all(all.map((record) => readReplayState(store, record)))
  }

  async countRunning(): Promise<number> {
    const store = await this.#deps.store()
    return (await readReplays(store)).all.filter(({ record }) => record.state === 'running').length
  }

  /** `cancel` stops placing events. Events that are already placed still run. */
  async cancel(id: string): Promise<'ok' | 'already' | 'missing'> {
    const store = await this.#deps.store()
    for (;;) {
      const kept = await readReplay(store, id)
      if (kept === undefined) return 'missing'
      if (kept.record.state !== 'running') return 'already'
      const { now } = kept
      const record: ReplayRecord = { ...kept.record, state: 'cancelled', ended: now, step: kept.record.step + 1 }
      // A concurrent page won the write, which is progress; read again.
      if ((await writeReplay(store, record, kept.rev)) !== 'written') continue
      this.#deps.emit('replay.cancelled', { replay: id, placed: record.placed })
      // The next step ends a history.
      if (record.isHistory === true) await this.#deps.publishStep(record)
      return 'ok'
    }
  }

  /** `resume` continues a cancelled replay from the first event that it has not read. */
  async resume(id: string): Promise<'ok' | 'already' | 'missing'> {
    const store = await this.#deps.store()
    for (;;) {
      const kept = await readReplay(store, id)
      if (kept === undefined) return 'missing'
      const { state, isHistory, step, found } = kept.record
      if (state !== 'cancelled') return 'already'
      if (isHistory === true) {
        const text =
          'The live events of the endpoint have followed its cancelled history. Replay the rest to the endpoint.'
        throw new SluiceError('CONFLICT', text)
      }
      const record: ReplayRecord = { ...kept.record, state: 'running', ended: undefined, step: step + 1 }
      if ((await writeReplay(store, record, kept.rev)) !== 'written') continue
      this.#deps.emit('replay.started', { replay: id, found })
      await this.#deps.publishStep(record)
      return 'ok'
    }
  }

  async #findExisting(store: Store, requested: ReplayRequest): Promise<Replay | undefined> {
    const { id } = requested
    const kept = await readReplay(store, id)
    if (kept === undefined) return undefined
    const { state, isHistory } = kept.record
    // The id of a history is Sluice's own, and another process may have other deliveries.
    if (isHistory !== true && describeRequest(kept.record) !== describeRequest(requested)) {
      throw invalid(`id ${JSON.stringify(id)} belongs to a replay with another filter. Choose another id.`)
    }
    if (state === 'running') await this.#deps.publishStep(kept.record)
    return readReplayState(store, kept.record)
  }

  /** An id also finds Sluice's own events, which no filter returns. */
  async #assertSourceNotReserved(store: Store, event: string | undefined): Promise<void> {
    if (event === undefined) return
    const { item } = await store.get({ kind: 'events', id: event })
    if (item?.source.startsWith(this.#deps.reservedSourcePrefix) !== true) return
    throw invalid(`event ${JSON.stringify(event)} is an internal event of Sluice and cannot be replayed.`)
  }

  #toStoreFilter(filter: ReplayFilter): RecordFilter {
    // A misread filter would replay everything.
    if (typeof filter !== 'object' || filter === null)
      throw invalid('the filter must be an object. {} selects every event.')
    assertKnownOptions(
      filter,
      ['source', 'type', 'tenant', 'subject', 'flow', 'key', 'from', 'to', 'event'],
      'replays: ',
    )
    const { source, type, tenant, subject, flow, key, event } = filter
    for (const [name, value] of Object.entries({ source, type, tenant, subject, flow, key, event })) {
      if (value !== undefined && typeof value !== 'string') throw invalid(`${name} must be a string.`)
    }
    if ((flow === undefined) !== (key === undefined)) {
      throw invalid('flow and key must be used together, to name a lane. Use into to name flows.')
    }
    if (event !== undefined && Object.values(filter).filter((value) => value !== undefined).length > 1) {
      throw invalid('event must be the only filter. Remove the others.')
    }
    const lane = flow !== undefined && key !== undefined ? resolveLaneId(this.#deps.flows, flow, key) : undefined
    const times = { from: parseTime(filter.from, 'from'), to: parseTime(filter.to, 'to') }
    const given = Object.entries({ source, type, tenant, subject, lane, ...times }).filter(
      ([, value]) => value !== undefined,
    )
    return { ...Object.fromEntries(given), withoutSource: this.#deps.reservedSourcePrefix }
  }

  #targetFlows(into: ReplayOptions['into']): readonly string[] {
    const theirs = [...this.#deps.flows.values()].filter((flow) => !flow.isInternal).map((flow) => flow.name)
    const names = into === undefined ? theirs : [into].flat()
    if (names.length === 0) throw invalid('into must name at least one flow. Name one, or declare one.')
    const unknown = names.find((name) => !theirs.includes(name))
    if (unknown !== undefined) throw invalid(`into must name flows of this app; got ${JSON.stringify(unknown)}.`)
    return names
  }
}

/** `resumeReplays` publishes the step of each running replay, which a process that died may not have stored. */
export async function resumeReplays(store: Store, step: ReplaysDependencies['publishStep']): Promise<void> {
  for (const { record } of (await readReplays(store)).all) if (record.state === 'running') await step(record)
}

/** `resumeReplay` does that for one replay, unless its lane has work. It returns false if the replay does not exist. */
export async function resumeReplay(
  store: Store,
  id: string,
  step: ReplaysDependencies['publishStep'],
): Promise<boolean> {
  const kept = await readReplay(store, id)
  if (kept === undefined) return false
  const { item } = await store.get({ kind: 'lanes', id: laneId(REPLAY_FLOW, id) })
  if (item === undefined && !(await isStuck(store, kept.record))) await step(kept.record)
  return true
}

function describeRequest({ filter, event, into, endpoint, most }: ReplayRequest): string {
  return JSON.stringify([filter, event, into, endpoint, most])
}

async function countReplayedEvents(store: Store, filter: RecordFilter, event: string | undefined): Promise<number> {
  if (event !== undefined) return (await store.get({ kind: 'events', id: event })).item === undefined ? 0 : 1
  return countAll(store, { kind: 'events', filter })
}

/** Removes old records of ended replays when there are too many, and returns the current time of the store. */
async function removeOldReplays(store: Store): Promise<Millis> {
  const { all, now } = await readReplays(store)
  if (all.length < MAX_REPLAYS) return now
  const over = all.filter(({ record }) => record.state !== 'running')
  const [oldest] = over.toSorted((one, other) => one.record.started - other.record.started)
  if (oldest === undefined) throw invalid(`${MAX_REPLAYS} replays are running. Cancel one, or wait.`)
  await writeReplay(store, oldest.record, oldest.rev, 'remove')
  return now
}

async function readReplayState(store: Store, record: ReplayRecord): Promise<Replay> {
  if (record.state !== 'running') return toReplay(record)
  const deadLetter = await findDeadStep(store, record)
  if (deadLetter?.state !== 'dead') return toReplay(record)
  return { ...toReplay(record), state: 'stuck', error: deadLetter.attempts.at(-1)?.error ?? deadLetter.reason }
}

async function isStuck(store: Store, record: ReplayRecord): Promise<boolean> {
  return (await findDeadStep(store, record)) !== undefined
}

async function findDeadStep(store: Store, { id }: ReplayRecord): Promise<DeadLetterRecord | undefined> {
  const { items } = await store.find({ kind: 'dead', filter: { lane: laneId(REPLAY_FLOW, id) }, cursor: '', n: 1 })
  return items[0]
}

function toReplay(record: ReplayRecord): Replay {
  const { cursor: _cursor, step: _step, until: _until, isPlaced: _placed, ...replay } = record
  return replay
}

function parseRate({ rate = DEFAULT_RATE, per = '1s' }: ReplayOptions): Pick<ReplayRecord, 'rate' | 'per'> {
  assertWholeNumber(rate, 1, 'replays: rate')
  const length = parseDuration(per, 'replays: per')
  if (length >= MIN_PER && length < NEVER) return { rate, per: length }
  throw invalid(`per must be at least '${MIN_PER}ms'; got ${length} ms.`)
}

function parseReplayId(id: string = randomUUID()): string {
  // These paths of the API are not replays.
  if (id === 'count' || id === 'plan')
    throw invalid(`id must not be "${id}", which is a path of the API. Choose another id.`)
  if (typeof id === 'string' && id !== '' && id.length <= ID_LENGTH_MAX && id.isWellFormed()) return id
  throw invalid(`id must be a string of 1 to ${ID_LENGTH_MAX} characters.`)
}

function parseTime(time: Date | Millis | undefined, name: string): Millis | undefined {
  if (time === undefined) return undefined
  const at = time instanceof Date ? time.getTime() : time
  if (Number.isFinite(at)) return at
  throw invalid(`${name} must be a Date, or milliseconds since 1970.`)
}

function invalid(message: string): SluiceError {
  return invalidOption(`replays: ${message}`)
}
