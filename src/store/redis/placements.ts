// `RedisPlacements` holds the placements of a transaction. They have an index and no rows: a member has the lane, rank and position,
// NUL, and the rest. Each change of a lane's placements changes the lane's row too, so the check of that row covers them.
import type { LaneId } from '../../model/identity.ts'
import type { Lane, Rank } from '../../model/lane.ts'
import type { PlacementTable, WaitingPlacement } from '../core/tables.ts'
import type { RedisReply } from './client.ts'
import type { CommitRequest, LoadRequest } from './script-requests.ts'
import type { TransactionPart } from './table-view.ts'
import { pad, prefixRange, toMember } from './texts.ts'

/** The placements of one lane and rank, as far as they are known: the first ones. */
interface KnownQueue {
  readonly members: readonly string[]
  /** The last known position; Infinity if all are known. */
  readonly upTo: number
}

/** `RunPlacements` are the placements of the runs of this process: they are needed again when the run ends. */
export type RunPlacements = Map<LaneId, RunQueue>

interface RunQueue {
  readonly run: string
  readonly prefix: string
  readonly queue: KnownQueue
}

interface Wanted {
  n: number
  upTo: number
}

export interface PlacedEvents {
  readonly events: readonly string[]
  readonly rows: readonly (Buffer | null)[]
  readonly bodies: readonly (Buffer | null)[]
}

const NOTHING: ReadonlyMap<string, string | undefined> = new Map()

export class RedisPlacements implements PlacementTable, TransactionPart {
  readonly set: string
  readonly #runs: RunPlacements
  readonly #known = new Map<string, KnownQueue>()
  readonly #missing = new Map<string, Wanted>()
  /** The changed placements of each lane and rank, by the text before NUL; undefined for a removed one. */
  readonly #changed = new Map<string, Map<string, string | undefined>>()
  readonly #removed: string[] = []
  readonly #ofRuns: { readonly lane: LaneId; readonly run: string; readonly prefix: string; readonly upTo: number }[] =
    []

  constructor(prefix: string, runs: RunPlacements) {
    this.set = `${prefix}:placements:index`
    this.#runs = runs
  }

  add(lane: Lane, rank: Rank, placement: WaitingPlacement): void {
    const prefix = toPrefix(lane, rank)
    const text = `${prefix}${pad(placement.pos)}`
    const { event, size, cap, replay = '' } = placement
    this.#change(prefix, text, toMember(text, `${event}:${size}:${cap}:${replay}`))
  }

