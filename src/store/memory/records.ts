// `MemoryRecords` searches and counts records in memory. It lists everything newest first, filters it, and cuts it into pages.
import { FAILING, HEALTHY, isLiveRun, SUSPECT, type Lane } from '../../model/lane.ts'
import { NEVER, type Millis } from '../../clock.ts'
import type { CountCall, EventRecord, RecordFilter, FindCall, RecordKind, RecordTypes } from '../contract/index.ts'
import { computeStretch } from '../../model/limit.ts'
import {
  toDeadLetterRecord,
  toRunRecord,
  toUnroutedRecord,
  type EventRow,
  type RecordCount,
  type RecordPage,
  type RecordQueries,
  type ResolveEventIds,
  type TableStats,
} from '../core/tables.ts'
import { MAX_PLACED } from '../contract/records.ts'
import { parseRunNumber } from '../core/commit-context.ts'
import { matchesFilter } from '../core/record-filter.ts'
import type { MemoryTables } from './store.ts'

/** Each record has a number by which it is ordered, so a page can continue after a record that is gone by then. */
type OrderedRecord<T> = readonly [order: number, record: T]
type RecordLists = { readonly [K in RecordKind]: () => readonly OrderedRecord<RecordTypes[K]>[] }

const LIMITS_SHOWN = 1_000

export class MemoryRecords implements RecordQueries {
  readonly #tables: MemoryTables
  readonly #all: RecordLists

