// `ClaimedGroups` holds what a claim knows of the groups of a flow: which groups are next, and the first ready lanes of the
// groups it has taken. It records what is missing; that is loaded before the rules decide again.
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { isLiveRun, type Lane, type LaneHealth } from '../../model/lane.ts'
import {
  hasGroupLimit,
  type GroupLanesQuery,
  type GroupHead,
  type GroupScope,
  type LoadedGroupLanes,
} from './group-queries.ts'
import { compareByDeadline } from './ready-lanes.ts'

/** `GroupCandidate` is a group that may be next. */
interface GroupCandidate extends GroupHead {
  /** Undefined if the lane must be loaded first. */
  readonly lane: Lane | undefined
}

interface TakenGroup extends Pick<LoadedGroupLanes, 'last' | 'isAll'> {
  /** How often lanes of the group were loaded. */
  readonly times: number
  /** The live lanes of the group when it was locked, without the loaded ones. */
  readonly live: readonly LaneId[]
}

export interface LoadedLanes {
  /** The lanes as the rules have left them. */
  readonly lanes: Iterable<Lane>
  readonly has: (id: LaneId) => boolean
  /** `getLastServed` returns the turn in which a group was last served. */
  readonly getLastServed: (group: string) => number
}

export class ClaimedGroups {
  readonly scope: GroupScope
  readonly #heads = new Map<string, GroupHead>()
  /** Undefined if another claim has the group; this claim then skips it. */
  readonly #taken = new Map<string, TakenGroup | undefined>()
  /** The last of the known groups; no unknown group precedes it. */
  #last: GroupHead | undefined
  #hasAllHeads = false
  #scans = 0
  #missingHeads = 0
  readonly #missingLanes = new Map<string, number>()

  constructor(scope: GroupScope) {
    this.scope = scope
  }

  /** `findNext` returns the first lanes of the next `n` groups, among lanes of the given healths. */
  findNext(n: number, healths: readonly LaneHealth[], loaded: LoadedLanes): readonly Lane[] {
    if (this.#scans === 0) {
      this.#missingHeads = Math.max(this.#missingHeads, n)
      return []
    }
    const sorted = this.#findCandidates(healths, loaded).toSorted(compareGroups)
    const last = this.#hasAllHeads ? undefined : this.#last
    const sure = last === undefined ? sorted : sorted.filter((one) => compareGroups(one, last) <= 0)
    const next = sure.slice(0, n)
    const missing = next.filter(({ lane }) => lane === undefined)
    for (const { group } of missing) this.#missingLanes.set(group, this.#computeLimit(group, n, missing.length))
    // Not every group that was found had a lane to take: each query asks for twice as many as the one before.
    if (next.length < n && !this.#hasAllHeads) this.#missingHeads = n * 2 ** this.#scans
    return next.flatMap(({ lane }) => lane ?? [])
  }

  /**
   * `computeLimit` asks for equal parts at first, because locking more lanes than the claim takes would keep them from others.
   * Then it asks for more of one group, which may have to fill all remaining slots.
   */
  #computeLimit(group: string, n: number, groups: number): number {
    const taken = this.#taken.get(group)
    if (taken !== undefined) return n * 2 ** (taken.times - 1)
    const part = Math.ceil(n / groups)
    return hasGroupLimit(this.scope) ? Math.min(part, this.scope.maxPerGroup) : part
  }

  #findCandidates(
    healths: readonly LaneHealth[],
    { lanes, has, getLastServed }: LoadedLanes,
  ): readonly GroupCandidate[] {
    const { flow, now, maxPerGroup: perGroup } = this.scope
    const live = new Map<string, number>()
    const first = new Map<string, Lane>()
    for (const lane of lanes) {
      if (lane.flow !== flow) continue
      const { group } = lane
      if (lane.run !== undefined && isLiveRun(lane.run, now)) live.set(group, (live.get(group) ?? 0) + 1)
      if (lane.due > now || !healths.includes(lane.health) || !this.#isSure(lane)) continue
      const before = first.get(group)
      if (before === undefined || compareByDeadline(lane, before) < 0) first.set(group, lane)
    }
    const runs = (group: string, { live: others }: TakenGroup): number =>
      (live.get(group) ?? 0) + others.filter((id) => !has(id)).length
    const found: GroupCandidate[] = []
    for (const group of new Set([...this.#heads.keys(), ...this.#taken.keys(), ...first.keys()])) {
      const [taken, lane] = [this.#taken.get(group), first.get(group)]
      if (taken === undefined) {
        if (this.#taken.has(group)) continue
        const head = pickEarlier(this.#heads.get(group), lane)
        if (head !== undefined) found.push({ group, lastServed: getLastServed(group), ...head, lane: undefined })
      } else if (!hasGroupLimit(this.scope) || runs(group, taken) < perGroup) {
        const head = lane ?? (taken.isAll ? undefined : taken.last)
        if (head !== undefined)
          found.push({ group, lastServed: getLastServed(group), due: head.due, ticket: head.ticket, lane })
      }
    }
    return found
  }

  /** `isSure` returns whether no unknown lane of the group can precede the lane. */
  #isSure(lane: Lane): boolean {
    const taken = this.#taken.get(lane.group)
    return taken === undefined || taken.isAll || (taken.last !== undefined && compareByDeadline(lane, taken.last) <= 0)
  }

  resetPass(): void {
    this.#missingHeads = 0
    this.#missingLanes.clear()
  }

  get hasMisses(): boolean {
    return this.#missingHeads > 0 || this.#missingLanes.size > 0
  }

  /** `takeMissingHeads` returns the number of groups to load, once; 0 if none are missing. */
  takeMissingHeads(): number {
    const most = this.#missingHeads
    this.#missingHeads = 0
    return most
  }

  /** `takeMissingLanes` returns the lanes to load, once. */
  takeMissingLanes(): readonly GroupLanesQuery[] {
    const asked = Array.from(this.#missingLanes, ([group, most]) => ({ group, most }))
    this.#missingLanes.clear()
    return asked
  }

  get groups(): readonly string[] {
    return [...new Set([...this.#heads.keys(), ...this.#taken.keys()])]
  }

  /** `isDecided` returns whether the claim has taken or skipped the group. */
  isDecided(group: string): boolean {
    return this.#taken.has(group)
  }

  addHeads(heads: readonly GroupHead[], most: number): void {
    for (const head of heads) this.#heads.set(head.group, head)
    this.#last = heads.at(-1) ?? this.#last
    this.#hasAllHeads = heads.length < most
    this.#scans++
  }

  skip(group: string): void {
    this.#taken.set(group, undefined)
  }

  /** `live` is undefined if the group was taken before. */
  addTaken(group: string, { last, isAll }: LoadedGroupLanes, live: readonly LaneId[] | undefined): void {
    const before = this.#taken.get(group)
    const times = (before?.times ?? 0) + 1
    this.#taken.set(group, { last: last ?? before?.last, isAll, times, live: live ?? before?.live ?? [] })
  }
}

type OrderKey = { readonly due: Millis; readonly ticket: number }

function pickEarlier(one: OrderKey | undefined, other: OrderKey | undefined): OrderKey | undefined {
  const first = one === undefined || (other !== undefined && compareByDeadline(other, one) < 0) ? other : one
  return first && { due: first.due, ticket: first.ticket }
}

/** `compareGroups` orders groups by their last turn, the oldest first, then by the position of their first lane. */
function compareGroups(one: GroupHead, other: GroupHead): number {
  return one.lastServed - other.lastServed || compareByDeadline(one, other)
}
