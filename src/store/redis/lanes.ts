// `RedisLanes` holds the lanes of a transaction. One index serves as timer and queue: the lanes of a flow, by health, group, deadline
// and ticket. Lanes with a live lease, waiting lanes of a tenant, and lanes that only remember their last run have entries of their own.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { isEmptyLane, type Lane, type LaneHealth } from '../../model/lane.ts'
import type { GroupQuery, LaneTable, ReadyQuery } from '../core/tables.ts'
import { getKeepUntil, parseRareFields, serializeRareFields } from '../sql/lane-columns.ts'
import { jsonTable } from './json-table.ts'
import type { IndexGroup } from './script-requests.ts'
import { TableView, type TableOptions, type TableSpec } from './table-view.ts'
import { groupRange, IN_GROUP, pad, prefixRange, quote, type Range } from './texts.ts'

/** The most groups that a claim or a page of stats visits. */
const MAX_GROUPS = 100_000

type BaseColumns = readonly [
  row: number,
  flow: string,
  key: string,
  tenant: string,
  group: string,
  tail: number,
  waiting: number,
  bytes: number,
  window: Millis,
  cap: Millis,
  due: Millis,
  ticket: number,
  health: LaneHealth,
]

const LANES: TableSpec<Lane> = {
  name: 'lanes',
  encode(lane) {
    const { row, flow, key, tenant, group, tail, waiting, bytes, window, cap, due, ticket, health } = lane
    const columns: BaseColumns = [row, flow, key, tenant, group, tail, waiting, bytes, window, cap, due, ticket, health]
    return `${JSON.stringify(columns)}\n${serializeRareFields(lane) ?? '{}'}`
  },
  decode(text, id) {
    const end = text.indexOf('\n')
    const [row, flow, key, tenant, group, tail, waiting, bytes, window, cap, due, ticket, health] = JSON.parse(
      text.slice(0, end),
    ) as BaseColumns
    const base = { row, id, flow, key, tenant, group, tail, waiting, bytes, window, cap, due, ticket, health }
    return { ...base, ...parseRareFields(text.slice(end + 1)) }
  },
  texts(lane) {
    const texts = [`o${pad(lane.row)}`]
    if (lane.due < NEVER) texts.push(`${queueName(lane)}${pad(lane.due)}${pad(lane.ticket)}`)
    if (lane.run?.state === 'running') texts.push(`${liveName(lane)}${pad(lane.run.until)}`)
    if (lane.tenant !== '' && lane.waiting > 0 && lane.run === undefined)
      texts.push(`${tenantName(lane)}${pad(lane.row)}`)
    const keep = getKeepUntil(lane)
    if (keep < NEVER) texts.push(`k${pad(keep)}`)
    return texts
  },
}

/** The name of the queue that a lane with a deadline is in. */
function queueName({ flow, health, group }: Pick<Lane, 'flow' | 'health' | 'group'>): string {
  return `r${quote(flow)}${health}${quote(group)}${IN_GROUP}`
}

/** The name of the group of lanes with a lease. */
function liveName({ flow, group }: Pick<Lane, 'flow' | 'group'>): string {
  return `v${quote(flow)}${quote(group)}${IN_GROUP}`
}

function tenantName({ flow, tenant }: Pick<Lane, 'flow' | 'tenant'>): string {
  return `t${quote(flow)}${quote(tenant)}${IN_GROUP}`
}

interface ServedGroup {
  readonly flow: string
  readonly group: string
  readonly turn: number
  readonly at: Millis
}

const SERVED: TableSpec<ServedGroup> = jsonTable('served', ({ at }) => [`a${pad(at)}`])

export class RedisLanes implements LaneTable {
  readonly view: TableView<Lane>
  readonly served: TableView<ServedGroup>

  /** The queues that this pass has put lanes into, by flow and health. */
  readonly #changedQueues = new Map<string, Set<string>>()

  constructor(lanes: TableOptions<Lane>, served: TableOptions<ServedGroup>) {
    this.view = new TableView(LANES, lanes)
    this.served = new TableView(SERVED, served)
  }

  get(id: LaneId): Lane | undefined {
    return this.view.get(id)
  }

  put(lane: Lane): void {
    this.view.put(lane.id, lane)
    if (lane.due < NEVER) this.#addQueue(lane)
  }

