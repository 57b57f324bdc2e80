// The runs, dead letters and unrouted events of a transaction.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { parseRunNumber } from '../core/commit-context.ts'
import type { DeadLetterRow, DeadLetterTable, RunRow, RunTable, UnroutedRow, UnroutedTable } from '../core/tables.ts'
import { jsonTable } from './json-table.ts'
import { TableView, type TableOptions, type TableSpec } from './table-view.ts'
import { groupRange, IN_GROUP, pad, prefixRange, quote, type Range } from './texts.ts'
import { parseFlow } from './lanes.ts'

/** Returns whether the transaction drew this number itself: a row with it is new. */
export type IsFresh = (n: number) => boolean

const RUNS: TableSpec<RunRow> = jsonTable('runs', ({ id, lane }) => {
  const order = pad(parseRunNumber(id))
  return [`o${order}`, `${laneName(lane)}${order}`]
})

/** The records of a lane. */
export function laneName(lane: LaneId): string {
  return `l${quote(lane)}${IN_GROUP}`
}

export class RedisRuns implements RunTable {
  readonly view: TableView<RunRow>

  readonly #isFresh: IsFresh

  constructor(options: TableOptions<RunRow>, isFresh: IsFresh) {
    this.view = new TableView(RUNS, options)
    this.#isFresh = isFresh
  }

  put(run: RunRow, isFirst: boolean): void {
    if (isFirst || this.#isFresh(parseRunNumber(run.id))) return this.view.putNew(run.id, run)
    const known = this.view.get(run.id)
    this.view.put(run.id, { ...run, started: Math.min(run.started, known?.started ?? run.started) })
  }

  findByLane(lane: LaneId, n: number, before: number = NEVER): readonly RunRow[] {
    const name = laneName(lane)
    return this.view.find({ from: name, to: `${name}${pad(before)}`, isReversed: true }, n)
  }

  remove(id: string): void {
    this.view.remove(id)
  }

  findOldest(after: number, n: number): readonly RunRow[] {
    return this.view.find({ from: `o${pad(after + 1)}`, to: prefixRange('o').to }, n, { isChecked: false })
  }
}

const DEAD_LETTERS: TableSpec<DeadLetterRow> = jsonTable('dead-letters', ({ order, lane, flow, state, blocks, at }) => [
  `o${pad(order)}`,
  `f${quote(flow)}${IN_GROUP}${pad(order)}`,
  `${laneName(lane)}${pad(order)}`,
  ...(state === 'queued' ? [`q${laneName(lane)}${pad(order)}`] : []),
  ...(state === 'dead' && !blocks ? [`x${pad(at)}`] : []),
])

export class RedisDeadLetters implements DeadLetterTable {
  readonly view: TableView<DeadLetterRow>

  readonly #isFresh: IsFresh

  constructor(options: TableOptions<DeadLetterRow>, isFresh: IsFresh) {
    this.view = new TableView(DEAD_LETTERS, options)
    this.#isFresh = isFresh
  }

  /** A run that this pass began gets a new id in each pass, so a load would never find the id of the next one. */
  get(id: string): DeadLetterRow | undefined {
    return this.#isFresh(parseRunNumber(id)) ? this.view.changed(id) : this.view.get(id)
  }

  put(deadLetter: DeadLetterRow): void {
    if (this.#isFresh(parseRunNumber(deadLetter.id))) this.view.putNew(deadLetter.id, deadLetter)
    else this.view.put(deadLetter.id, deadLetter)
  }

  remove(id: string): void {
    this.view.remove(id)
  }

  findByLane(lane: LaneId): readonly DeadLetterRow[] {
    return this.view.find(groupRange(laneName(lane)), Infinity)
  }

  findEventSeqs(lane: LaneId): readonly number[] {
    return this.findByLane(lane).flatMap(({ placements }) => placements.map((placement) => placement.event))
  }

  findNextQueued(lane: LaneId): DeadLetterRow | undefined {
    return this.view.find(groupRange(`q${laneName(lane)}`), 1)[0]
  }

  findExpirable(moment: Millis, n: number): readonly DeadLetterRow[] {
    return this.view.find({ from: 'x', to: `x${pad(moment + 1)}` }, n, { isChecked: false })
  }
}

const UNROUTED: TableSpec<UnroutedRow> = jsonTable('unrouted', ({ id, event, flow, reason, due, since }) => [
  `o${pad(id)}`,
  `a${reason}${IN_GROUP}${pad(since)}`,
  `${eventName(event)}${pad(id)}`,
  `${dueName(flow, reason)}${pad(due)}${pad(id)}`,
])

function eventName(event: number): string {
  return `e${pad(event)}${IN_GROUP}`
}

/** The unrouted events of a flow with a reason, in the order of their due times. */
function dueName(flow: string, reason: string): string {
  return `d${quote(flow)}${reason}${IN_GROUP}`
}

/** The most pairs of a flow and a reason. */
const MAX_PAIRS = 10_000

/** The pairs of a flow and a reason that exist, with the number of their unrouted events. */
export const UNROUTED_GROUPS: Range & { readonly n: number } = { ...prefixRange('d'), n: MAX_PAIRS }

export function parseReason(first: string): UnroutedRow['reason'] {
  const end = first.indexOf(IN_GROUP)
  return first.slice(first.lastIndexOf('"', end) + 1, end) as UnroutedRow['reason']
}

export class RedisUnrouted implements UnroutedTable {
  readonly view: TableView<UnroutedRow>

  readonly #isFresh: IsFresh

  constructor(options: TableOptions<UnroutedRow>, isFresh: IsFresh) {
    this.view = new TableView(UNROUTED, options)
    this.#isFresh = isFresh
  }

  get(id: number): UnroutedRow | undefined {
    return this.#isFresh(id) ? this.view.changed(String(id)) : this.view.get(String(id))
  }

  put(row: UnroutedRow): void {
    if (this.#isFresh(row.id)) this.view.putNew(String(row.id), row)
    else this.view.put(String(row.id), row)
  }

  remove(id: number): void {
    this.view.remove(String(id))
  }

  findDue(
    now: Millis,
    ...[reasons, flows, n]: readonly [readonly string[], readonly string[], number]
  ): readonly UnroutedRow[] {
    const names = new Set(
      this.view.findGroups(UNROUTED_GROUPS, MAX_PAIRS).map(({ first }) => first.slice(0, first.indexOf(IN_GROUP) + 1)),
    )
    for (const row of this.view.changedRows()) names.add(dueName(row.flow, row.reason))
    const wanted = [...names].filter((name) => {
      const flow = parseFlow(name)
      return reasons.includes(parseReason(name)) && (flow === '' || flows.includes(flow))
    })
    return wanted
      .flatMap((name) => this.view.find({ from: name, to: `${name}${pad(now + 1)}` }, n, { isChecked: false }))
      .toSorted((one, other) => one.due - other.due || one.id - other.id)
      .slice(0, n)
  }

  findByEvent(event: number): readonly UnroutedRow[] {
    if (this.#isFresh(event)) return [...this.view.changedRows()].filter((row) => row.event === event)
    return this.view.find(groupRange(eventName(event)), Infinity)
  }
}
