// `RedisRecords` searches and counts records. A search reads a part of an index, newest first by default, and filters it here, so each call
// visits a bounded number of records.
import { NEVER, type Millis } from '../../clock.ts'
import type {
  CountCall,
  EventRecord,
  FindCall,
  FlowStats,
  LimitStats,
  RecordFilter,
  RecordKind,
  RecordTypes,
} from '../contract/index.ts'
import { MAX_PLACED } from '../contract/records.ts'
import { matchesFilter } from '../core/record-filter.ts'
import { parseRunNumber } from '../core/commit-context.ts'
import {
  toDeadLetterRecord,
  toRunRecord,
  toUnroutedRecord,
  type RecordCount,
  type RecordPage,
  type RecordQueries,
  type ResolveEventIds,
  type TableStats,
} from '../core/tables.ts'
import { computeStretch } from '../../model/limit.ts'
import { eventRange, type EventHead } from './events.ts'
import type { NamedLimit } from './limits.ts'
import { leasedRange, parseFlow, parseQueue } from './lanes.ts'
import type { RedisTables } from './tables.ts'
import type { TableView } from './table-view.ts'
import { groupRange, IN_GROUP, pad, PREFIX_END, prefixRange, type Range } from './texts.ts'
import { laneName, parseReason, UNROUTED_GROUPS } from './work-tables.ts'

/** The most records that one call visits, however few match. */
const MAX_VISITED = 5_000
const MAX_FLOW_GROUPS = 100_000
const LIMITS_SHOWN = 1_000

/** A record, and the number by which it is ordered. */
type OrderedRecord<T> = readonly [order: number, record: T]

interface Visited<T> {
  readonly matching: readonly OrderedRecord<T>[]
  /** The last visited number; undefined if nothing is behind it. */
  readonly end: number | undefined
}

interface Search {
  readonly kind: RecordKind
  readonly filter: RecordFilter
  readonly cursor: string
  readonly isOldestFirst: boolean
  readonly n: number
}

export class RedisRecords implements RecordQueries {
  readonly #tables: RedisTables

  constructor(tables: RedisTables) {
    this.#tables = tables
  }

  find<K extends RecordKind>({ kind, filter, cursor, n, oldestFirst = false }: FindCall<K>): RecordPage<K> {
    const { matching, end } = this.#visit({ kind, filter, cursor, isOldestFirst: oldestFirst, n: n + 1 })
    const shown = matching.slice(0, n)
    const next = matching.length > n ? shown.at(-1)?.[0] : end
    return { items: shown.map(([, record]) => record as RecordTypes[K]), next: next?.toString() }
  }

  count({ kind, filter, cursor, atMost }: CountCall): RecordCount {
    const { matching, end } = this.#visit({ kind, filter, cursor, isOldestFirst: false, n: atMost })
    const count = Math.min(matching.length, atMost)
    return { count, next: (count < atMost ? end : matching[atMost - 1]?.[0])?.toString() }
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    return this.#get(kind, id) as RecordTypes[K] | undefined
  }