  constructor(tables: MemoryTables) {
    this.#tables = tables
    const ids: ResolveEventIds = (seqs) => seqs.flatMap((seq) => tables.events.all.get(seq)?.id ?? [])
    this.#all = {
      events: () => [...tables.events.all.values()].map((event) => [event.seq, this.#toEventRecord(event)]),
      lanes: () => [...tables.lanes.all.values()].map((lane) => [lane.row, lane]),
      runs: () =>
        tables.runs.findOldest(0, tables.runs.all.size).map((run) => [parseRunNumber(run.id), toRunRecord(run, ids)]),
      dead: () =>
        [...tables.deadLetters.all.values()].map((deadLetter) => [
          deadLetter.order,
          toDeadLetterRecord(deadLetter, ids),
        ]),
      unrouted: () => [...tables.unrouted.all.values()].map((entry) => [entry.id, toUnroutedRecord(entry, ids)]),
      audit: () => tables.docs.audit.map((entry) => [entry.id, entry]),
    }
  }

  find<K extends RecordKind>({ kind, filter, cursor, n, oldestFirst = false }: FindCall<K>): RecordPage<K> {
    const all: readonly OrderedRecord<RecordTypes[K]>[] = this.#all[kind]()
    const direction = oldestFirst ? 1 : -1
    const isBehind = (order: number): boolean => cursor === '' || direction * (order - Number(cursor)) > 0
    const { placed, ...others } = filter
    const inLane = placed === undefined ? undefined : this.#findPlaced(filter.lane, placed)
    const isWanted = (order: number): boolean => inLane === undefined || (kind === 'events' && inLane.has(order))
    const matching = all
      .filter(([order, record]) => isBehind(order) && isWanted(order) && this.#matches(record, others))
      .toSorted(([one], [other]) => direction * (one - other))
    const shown = matching.slice(0, n)
    const next = matching.length > n ? String(shown.at(-1)?.[0]) : undefined
    return { items: shown.map(([, record]) => record), next }
  }

  count({ kind, filter, cursor, atMost }: CountCall): RecordCount {
    const { items, next } = this.find({ kind, filter, cursor, n: atMost })
    return { count: items.length, next }
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    if (kind !== 'events') return this.#all[kind]().find(([, record]) => String(record.id) === id)?.[1]
    const row = this.#tables.events.findById(id)
    if (row === undefined) return undefined
    const details = { body: row.body, request: row.request, receipts: this.#tables.events.findReceipts(row.seq) }
    return { ...this.#toEventRecord(row), ...details } as RecordTypes[K]
  }

  stats(now: Millis): TableStats {
    const { lanes, deadLetters, unrouted, limits, small, events } = this.#tables
    const byFlow = Map.groupBy(lanes.all.values(), (lane) => lane.flow)
    const others = [...small.pauses.keys(), ...[...deadLetters.all.values()].map((deadLetter) => deadLetter.flow)]
    for (const flow of others) if (!byFlow.has(flow)) byFlow.set(flow, [])
    const live = (lane: Lane): boolean => lane.run !== undefined && isLiveRun(lane.run, now)
    return {
      flows: [...byFlow].map(([flow, its]) => ({
        flow,
        lanes: its.filter((lane) => lane.due < NEVER).length,
        live: its.filter(live).length,
        due: lanes.findNextDeadline(flow, [HEALTHY, FAILING, SUSPECT]),
        paused: small.getPause(flow),
      })),
      deadLetters: deadLetters.all.size,
      unrouted: [...Map.groupBy(unrouted.all.values(), (entry) => entry.reason)].map(([reason, its]) => ({
        reason,
        count: its.length,
        oldest: its.reduce((oldest, { since }) => Math.min(oldest, since), Infinity),
      })),
      limits: [...limits.all]
        .toSorted(([, one], [, other]) => other.idleAt - one.idleAt)
        .slice(0, LIMITS_SHOWN)
        .map(([name, state]) => {
          const { epoch, pausedUntil, last, promised } = state
          return { name, epoch, pausedUntil, last: Math.max(last, promised), stretch: computeStretch(state, now) }
        }),
      bytes: [...events.all.values()].reduce((sum, event) => sum + event.body.length, 0),
    }
  }

  #matches(record: RecordTypes[RecordKind], { subject, ...filter }: RecordFilter): boolean {
    return (
      matchesFilter(record, filter) &&
      (subject === undefined || (subject !== '' && this.#findSubjects(record).includes(subject)))
    )
  }

  /** `#findPlaced` returns the numbers of the events that wait in the lane, or that its current run has. */
  #findPlaced(id: string | undefined, placed: 'waiting' | 'run'): ReadonlySet<number> {
    const { lanes, placements, deadLetters } = this.#tables
    const lane = id === undefined ? undefined : lanes.get(id)
    const run = lane?.run
    const isOfDeadLetter = run?.isDeadLetter === true
    if (isOfDeadLetter && placed === 'run') return toPlaced(deadLetters.all.get(run.id)?.placements ?? [])
    if (lane === undefined) return new Set()
    // Rank 0 has the live events and rank 1 the replayed ones. A run has the placements of one rank, up to one position.
    const found = ([0, 1] as const).map((rank) => {
      const upto = run !== undefined && !isOfDeadLetter && run.rank === rank ? run.upto : -1
      const all = placements.findFirst(lane, rank, Infinity)
      return toPlaced(all.filter(({ pos }) => pos <= upto === (placed === 'run')))
    })
    return new Set(found.flatMap((events) => [...events]))
  }

  #findSubjects(record: RecordTypes[RecordKind]): readonly string[] {
    if ('subject' in record) return [record.subject]
    const ids = 'blocks' in record && 'events' in record ? record.events : 'event' in record ? [record.event] : []
    return ids.flatMap((id) => this.#tables.events.findById(id)?.subject ?? [])
  }

  #toEventRecord(row: EventRow): EventRecord {
    const { id, source, type, time, tenant, subject, attributes, arrived, lanes, skips } = row
    const unrouted = this.#tables.unrouted
      .findByEvent(row.seq)
      .map(({ flow, reason, error }) => ({ flow, reason, error }))
    const duplicates = this.#tables.events.findReceipts(row.seq).length
    const facts = { size: row.body.length, purged: row.purgedHash !== '', duplicates }
    return { id, source, type, time, tenant, subject, attributes, arrived, lanes, unrouted, skips, ...facts }
  }
}

function toPlaced(placements: readonly { readonly event: number }[]): ReadonlySet<number> {
  return new Set(placements.slice(0, MAX_PLACED).map(({ event }) => event))
}
