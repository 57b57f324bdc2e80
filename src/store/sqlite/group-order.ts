// `SqliteGroupOrder` decides which group is served next (L5g). It keeps the groups with ready lanes in memory, in
// serving order. A claim reads as many groups as it has permits, plus the groups at their concurrency, and not every
// tenant with a lane. A group's position may be too early, never too late: `findNext` corrects an early one and looks
// again. Only the time a group was last served is in the file; the rest is derived from the lanes.
import { NEVER, type Millis } from '../../clock.ts'
import type { Lane, LaneHealth } from '../../model/lane.ts'
import type { GroupQuery } from '../core/tables.ts'
import { Heap } from './heap.ts'
import { number, text, type Statements } from './statements.ts'

const BECAME_READY = `select grp, due, ticket from lanes indexed by lanes_line
  where flow = ? and line = ? and due > ? and due <= ? order by due, ticket`
const SERVED = 'select turn from served where flow = ? and grp = ?'
const TOOK_TURN = 'insert or replace into served (flow, grp, turn, at) values (?, ?, ?, ?)'
const LONG_AGO = 'select flow, grp from served where at <= ? order by at limit ?'
const STILL_THERE = 'update served set at = ? where flow = ? and grp = ?'
const FORGET = 'delete from served where flow = ? and grp = ?'

const ALL_HEALTHS: readonly LaneHealth[] = [0, 1, 2]
/** The number of stale heap entries that need no compaction. */
const STALE_SLACK = 64

/** `GroupLanes` lists the lane queries that the order needs. */
export interface GroupLanes {
  /** `findFirst` returns the first ready lane of the group with this health. No lane of the group is before
      `from`. */
  findFirst(
    place: { readonly flow: string; readonly health: LaneHealth; readonly now: Millis },
    from: GroupPosition,
  ): Lane | undefined
  countLive(flow: string, group: string, now: Millis): number
  /** `hasWaiting` returns whether a lane of the group has a deadline. */
  hasWaiting(flow: string, group: string): boolean
}

/** `GroupPosition` says when a group was last served, and the position (or an earlier one) of its first lane. */
export interface GroupPosition {
  readonly group: string
  readonly served: number
  readonly due: Millis
  readonly ticket: number
}

function isEarlier(one: Pick<GroupPosition, 'due' | 'ticket'>, other: Pick<GroupPosition, 'due' | 'ticket'>): boolean {
  return one.due < other.due || (one.due === other.due && one.ticket < other.ticket)
}

function isBefore(one: GroupPosition, other: GroupPosition): boolean {
  return one.served === other.served ? isEarlier(one, other) : one.served < other.served
}

/** `GroupQueue` holds the groups that may have a ready lane of one health: healthy, failing or suspect. */
class GroupQueue {
  readonly health: LaneHealth
  readonly #positions = new Map<string, GroupPosition>()
  /** The heap may hold replaced positions; `first` drops them when they reach the top. */
  #heap = new Heap<GroupPosition>(isBefore)

  constructor(health: LaneHealth) {
    this.health = health
  }

  get(group: string): GroupPosition | undefined {
    return this.#positions.get(group)
  }

  set(position: GroupPosition): void {
    this.#positions.set(position.group, position)
    this.#heap.add(position)
  }

  delete(group: string): void {
    this.#positions.delete(group)
  }