  #get(kind: RecordKind, id: string): RecordTypes[RecordKind] | undefined {
    const { lanes, runs, deadLetters, unrouted, docs } = this.#tables
    switch (kind) {
      case 'events':
        return this.#getEvent(id)
      case 'lanes':
        return lanes.get(id)
      case 'runs': {
        const run = runs.view.get(id)
        return run && toRunRecord(run, this.#ids)
      }
      case 'dead': {
        const deadLetter = deadLetters.get(id)
        return deadLetter && toDeadLetterRecord(deadLetter, this.#ids)
      }
      case 'unrouted': {
        const entry = unrouted.view.get(id)
        return entry && toUnroutedRecord(entry, this.#ids)
      }
      case 'audit':
        return docs.audit.get(id)
    }
  }

  #getEvent(id: string): EventRecord | undefined {
    const { events } = this.#tables
    const row = events.findById(id)
    const head = row && events.rows.get(String(row.seq))
    if (row === undefined || head === undefined) return undefined
    const details = { body: row.body, request: row.request, receipts: events.findReceipts(row.seq) }
    return { ...this.#toEventRecord(head), ...details }
  }

  readonly #ids: ResolveEventIds = (seqs) => seqs.flatMap((seq) => this.#tables.events.rows.get(String(seq))?.id ?? [])

  #toEventRecord(head: EventHead): EventRecord {
    const { id, source, type, time, tenant, subject, attributes, arrived, lanes, skips, size, seq } = head
    const { events } = this.#tables
    const unrouted = this.#tables.unrouted.findByEvent(seq).map(({ flow, reason, error }) => ({ flow, reason, error }))
    const facts = { size, purged: head.purgedHash !== '', duplicates: events.findReceipts(seq).length }
    return { id, source, type, time, tenant, subject, attributes, arrived, lanes, unrouted, skips, ...facts }
  }

  /** Visits records behind the cursor until `n` match or too many were visited. */
  #visit(search: Search): Visited<RecordTypes[RecordKind]> {
    const { kind, filter, n } = search
    const { events, lanes, runs, deadLetters, unrouted, docs } = this.#tables
    switch (kind) {
      case 'events': {
        const placed =
          filter.placed === undefined || filter.lane === undefined
            ? undefined
            : this.#findPlaced(filter.lane, filter.placed)
        const rest = placed === undefined ? filter : without(filter, ['lane', 'placed'])
        const isWanted = (event: EventHead): boolean => matchesFilter(event, rest)
        const found =
          placed === undefined
            ? this.#scan(events.rows, eventRange(filter), { ...search, orderOf: ({ seq }: EventHead) => seq, isWanted })
            : this.#among(placed, { ...search, isWanted })
        return mapVisited(found, n, (event) => this.#toEventRecord(event))
      }
      case 'lanes':
        return this.#scan(lanes.view, prefixRange('o'), {
          ...search,
          orderOf: (lane) => lane.row,
          isWanted: (lane) => matchesFilter(lane, filter),
        })
      case 'runs': {
        const range = filter.lane === undefined ? prefixRange('o') : groupRange(laneName(filter.lane))
        const found = this.#scan(runs.view, range, {
          ...search,
          orderOf: (run) => parseRunNumber(run.id),
          isWanted: (run) => matchesFilter(run, filter),
        })
        return mapVisited(found, n, (run) => toRunRecord(run, this.#ids))
      }
      case 'dead': {
        const range = filter.lane === undefined ? prefixRange('o') : groupRange(laneName(filter.lane))
        const rest = without(filter, ['subject'])
        const found = this.#scan(deadLetters.view, range, {
          ...search,
          orderOf: (deadLetter) => deadLetter.order,
          isWanted: (deadLetter) =>
            matchesFilter(deadLetter, rest) &&
            this.#hasSubject(
              filter,
              deadLetter.placements.map((placement) => placement.event),
            ),
        })
        return mapVisited(found, n, (deadLetter) => toDeadLetterRecord(deadLetter, this.#ids))
      }
      case 'unrouted': {
        const rest = without(filter, ['subject'])
        const found = this.#scan(unrouted.view, prefixRange('o'), {
          ...search,
          orderOf: (entry) => entry.id,
          isWanted: (entry) =>
            matchesFilter(
              toUnroutedRecord(entry, () => []),
              rest,
            ) && this.#hasSubject(filter, [entry.event]),
        })
        return mapVisited(found, n, (entry) => toUnroutedRecord(entry, this.#ids))
      }
      case 'audit':
        return this.#scan(docs.audit, prefixRange('o'), {
          ...search,
          orderOf: ({ id }) => id,
          isWanted: (entry) => matchesFilter(entry, filter),
        })
    }
  }

  #hasSubject({ subject }: RecordFilter, events: readonly number[]): boolean {
    if (subject === undefined) return true
    const { rows } = this.#tables.events
    return subject !== '' && events.some((seq) => rows.get(String(seq))?.subject === subject)
  }

  #scan<T>(
    view: TableView<T>,
    range: Range,
    {
      cursor,
      isOldestFirst,
      n,
      orderOf,
      isWanted,
    }: Search & { readonly orderOf: (row: T) => number; readonly isWanted: (row: T) => boolean },
  ): Visited<T> {
    const rest = cutRange(range, cursor, isOldestFirst)
    if (rest === undefined) return { matching: [], end: undefined }
    for (let most = Math.min(2 * n, MAX_VISITED); ; most = Math.min(4 * most, MAX_VISITED)) {
      const found = view.find(rest, most, { isChecked: false })
      const matching = found.filter(isWanted).map((row) => [orderOf(row), row] as const)
      const last = found.at(-1)
      if (found.length < most) return { matching, end: undefined }
      if (matching.length >= n || most === MAX_VISITED) return { matching, end: last && orderOf(last) }
    }
  }

  /** The events among these numbers. */
  #among(
    seqs: readonly number[],
    { cursor, isOldestFirst, isWanted }: Search & { readonly isWanted: (event: EventHead) => boolean },
  ): Visited<EventHead> {
    const direction = isOldestFirst ? 1 : -1
    const behind = [...new Set(seqs)].filter((seq) => cursor === '' || direction * (seq - Number(cursor)) > 0)
    const sorted = behind.toSorted((one, other) => direction * (one - other))
    const found = sorted.flatMap((seq) => this.#tables.events.rows.get(String(seq)) ?? []).filter(isWanted)
    return { matching: found.map((event) => [event.seq, event] as const), end: undefined }
  }

  /** Returns the numbers of the events that wait in the lane, or that its current run has. */
  #findPlaced(id: string, placed: 'waiting' | 'run'): readonly number[] {
    const { lanes, placements, deadLetters } = this.#tables
    const lane = lanes.get(id)
    if (lane === undefined) return []
    const { run } = lane
    if (run?.isDeadLetter === true && placed === 'run') return toEvents(deadLetters.get(run.id)?.placements ?? [])
    return ([0, 1] as const).flatMap((rank) => {
      const upTo = run !== undefined && !run.isDeadLetter && run.rank === rank ? run.upto : -1
      if (placed === 'run') return upTo < 0 ? [] : toEvents(placements.findUpTo(lane, rank, upTo))
      const taken = upTo < 0 ? 0 : (run?.events ?? 0)
      return toEvents(placements.findFirst(lane, rank, MAX_PLACED + taken).filter(({ pos }) => pos > upTo))
    })
  }

  stats(now: Millis): TableStats {
    const { lanes, deadLetters, unrouted, small, limits } = this.#tables
    const flows = new Map<string, FlowStats>()
    const get = (flow: string): FlowStats =>
      flows.get(flow) ?? { flow, lanes: 0, live: 0, due: undefined, paused: undefined }
    for (const { first, count } of lanes.view.findGroups(prefixRange('r'), MAX_FLOW_GROUPS)) {
      const { flow, due } = parseQueue(first)
      const known = get(flow)
      flows.set(flow, { ...known, lanes: known.lanes + count, due: Math.min(known.due ?? NEVER, due) })
    }
    for (const { first } of lanes.view.findGroups(prefixRange('v'), MAX_FLOW_GROUPS)) {
      const name = first.slice(0, first.indexOf(IN_GROUP) + 1)
      const known = get(parseFlow(name))
      flows.set(known.flow, { ...known, live: known.live + lanes.view.count(leasedRange(name, now)) })
    }
    for (const { id, row } of small.findPaused()) flows.set(id, { ...get(id), paused: row })
    for (const { first } of deadLetters.view.findGroups(prefixRange('f'), MAX_FLOW_GROUPS)) {
      const flow = parseFlow(first)
      flows.set(flow, get(flow))
    }
    return {
      flows: [...flows.values()],
      deadLetters: deadLetters.view.count(prefixRange('o')),
      unrouted: this.#countUnrouted(unrouted),
      limits: limits.view
        .find({ ...prefixRange('i'), isReversed: true }, LIMITS_SHOWN, { isChecked: false })
        .map((limit) => toLimitStats(limit, now)),
      bytes: this.#tables.meta.bytes,
    }
  }

  #countUnrouted({ view }: RedisTables['unrouted']): TableStats['unrouted'] {
    const reasons = new Map<string, TableStats['unrouted'][number]>()
    for (const { first, count } of view.findGroups(UNROUTED_GROUPS, UNROUTED_GROUPS.n)) {
      const reason = parseReason(first)
      const name = `a${reason}${IN_GROUP}`
      const [oldest] = view.find(groupRange(name), 1, { isChecked: false })
      const known = reasons.get(reason)
      reasons.set(reason, { reason, count: count + (known?.count ?? 0), oldest: oldest?.since ?? 0 })
    }
    return [...reasons.values()]
  }
}

