// `PlainArrivals` stores arriving events in one statement (functions/append.sql), if each of them is new and enters lanes by a
// window without `leading` and jitter. All other events are for the rules.
import { NEVER, type Millis } from '../../clock.ts'
import { NO_SKIPS, formatRoutingNote, serializeSkips } from '../../model/routing.ts'
import type { AppendCall, AppendReply, AppendResult, EventToStore, Hint, Placement } from '../contract/index.ts'
import { createEventFeedEntry, removeDuplicateLanes, STORED, validateEvent } from '../core/append.ts'
import type { DirectResult } from '../core/store.ts'
import type { RowValues } from './columns.ts'
import { ADD_EVENTS } from './event-rows.ts'
import { APPEND } from './functions.ts'
import { ARRIVING_LANES } from './lane-rows.ts'
import { encodeArray, encodeRows } from './row-bytes.ts'
import type { Db } from './row-cache.ts'
import { escapeText, number } from './values.ts'

const CALL = `select * from ${APPEND.name}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
const ROUTES_OLD: AppendResult = { kind: 'routes-old' }

export interface PlainArrivalsDependencies {
  readonly lockNamespace: string
  readonly now: () => Millis | undefined
}

/** `ArrivingLane` collects the events of a call that enter one lane by the same window. */
class ArrivingLane {
  readonly placement: Placement
  readonly tenant: string
  readonly isNew: boolean
  /** The numbers of its events in the call, and their sizes. */
  readonly events: number[] = []
  readonly sizes: number[] = []
  cancels = false

  constructor(placement: Placement, { id, tenant }: EventToStore) {
    this.placement = placement
    this.tenant = tenant
    // The lane of an event without a key exists only if the event does.
    this.isNew = placement.key === id
  }
}

export class PlainArrivals {
  readonly #dependencies: PlainArrivalsDependencies

  constructor(dependencies: PlainArrivalsDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * `run` returns undefined, and has written nothing, if the call needs the rules. For tests, `mustFail` makes the server give up at
   * its last statement.
   */
  async run(db: Db, call: AppendCall, mustFail: boolean): Promise<DirectResult<AppendReply> | undefined> {
    const lanes = toLanes(call.events)
    if (lanes === undefined) return undefined
    const [row = []] = await db.query(CALL, this.#toValues(call, lanes, mustFail))
    const [now, routes] = [number(row[0]), number(row[1])]
    if (row[2] === null) return { reply: { now, routes, results: call.events.map(() => ROUTES_OLD) }, ...NOTHING }
    const feedEntries = call.events.map((event) => {
      const { placements, unrouted, skips = NO_SKIPS } = event
      const note = formatRoutingNote({ lanes: placements, unrouted, skips })
      return createEventFeedEntry(event, { flow: '', note, placements: removeDuplicateLanes(placements) }, now)
    })
    const hints = toHints(lanes, call.events.length, toNumbers(row[2]), toNumbers(row[3]))
    return { reply: { now, routes, results: call.events.map(() => STORED) }, feedEntries, hints }
  }

  #toValues({ events, routes }: AppendCall, lanes: readonly ArrivingLane[], mustFail: boolean): unknown[] {
    const { lockNamespace, now } = this.#dependencies
    const rows = events.map(toEventColumns)
    // If two transactions insert the same events, one waits for the other; without the order, each could wait for the other.
    rows.sort((one, other) => (one.identity < other.identity ? -1 : 1))
    const laneRows = lanes.map((lane, n) => toLaneColumns(lane, events.length + n))
    laneRows.sort((one, other) => (one.id < other.id ? -1 : 1))
    return [
      now() ?? null,
      `${lockNamespace}routes`,
      routes,
      events.length + lanes.length,
      encodeRows(rows, ADD_EVENTS.columns),
      encodeRows(laneRows, ARRIVING_LANES.columns),
      ...toPlacedColumns(lanes, events.length),
      mustFail ? -1 : events.reduce((sum, { body, request }) => sum + body.length + request.length, 0),
    ]
  }
}

const NOTHING = { feedEntries: [], hints: [] } as const

/** `toLanes` returns undefined if one of the events needs the rules. */
function toLanes(events: readonly EventToStore[]): readonly ArrivingLane[] | undefined {
  const lanes = new Map<string, ArrivingLane>()
  for (const [n, event] of events.entries()) {
    if (event.unrouted.length > 0 || validateEvent(event) !== undefined) return undefined
    for (const placement of removeDuplicateLanes(event.placements)) {
      let lane = lanes.get(placement.lane)
      if (lane === undefined) lanes.set(placement.lane, (lane = new ArrivingLane(placement, event)))
      if (placement.leading || placement.jitter !== 0 || !hasSameWindow(lane.placement, placement)) return undefined
      lane.events.push(n)
      lane.sizes.push(event.body.length)
      lane.cancels ||= placement.cancel
    }
  }
  return [...lanes.values()]
}

/** The events of lanes that several events enter: lane, event, which one of the lane, and size. */
function toPlacedColumns(lanes: readonly ArrivingLane[], first: number): readonly Buffer[] {
  const columns: readonly [number[], number[], number[], number[]] = [[], [], [], []]
  for (const [at, { events, sizes }] of lanes.entries()) {
    if (events.length === 1) continue
    for (const [n, event] of events.entries())
      for (const [column, value] of [first + at, event, n + 1, sizes[n] ?? 0].entries()) columns[column]?.push(value)
  }
  return columns.map((values) => encodeArray('bigint', values))
}

function hasSameWindow(one: Placement, other: Placement): boolean {
  const isSame = one.quiet === other.quiet && one.max === other.max && one.group === other.group
  return one === other || (isSame && one.maxEvents === other.maxEvents && one.maxBytes === other.maxBytes)
}

/** `seq` is the number of the event within the call, and `dedupe_until` is how long its identity is known. */
function toEventColumns(event: EventToStore, seq: number): RowValues & { readonly identity: string } {
  const { identity, skips = NO_SKIPS, placements } = event
  return {
    seq,
    id: escapeText(event.id),
    identity,
    dedupe_until: toSpan(event.dedupeFor) ?? NEVER,
    source: escapeText(event.source),
    type: escapeText(event.type),
    time: event.time,
    tenant: escapeText(event.tenant),
    subject: escapeText(event.subject),
    attributes: escapeText(event.attributes),
    arrived: 0,
    lanes: removeDuplicateLanes(placements).map(({ lane }) => lane),
    skips: serializeSkips(skips),
    size: event.body.length,
    request: event.request,
    body: event.body,
  }
}

function toLaneColumns(lane: ArrivingLane, n: number): RowValues & { readonly id: string } {
  const { placement, tenant, events, sizes, cancels, isNew } = lane
  return {
    n,
    id: placement.lane,
    flow: escapeText(placement.flow),
    key: Buffer.from(placement.key),
    tenant: escapeText(tenant),
    grp: escapeText(placement.group),
    events: events.length,
    size: sizes.reduce((sum, size) => sum + size, 0),
    first_event: events[0] ?? 0,
    first_size: sizes[0] ?? 0,
    quiet: toSpan(placement.quiet),
    longest: toSpan(placement.max),
    max_events: toSpan(placement.maxEvents) ?? NEVER,
    max_bytes: toSpan(placement.maxBytes) ?? NEVER,
    cancels,
    is_new: isNew,
  }
}

/** `toSpan` returns null for a span without an end. */
function toSpan(span: number): number | null {
  return span >= NEVER ? null : Math.ceil(span)
}

function toNumbers(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : []
}

/** `opened` and `sooner` hold the numbers of lanes that are new, or whose deadline moved forward. */
function toHints(
  lanes: readonly ArrivingLane[],
  first: number,
  opened: readonly number[],
  sooner: readonly number[],
): readonly Hint[] {
  const hints: Hint[] = []
  const due = new Set<string>()
  for (const n of opened) {
    const placement = lanes[n - first]?.placement
    if (placement === undefined) continue
    hints.push({ kind: 'opened', flow: placement.flow, key: placement.key })
    due.add(placement.flow)
  }
  for (const n of sooner) due.add(lanes[n - first]?.placement.flow ?? '')
  return [...hints, ...Array.from(due, (flow) => ({ kind: 'due', flow }) as const)]
}