  get first(): GroupPosition | undefined {
    for (let first = this.#heap.first; first !== undefined; first = this.#heap.first) {
      if (this.#positions.get(first.group) === first) return first
      this.#heap.takeFirst()
    }
    return undefined
  }

  /** `takeFirst` takes the first group out of the order until `putBack`. */
  takeFirst(): void {
    this.#heap.takeFirst()
  }

  putBack(position: GroupPosition): void {
    if (this.#positions.get(position.group) === position) this.#heap.add(position)
    if (this.#heap.size > 2 * this.#positions.size + STALE_SLACK) this.#compact()
  }

  #compact(): void {
    this.#heap = new Heap<GroupPosition>(isBefore)
    for (const position of this.#positions.values()) this.#heap.add(position)
  }
}

interface FlowGroups {
  /** All lanes with a deadline up to this time have been read from the index. */
  upTo: Millis
  readonly queues: readonly GroupQueue[]
}

export class SqliteGroupOrder {
  readonly #sql: Statements
  readonly #lanes: GroupLanes
  /** Only flows with fair shares (`share: 'tenant'`). */
  readonly #flows = new Map<string, FlowGroups>()

  constructor(sql: Statements, lanes: GroupLanes) {
    this.#sql = sql
    this.#lanes = lanes
  }

  /** `findNext` returns the first ready lanes of the next groups to serve. */
  findNext({ flow, healths, now, maxPerGroup: perGroup, n }: GroupQuery): readonly Lane[] {
    const queues = this.#refresh(flow, now).queues.filter(({ health }) => healths.includes(health))
    const found: Lane[] = []
    const seen = new Set<string>()
    const heads = new Map<GroupPosition, Lane>()
    const aside: (readonly [GroupQueue, GroupPosition])[] = []
    while (found.length < n) {
      const queue = findFirstQueue(queues)
      const position = queue?.first
      if (queue === undefined || position === undefined) break
      queue.takeFirst()
      aside.push([queue, position])
      const { group } = position
      if (seen.has(group)) continue
      if (!heads.has(position) && perGroup < NEVER && this.#lanes.countLive(flow, group, now) >= perGroup) {
        seen.add(group)
        continue
      }
      const head = heads.get(position) ?? this.#lanes.findFirst({ flow, health: queue.health, now }, position)
      if (head === undefined) queue.delete(group)
      else if (isEarlier(position, head)) {
        const later = { ...position, due: head.due, ticket: head.ticket }
        heads.set(later, head)
        queue.set(later)
      } else {
        seen.add(group)
        found.push(head)
      }
    }
    for (const [queue, position] of aside) queue.putBack(position)
    return found
  }

  /** `onLaneWritten` adds a lane that is already ready: `#refresh` no longer reads that part of the index. */
  onLaneWritten({ flow, health, group, due, ticket }: Lane): void {
    const groups = this.#flows.get(flow)
    const queue = groups !== undefined && due <= groups.upTo ? groups.queues[health] : undefined
    if (queue !== undefined) this.#addCandidate(flow, queue, { group, due, ticket })
  }

  recordServed({ flow, group }: Lane, turn: number, now: Millis): void {
    this.#sql.run(TOOK_TURN, flow, group, turn, now)
    for (const queue of this.#flows.get(flow)?.queues ?? []) {
      const known = queue.get(group)
      if (known !== undefined) queue.set({ ...known, served: turn })
    }
  }

  /** `forgetServed` removes old entries. A group without waiting lanes counts as new when it returns; a group with
      waiting lanes is checked again after the same time. */
  forgetServed(before: Millis, now: Millis, n: number): number {
    const old = this.#sql.all(LONG_AGO, before, n)
    for (const [flow, group] of old.map((row) => [text(row[0]), text(row[1])] as const)) {
      if (this.#lanes.hasWaiting(flow, group)) this.#sql.run(STILL_THERE, now, flow, group)
      else {
        this.#sql.run(FORGET, flow, group)
        for (const queue of this.#flows.get(flow)?.queues ?? []) queue.delete(group)
      }
    }
    return old.length
  }

  /** `clear` drops the order after a rollback, when the file no longer matches it. */
  clear(): void {
    this.#flows.clear()
  }

  #refresh(flow: string, now: Millis): FlowGroups {
    let groups = this.#flows.get(flow)
    if (groups === undefined) {
      groups = { upTo: -1, queues: ALL_HEALTHS.map((health) => new GroupQueue(health)) }
      this.#flows.set(flow, groups)
    }
    if (groups.upTo === now) return groups
    for (const queue of groups.queues) {
      for (const [group, due, ticket] of this.#sql.all(BECAME_READY, flow, queue.health, groups.upTo, now)) {
        this.#addCandidate(flow, queue, { group: text(group), due: number(due), ticket: number(ticket) })
      }
    }
    // This also holds if the clock was set back: lanes that are no longer ready are read again when they become ready.
    groups.upTo = now
    return groups
  }

  #addCandidate(flow: string, queue: GroupQueue, lane: Pick<Lane, 'group' | 'due' | 'ticket'>): void {
    const known = queue.get(lane.group)
    if (known === undefined) {
      queue.set({ ...lane, served: number(this.#sql.get(SERVED, flow, lane.group)?.[0] ?? 0) })
    } else if (isEarlier(lane, known)) queue.set({ ...known, due: lane.due, ticket: lane.ticket })
  }
}

function findFirstQueue(queues: readonly GroupQueue[]): GroupQueue | undefined {
  let best: { readonly queue: GroupQueue; readonly first: GroupPosition } | undefined
  for (const queue of queues) {
    const { first } = queue
    if (first !== undefined && (best === undefined || isBefore(first, best.first))) best = { queue, first }
  }
  return best?.queue
}
