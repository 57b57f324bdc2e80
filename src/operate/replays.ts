// Stored events run again: counted first, placed behind the live ones at a pace of their own, ended at a word (L16).
// A replay is a lane like any other: each of its runs places one page and publishes the next step.
import { randomUUID } from 'node:crypto'
import { NEVER, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { SHORTEST_PER } from '../limit/options.ts'
import { millis, type Duration } from '../model/duration.ts'
import { laneId } from '../model/identity.ts'
import { onlyKnown } from '../model/options.ts'
import type { Filter, Store } from '../store/contract/index.ts'
import { countAll } from './count-all.ts'
import type { OperateParts } from './lanes.ts'
import { laneOf } from './name-lane.ts'
import { MOST_REPLAYS, readReplay, readReplays, writeReplay, type ReplayRecord } from './replay-record.ts'

/** Which events: all of these together. Times are those of arrival. */
export interface ReplayFilter {
  readonly source?: string
  readonly type?: string
  readonly tenant?: string
  /** Those that were in one lane: both, or neither. */
  readonly flow?: string
  readonly key?: string
  readonly from?: Date | Millis
  readonly to?: Date | Millis
  /** One alone, by its id. */
  readonly event?: string
}

export interface ReplayOptions {
  /** The same id is the same replay: begun once, however often it is asked for. */
  readonly id?: string
  /** The flows that get the events, if they want them; all that this app declares unless said. */
  readonly into?: string | readonly string[]
  /** Events in `per`, a second unless said; 100 unless said. */
  readonly rate?: number
  readonly per?: Duration
}

/** `stuck`: it failed too often, and waits among the dead letters of the flow `sluice.replay` to be retried. */
export interface Replay extends Omit<ReplayRecord, 'cursor' | 'step' | 'until' | 'state'> {
  readonly state: ReplayRecord['state'] | 'stuck'
}

export interface ReplaysParts extends OperateParts {
  /** What the names of the engine's own sources begin with: what it publishes to itself is nobody else's business. */
  readonly ownSources: string
  /** Begins, or goes on: the event that the next run of the replay's lane is for. */
  readonly step: (of: ReplayRecord) => Promise<unknown>
}

export const REPLAY_FLOW = 'sluice.replay'

const FILTERS: ReadonlySet<string> = new Set<keyof ReplayFilter>([
  'source',
  'type',
  'tenant',
  'flow',
  'key',
  'from',
  'to',
  'event',
])
const OPTIONS: ReadonlySet<string> = new Set<keyof ReplayOptions>(['id', 'into', 'rate', 'per'])
const ID_LENGTH_MAX = 200
const DEFAULT_RATE = 100

export class Replays {
  readonly #parts: ReplaysParts

  constructor(parts: ReplaysParts) {
    this.#parts = parts
  }

  /** How many events a replay by this filter would look at. */
  async count(filter: ReplayFilter): Promise<number> {
    const wanted = this.#filterOf(filter)
    const store = await this.#parts.store()
    return countOf(store, wanted, filter.event)
  }

  /** Answers once it is stored that these events are to be run again; runs them by and by. */
  async start(filter: ReplayFilter, options: ReplayOptions = {}): Promise<Replay> {
    onlyKnown(options, OPTIONS, 'replays: ')
    const wanted = this.#filterOf(filter)
    const into = this.#into(options.into)
    const pace = paceOf(options)
    const id = idOf(options.id)
    const store = await this.#parts.store()
    await this.#mustBeTheirs(store, filter.event)
    const known = await this.#known(store, id, { filter: wanted, event: filter.event, into })
    if (known !== undefined) return known
    const now = await makeRoom(store)
    const until = Math.min(wanted.to ?? Infinity, now + 1)
    const found = await countOf(store, { ...wanted, to: until }, filter.event)
    const record: ReplayRecord = {
      id,
      state: 'running',
      filter: wanted,
      event: filter.event,
      into,
      ...pace,
      started: now,
      ended: undefined,
      found,
      looked: 0,
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
    if (isFirst) this.#parts.emit('replay.started', { replay: id, found })
    if (!isFirst) return this.start(filter, { ...options, id })
    await this.#parts.step(record)
    return shown(record)
  }

  async show(id: string): Promise<Replay | undefined> {
    const store = await this.#parts.store()
    const kept = await readReplay(store, id)
    return kept === undefined ? undefined : withState(store, kept.record)
  }

  /** Newest first. */
  async list(): Promise<readonly Replay[]> {
    const store = await this.#parts.store()
    const records = (await readReplays(store)).all.map(({ record }) => record)
    const all = records.toSorted((one, other) => other.started - one.started)
    return Promise.all(all.map((record) => withState(store, record)))
  }

  /** Nothing more is placed; what was placed already runs. */
  async cancel(id: string): Promise<'ok' | 'already' | 'missing'> {
    const store = await this.#parts.store()
    for (;;) {
      const kept = await readReplay(store, id)
      if (kept === undefined) return 'missing'
      if (kept.record.state !== 'running') return 'already'
      const { now } = kept
      const record: ReplayRecord = { ...kept.record, state: 'cancelled', ended: now }
      // Lost to a page that was being written: another look, for it is progress.
      if ((await writeReplay(store, record, kept.rev)) !== 'written') continue
      this.#parts.emit('replay.cancelled', { replay: id, placed: record.placed })
      return 'ok'
    }
  }

  async #known(
    store: Store,
    id: string,
    asked: Pick<ReplayRecord, 'filter' | 'event' | 'into'>,
  ): Promise<Replay | undefined> {
    const kept = await readReplay(store, id)
    if (kept === undefined) return undefined
    const { filter, event, into, state } = kept.record
    if (JSON.stringify([filter, event, into]) !== JSON.stringify([asked.filter, asked.event, asked.into])) {
      throw invalid(`id ${JSON.stringify(id)} is that of another replay, with another filter; choose a new one.`)
    }
    if (state === 'running') await this.#parts.step(kept.record)
    return withState(store, kept.record)
  }

  /** By its id an event is found that no filter would give. */
  async #mustBeTheirs(store: Store, event: string | undefined): Promise<void> {
    if (event === undefined) return
    const { item } = await store.get({ kind: 'events', id: event })
    if (item?.source.startsWith(this.#parts.ownSources) !== true) return
    throw invalid(`event ${JSON.stringify(event)} is the engine's own; nobody else has a use for it.`)
  }

  #filterOf(filter: ReplayFilter): Filter {
    // A filter that is misread would run everything again.
    if (typeof filter !== 'object' || filter === null) throw invalid('the filter is an object; {} is every event.')
    onlyKnown(filter, FILTERS, 'replays: ')
    const { source, type, tenant, flow, key, event } = filter
    for (const [name, value] of Object.entries({ source, type, tenant, flow, key, event })) {
      if (value !== undefined && typeof value !== 'string') throw invalid(`${name} is a text.`)
    }
    if ((flow === undefined) !== (key === undefined)) {
      throw invalid('flow and key come together, and name a lane; into names flows.')
    }
    if (event !== undefined && Object.values(filter).filter((value) => value !== undefined).length > 1) {
      throw invalid('event is one event, whatever else; leave the others out.')
    }
    const lane = flow !== undefined && key !== undefined ? laneOf(this.#parts.flows, flow, key) : undefined
    const times = { from: momentOf(filter.from, 'from'), to: momentOf(filter.to, 'to') }
    const given = Object.entries({ source, type, tenant, lane, ...times }).filter(([, value]) => value !== undefined)
    return { ...Object.fromEntries(given), withoutSource: this.#parts.ownSources }
  }

  #into(into: ReplayOptions['into']): readonly string[] {
    const theirs = [...this.#parts.flows.values()].filter((flow) => !flow.internal).map((flow) => flow.name)
    const names = into === undefined ? theirs : [into].flat()
    if (names.length === 0) throw invalid('into names no flow; name one, or declare one.')
    const unknown = names.find((name) => !theirs.includes(name))
    if (unknown !== undefined) throw invalid(`into names ${JSON.stringify(unknown)}, which is no flow of this app.`)
    return names
  }
}

/** Whoever began one may have died before its first step was stored. A step that is known already changes nothing. */
export async function goOnWithReplays(store: Store, step: ReplaysParts['step']): Promise<void> {
  for (const { record } of (await readReplays(store)).all) if (record.state === 'running') await step(record)
}

async function countOf(store: Store, filter: Filter, event: string | undefined): Promise<number> {
  if (event !== undefined) return (await store.get({ kind: 'events', id: event })).item === undefined ? 0 : 1
  return countAll(store, { kind: 'events', filter })
}

/** Records of what is over are kept as long as there is room. Answers what time it is. */
async function makeRoom(store: Store): Promise<Millis> {
  const { all, now } = await readReplays(store)
  if (all.length < MOST_REPLAYS) return now
  const over = all.filter(({ record }) => record.state !== 'running')
  const [oldest] = over.toSorted((one, other) => one.record.started - other.record.started)
  if (oldest === undefined) throw invalid(`${MOST_REPLAYS} of them are running; cancel one, or wait.`)
  await writeReplay(store, oldest.record, oldest.rev, 'remove')
  return now
}

async function withState(store: Store, record: ReplayRecord): Promise<Replay> {
  if (record.state !== 'running') return shown(record)
  const filter = { lane: laneId(REPLAY_FLOW, record.id) }
  const { items } = await store.find({ kind: 'dead', filter, cursor: '', n: 1 })
  const [letter] = items
  if (letter?.state !== 'dead') return shown(record)
  return { ...shown(record), state: 'stuck', error: letter.attempts.at(-1)?.error ?? letter.reason }
}

function shown(record: ReplayRecord): Replay {
  const { cursor: _cursor, step: _step, until: _until, ...replay } = record
  return replay
}

function paceOf({ rate = DEFAULT_RATE, per = '1s' }: ReplayOptions): Pick<ReplayRecord, 'rate' | 'per'> {
  if (!Number.isSafeInteger(rate) || rate < 1) throw invalid(`rate is ${String(rate)}; it is a whole number from 1 up.`)
  const length = millis(per, 'replays: per')
  if (length >= SHORTEST_PER && length < NEVER) return { rate, per: length }
  throw invalid(`per is ${length} ms; it is from '${SHORTEST_PER}ms' up.`)
}

function idOf(id: string = randomUUID()): string {
  // GET /v1/replays/count is no replay.
  if (id === 'count') throw invalid('id is "count", which nothing could be asked by; choose another one.')
  if (typeof id === 'string' && id !== '' && id.length <= ID_LENGTH_MAX && id.isWellFormed()) return id
  throw invalid(`id is a text of 1 to ${ID_LENGTH_MAX} characters.`)
}

function momentOf(time: Date | Millis | undefined, name: string): Millis | undefined {
  if (time === undefined) return undefined
  const at = time instanceof Date ? time.getTime() : time
  if (Number.isFinite(at)) return at
  throw invalid(`${name} is a Date, or milliseconds since 1970.`)
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `replays: ${what}`)
}