  #addQueue(lane: Lane): void {
    const name = toServedKey(lane.flow, String(lane.health))
    const known = this.#changedQueues.get(name)
    if (known === undefined) this.#changedQueues.set(name, new Set([queueName(lane)]))
    else known.add(queueName(lane))
  }

  resetPass(): void {
    this.#changedQueues.clear()
  }

  putWithNewRun(_before: Lane, lane: Lane): void {
    this.put(lane)
  }

  remove(lane: Lane): void {
    this.view.remove(lane.id)
  }

  findReady({ flow, health, now, n }: ReadyQuery): readonly Lane[] {
    const found = this.#findQueues(flow, health).flatMap((queue) => this.#findFirst(queue, n + 1))
    return found
      .filter((lane) => lane.due <= now)
      .toSorted(compareByDeadline)
      .slice(0, n)
  }

  findNextDeadline(flow: string, healths: readonly LaneHealth[]): Millis | undefined {
    let due = NEVER
    for (const health of healths)
      for (const queue of this.#findQueues(flow, health))
        due = Math.min(due, this.#findFirst(queue, 1)[0]?.due ?? NEVER)
    return due === NEVER ? undefined : due
  }

  /** A claim checks the lanes that it changes. Lanes that become ready meanwhile are found by the next claim. */
  #findFirst(queue: string, n: number): readonly Lane[] {
    return this.view.find(groupRange(queue), n, { isChecked: false })
  }

  /** Most flows have one queue for each health: without groups. */
  #findQueues(flow: string, health: LaneHealth): readonly string[] {
    const plain = queueName({ flow, health, group: '' })
    // The plain queue is loaded together with the list of the queues.
    this.#findFirst(plain, 1)
    const queues = new Set([plain])
    for (const { first } of this.#findGroups(flow, health)) queues.add(first.slice(0, first.indexOf(IN_GROUP) + 1))
    for (const queue of this.#changedQueues.get(toServedKey(flow, String(health))) ?? []) queues.add(queue)
    return [...queues]
  }

  #findGroups(flow: string, health: LaneHealth): readonly IndexGroup[] {
    return this.view.findGroups(prefixRange(`r${quote(flow)}${health}`), MAX_GROUPS)
  }

  findGroupHeads({ flow, healths, now, maxPerGroup, n }: GroupQuery): readonly Lane[] {
    const heads = new Map<string, Lane>()
    for (const health of healths) {
      for (const queue of this.#findQueues(flow, health)) {
        const [lane] = this.#findFirst(queue, 1)
        if (lane === undefined || lane.due > now) continue
        const head = heads.get(lane.group)
        if (head === undefined || compareByDeadline(lane, head) < 0) heads.set(lane.group, lane)
      }
    }
    const turns = new Map(
      [...heads.keys()].map((group) => [group, this.served.get(toServedKey(flow, group))?.turn ?? 0]),
    )
    const turnOf = ({ group }: Lane): number => turns.get(group) ?? 0
    const inOrder = [...heads.values()].toSorted(
      (one, other) => turnOf(one) - turnOf(other) || compareByDeadline(one, other),
    )
    const hasRoom = (lane: Lane): boolean =>
      maxPerGroup >= NEVER || this.#countLive(lane, now, maxPerGroup) < maxPerGroup
    return inOrder.filter(hasRoom).slice(0, n)
  }

  /** The check of the range makes sure that no other process begins a run of the group at the same time. */
  #countLive({ flow, group }: Lane, now: Millis, max: number): number {
    return this.view.find(leasedRange(liveName({ flow, group }), now), max).length
  }

  recordGroupServed({ flow, group }: Lane, turn: number, at: Millis): void {
    this.served.put(toServedKey(flow, group), { flow, group, turn, at })
  }

  forgetGroupTurns(before: Millis, now: Millis, n: number): number {
    const old = this.served.find({ from: 'a', to: `a${pad(before + 1)}` }, n, { isChecked: false })
    for (const group of old) {
      const key = toServedKey(group.flow, group.group)
      const hasDeadline = ([0, 1, 2] as const).some(
        (health) => this.#findFirst(queueName({ ...group, health }), 1).length > 0,
      )
      if (hasDeadline) this.served.put(key, { ...group, at: now })
      else this.served.remove(key)
    }
    return old.length
  }

  findStale(now: Millis, n: number): readonly Lane[] {
    const found = this.view.find({ from: 'k', to: `k${pad(now + 1)}` }, n, { isChecked: false })
    return found.filter((lane) => isEmptyLane(lane, now))
  }

  findOverTenantLimit(flow: string, most: number, now: Millis): readonly Lane[] {
    const groups = this.view.findGroups(prefixRange(`t${quote(flow)}`), MAX_GROUPS).filter(({ count }) => count > most)
    return groups.flatMap(({ first, count }) => {
      const name = first.slice(0, first.indexOf(IN_GROUP) + 1)
      const oldest = this.view.find(groupRange(name), count - most, { isChecked: false })
      return oldest.filter((lane) => lane.run === undefined && lane.window > now)
    })
  }
}

function compareByDeadline(one: Pick<Lane, 'due' | 'ticket'>, other: Pick<Lane, 'due' | 'ticket'>): number {
  return one.due - other.due || one.ticket - other.ticket
}

function toServedKey(flow: string, group: string): string {
  return quote(flow) + quote(group)
}

/** `leasedRange` is the range of the leases of a group (`liveName`) that have not expired. */
export function leasedRange(name: string, now: Millis): Range {
  return { from: `${name}${pad(now + 1)}`, to: groupRange(name).to }
}

/** `parseQueue` returns the flow of a queue, and the deadline of its first lane. */
export function parseQueue(first: string): { readonly flow: string; readonly due: Millis } {
  const end = first.indexOf(IN_GROUP)
  return { flow: parseFlow(first), due: Number(first.slice(end + 1, end + 17)) }
}

/** `parseFlow` returns the flow in a member whose first text in quotes is the flow. */
export function parseFlow(member: string): string {
  return JSON.parse(/^.("(?:[^"\\]|\\.)*")/.exec(member)?.[1] ?? '""') as string
}