function toLimitStats({ name, state }: NamedLimit, now: Millis): LimitStats {
  const { epoch, pausedUntil, last, promised } = state
  return { name, epoch, pausedUntil, last: Math.max(last, promised), stretch: computeStretch(state, now) }
}

function toEvents(placements: readonly { readonly event: number }[]): readonly number[] {
  return placements.slice(0, MAX_PLACED).map(({ event }) => event)
}

function mapVisited<T, R>({ matching, end }: Visited<T>, n: number, map: (row: T) => R): Visited<R> {
  // Only the records of the page are completed.
  return { matching: matching.slice(0, n).map(([order, row]) => [order, map(row)] as const), end }
}

function without(filter: RecordFilter, names: readonly (keyof RecordFilter)[]): RecordFilter {
  return Object.fromEntries(Object.entries(filter).filter(([name]) => !names.some((one) => one === name)))
}

/** `cutRange` leaves out what the pages before have shown. All texts of the range end with the number that orders them. */
function cutRange(range: Range, cursor: string, isOldestFirst: boolean): Range | undefined {
  const name = range.from
  if (cursor === '') return { ...range, isReversed: !isOldestFirst }
  const order = Number(cursor)
  if (isOldestFirst) return { from: `${name}${pad(order)}${PREFIX_END}`, to: range.to }
  return { from: name, to: `${name}${pad(order)}`, isReversed: true }
}