  #change(prefix: string, text: string, member: string | undefined): void {
    const changed = this.#changed.get(prefix)
    if (changed === undefined) this.#changed.set(prefix, new Map([[text, member]]))
    else changed.set(text, member)
  }

  findFirst(lane: Lane, rank: Rank, n: number): readonly WaitingPlacement[] {
    const prefix = toPrefix(lane, rank)
    const known = this.#find(lane, prefix)
    const found = known === undefined ? [] : this.#merge(prefix, known)
    if (known === undefined || (found.length < n && known.upTo !== Infinity)) {
      const more = known === undefined ? n : 2 * Math.max(n, known.members.length)
      this.#request(prefix, { n: more, upTo: 0 })
    }
    return found.slice(0, n).map(toPlacement)
  }

  findUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    const prefix = toPrefix(lane, rank)
    const known = this.#find(lane, prefix)
    if (known === undefined || known.upTo < pos) {
      this.#request(prefix, { n: 0, upTo: pos })
      return []
    }
    if (lane.run !== undefined && lane.run.rank === rank && lane.run.upto === pos)
      this.#ofRuns.push({ lane: lane.id, run: lane.run.id, prefix, upTo: pos })
    return this.#merge(prefix, known)
      .map(toPlacement)
      .filter((placement) => placement.pos <= pos)
  }

  takeUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    const taken = this.findUpTo(lane, rank, pos)
    this.remove(
      lane,
      rank,
      taken.map((placement) => placement.pos),
    )
    return taken
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    const prefix = toPrefix(lane, rank)
    const known = new Map(
      this.#known.get(prefix)?.members.map((member) => [member.slice(0, member.indexOf('\0')), member]),
    )
    for (const pos of positions) {
      const text = `${prefix}${pad(pos)}`
      const member = known.get(text)
      if (member !== undefined) this.#removed.push(member)
      this.#change(prefix, text, undefined)
    }
  }

  findByEvent(lane: Lane, event: number): readonly { readonly rank: Rank; readonly placement: WaitingPlacement }[] {
    return ([0, 1] as const).flatMap((rank) =>
      this.findFirst(lane, rank, Infinity)
        .filter((placement) => placement.event === event)
        .map((placement) => ({ rank, placement })),
    )
  }

  /** A run's batch is frozen, and a purge that removes some of it changes the number of its events. */
  #find({ id, run }: Lane, prefix: string): KnownQueue | undefined {
    const known = this.#known.get(prefix)
    if (known !== undefined) return known
    const ofRun = this.#runs.get(id)
    if (ofRun?.prefix !== prefix || ofRun.run !== run?.id || ofRun.queue.members.length !== run.events) return undefined
    this.#known.set(prefix, ofRun.queue)
    return ofRun.queue
  }

  #merge(prefix: string, { members, upTo }: KnownQueue): readonly string[] {
    const changed = this.#changed.get(prefix) ?? NOTHING
    if (changed.size === 0) return members
    const kept = members.filter((member) => !changed.has(member.slice(0, member.indexOf('\0'))))
    // New positions come after all stored ones.
    for (const member of changed.values())
      if (member !== undefined && (upTo === Infinity || toPlacement(member).pos <= upTo)) kept.push(member)
    return kept
  }

  #request(prefix: string, { n, upTo }: Wanted): void {
    const wanted = this.#missing.get(prefix)
    if (wanted === undefined) this.#missing.set(prefix, { n, upTo })
    else {
      wanted.n = Math.max(wanted.n, n)
      wanted.upTo = Math.max(wanted.upTo, upTo)
    }
  }

  /** `addFirst` loads the first placements of lanes that a claim is about to take, with their events. */
  addFirst(load: LoadRequest, keys: { rows: string; bodies: string }, onEvents: (placed: PlacedEvents) => void): void {
    const prefixes = [...this.#missing].flatMap(([prefix, { n }]) => (n > 0 && n <= MAX_FIRST ? prefix : []))
    if (prefixes.length === 0) return
    const perLane = Math.max(...prefixes.map((prefix) => this.#missing.get(prefix)?.n ?? 0))
    for (const prefix of prefixes) this.#missing.delete(prefix)
    load.readPlaced({ set: this.set, ...keys, perLane, bytes: MAX_BYTES }, prefixes, (reply) => {
      const [lanes, events, rows, bodies] = reply as readonly [
        Buffer[][],
        Buffer[],
        (Buffer | null)[],
        (Buffer | null)[],
      ]
      for (const [at, members] of lanes.entries()) this.#setKnown(prefixes[at] ?? '', members.map(String), perLane)
      onEvents({ events: events.map(String), rows, bodies } satisfies PlacedEvents & { rows: RedisReply })
    })
  }

  #setKnown(prefix: string, members: readonly string[], n: number): void {
    const last = members.at(-1)
    const upTo = members.length < n ? Infinity : last === undefined ? 0 : toPlacement(last).pos
    this.#known.set(prefix, { members, upTo })
  }

  addReads(load: LoadRequest): void {
    for (const [prefix, { n, upTo }] of this.#missing) {
      // Both reads begin with the first placement, so the longer one replaces the other.
      const { from, to } = prefixRange(prefix)
      if (n > 0 || upTo === 0)
        load.readRange(this.set, undefined, { from, to, n }, ({ members }) => this.#setKnown(prefix, members, n))
      else {
        const end = { from, to: `${prefix}${pad(upTo + 1)}`, n: Infinity }
        load.readRange(this.set, undefined, end, ({ members }) => this.#known.set(prefix, { members, upTo }))
      }
    }
    this.#missing.clear()
  }

  resetPass(): void {
    this.#missing.clear()
    this.#changed.clear()
    this.#removed.length = 0
    this.#ofRuns.length = 0
  }

  get hasMisses(): boolean {
    return this.#missing.size > 0
  }

  addCommit(commit: CommitRequest): void {
    for (const changed of this.#changed.values())
      for (const member of changed.values()) if (member !== undefined) commit.write('ZADD', this.set, '0', member)
    for (const member of this.#removed) commit.write('ZREM', this.set, member)
  }

  updateCache(): void {
    for (const { lane, run, prefix, upTo } of this.#ofRuns) {
      const known = this.#known.get(prefix)
      if (known === undefined) continue
      const members = this.#merge(prefix, known).filter((member) => toPlacement(member).pos <= upTo)
      if (members.length === 0) this.#runs.delete(lane)
      else this.#runs.set(lane, { run, prefix, queue: { members, upTo } })
    }
  }

  forgetLoaded(): void {
    for (const prefix of this.#known.keys()) this.#runs.delete(prefix.slice(0, -1))
    this.#known.clear()
  }
}

/** A claim rarely takes more events of one lane than this. It loads more in a second step. */
const MAX_FIRST = 1_000
const MAX_BYTES = 4_000_000

function toPrefix({ id }: Lane, rank: Rank): string {
  return `${id}${rank}`
}

function toPlacement(member: string): WaitingPlacement {
  const end = member.indexOf('\0')
  const [event = '', size = '', cap = '', ...replay] = member.slice(end + 1).split(':')
  const placement = {
    pos: Number(member.slice(end - 16, end)),
    event: Number(event),
    size: Number(size),
    cap: Number(cap),
  }
  const name = replay.join(':')
  return name === '' ? placement : { ...placement, replay: name }
}
