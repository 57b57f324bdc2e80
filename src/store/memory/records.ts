// Search and figures in memory: everything is listed newest first, filtered, and cut into pages.
import { FAILING, HEALTHY, isLive, SUSPECT, type Lane } from '../../model/lane.ts'
import { NEVER, type Millis } from '../../clock.ts'
import type {
  CountCall,
  EventRecord,
  Filter,
  FindCall,
  LetterRecord,
  MarkRecord,
  RecordKind,
  Records,
  RunRecord,
} from '../contract/index.ts'
import { stretchAt } from '../../model/limit.ts'
import type { EventRow, LetterRow, MarkRow, Page, RecordQueries, RunRow, TableStats } from '../rules/tables.ts'
import { runNumber } from '../rules/work.ts'
import type { MemoryTables } from './store.ts'

/** Each with a number by which they are ordered: a page goes on after a record that is gone by then. */
type Numbered<T> = readonly [order: number, record: T]
type Everything = { readonly [K in RecordKind]: () => readonly Numbered<Records[K]>[] }

const LIMITS_SHOWN = 1_000

export class MemoryRecords implements RecordQueries {
  readonly #tables: MemoryTables
  readonly #all: Everything

  constructor(tables: MemoryTables) {
    this.#tables = tables
    this.#all = {
      events: () => [...tables.events.all.values()].map((event) => [event.seq, this.#event(event)]),
      lanes: () => [...tables.lanes.all.values()].map((lane) => [lane.row, lane]),
      runs: () => tables.runs.oldest(0, tables.runs.all.size).map((run) => [runNumber(run.id), this.#run(run)]),
      dead: () => [...tables.letters.all.values()].map((letter) => [letter.order, this.#letter(letter)]),
      marks: () => [...tables.marks.all.values()].map((mark) => [mark.id, this.#mark(mark)]),
      audit: () => tables.docs.audit.map((entry) => [entry.id, entry]),
    }
  }

  find<K extends RecordKind>({ kind, filter, cursor, n, oldestFirst = false }: FindCall<K>): Page<K> {
    const all: readonly Numbered<Records[K]>[] = this.#all[kind]()
    const direction = oldestFirst ? 1 : -1
    const isBehind = (order: number): boolean => cursor === '' || direction * (order - Number(cursor)) > 0
    const matching = all
      .filter(([order, record]) => isBehind(order) && matches(record, filter))
      .toSorted(([one], [other]) => direction * (one - other))
    const shown = matching.slice(0, n)
    const next = matching.length > n ? String(shown.at(-1)?.[0]) : undefined
    return { items: shown.map(([, record]) => record), next }
  }

  count({ kind, filter, cursor, atMost }: CountCall): { readonly count: number; readonly next: string | undefined } {
    const { items, next } = this.find({ kind, filter, cursor, n: atMost })
    return { count: items.length, next }
  }

  get<K extends RecordKind>(kind: K, id: string): Records[K] | undefined {
    const found = this.#all[kind]().find(([, record]) => String(record.id) === id)?.[1]
    if (kind !== 'events' || found === undefined) return found
    const row = this.#tables.events.byId(id)
    if (row === undefined) return found
    return { ...found, body: row.body, request: row.request, receipts: this.#tables.events.receipts(row.seq) }
  }

  stats(now: Millis): TableStats {
    const { lanes, letters, marks, limits, small, events } = this.#tables
    const byFlow = Map.groupBy(lanes.all.values(), (lane) => lane.flow)
    const others = [...small.pauses.keys(), ...[...letters.all.values()].map((letter) => letter.flow)]
    for (const flow of others) if (!byFlow.has(flow)) byFlow.set(flow, [])
    const live = (lane: Lane): boolean => lane.run !== undefined && isLive(lane.run, now)
    return {
      flows: [...byFlow].map(([flow, its]) => ({
        flow,
        lanes: its.filter((lane) => lane.due < NEVER).length,
        live: its.filter(live).length,
        due: lanes.head(flow, [HEALTHY, FAILING, SUSPECT]),
        paused: small.pauseOf(flow),
      })),
      letters: letters.all.size,
      marks: [...Map.groupBy(marks.all.values(), (mark) => mark.reason)].map(([reason, its]) => ({
        reason,
        count: its.length,
        oldest: its.reduce((oldest, { since }) => Math.min(oldest, since), Infinity),
      })),
      limits: [...limits.all]
        .toSorted(([, one], [, other]) => other.idleAt - one.idleAt)
        .slice(0, LIMITS_SHOWN)
        .map(([name, state]) => {
          const { epoch, pausedUntil, last, promised } = state
          return { name, epoch, pausedUntil, last: Math.max(last, promised), stretch: stretchAt(state, now) }
        }),
      bytes: [...events.all.values()].reduce((sum, event) => sum + event.body.length, 0),
    }
  }

  #ids(seqs: readonly number[]): readonly string[] {
    return seqs.flatMap((seq) => this.#tables.events.all.get(seq)?.id ?? [])
  }

  #event(row: EventRow): EventRecord {
    const { id, source, type, time, tenant, subject, attributes, arrived, lanes } = row
    const duplicates = this.#tables.events.receipts(row.seq).length
    const facts = { size: row.body.length, purged: row.purgedHash !== '', duplicates }
    return { id, source, type, time, tenant, subject, attributes, arrived, lanes, ...facts }
  }

  #run(row: RunRow): RunRecord {
    return { ...row, events: this.#ids(row.events) }
  }

  #letter(row: LetterRow): LetterRecord {
    const { order: _order, group: _group, places, ...letter } = row
    return { ...letter, events: this.#ids(places.map((place) => place.event)) }
  }

  #mark(row: MarkRow): MarkRecord {
    const { id, flow, reason, error, since, tries } = row
    return { id, flow, reason, error, since, tries, event: this.#tables.events.all.get(row.event)?.id ?? '' }
  }
}

/** What a record has of the things one can filter by; a filter on what it has not matches nothing. */
function matches(record: Records[RecordKind], filter: Filter): boolean {
  const has = record as unknown as Record<string, unknown>
  const at = timeOf(has)
  return Object.entries(filter).every(([name, wanted]) => {
    if (wanted === undefined) return true
    if (name === 'from') return at !== undefined && at >= Number(wanted)
    if (name === 'to') return at !== undefined && at < Number(wanted)
    if (name === 'withoutSource') return typeof has['source'] === 'string' && !has['source'].startsWith(String(wanted))
    if (name === 'lane' && Array.isArray(has['lanes'])) return has['lanes'].includes(wanted)
    return (name === 'lane' && has['row'] !== undefined ? has['id'] : has[name]) === wanted
  })
}

function timeOf(has: Record<string, unknown>): number | undefined {
  const at = has['arrived'] ?? has['ended'] ?? has['at'] ?? has['since']
  return typeof at === 'number' ? at : undefined
}
