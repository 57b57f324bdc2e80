// Whose turn it is among groups (L5g). Groups that have something ready stand in memory, in the order of their turns: a
// turn looks at as many as it has slots, and at those that may have no more runs, not at every tenant that has a lane.
// Where a group stands may be too early, never too late: whoever finds it there too early puts it right and asks again.
// Nothing of it is in the file but when a group was served; the rest is found again from the lanes.
import type { Millis } from '../../clock.ts'
import type { Lane, Line } from '../../model/lane.ts'
import type { GroupQuery } from '../rules/tables.ts'
import { Heap } from './heap.ts'
import { number, text, type Statements } from './statements.ts'

const BECAME_READY = `select grp, due, ticket from lanes indexed by lanes_line
  where flow = ? and line = ? and due > ? and due <= ? order by due, ticket`
const SERVED = 'select turn from served where flow = ? and grp = ?'
const TOOK_TURN = 'insert or replace into served (flow, grp, turn, at) values (?, ?, ?, ?)'
const LONG_AGO = 'select flow, grp from served where at <= ? order by at limit ?'
const STILL_THERE = 'update served set at = ? where flow = ? and grp = ?'
const FORGET = 'delete from served where flow = ? and grp = ?'

const LINES: readonly Line[] = [0, 1, 2]
/** So many that are not known any more do not matter. */
const FEW = 64

/** What it has to know of lanes. */
export interface LanesOfGroups {
  /** The first ready lane of the group in the line; none stands before `from`. */
  first(place: { readonly flow: string; readonly line: Line; readonly now: Millis }, from: Standing): Lane | undefined
  live(flow: string, group: string, now: Millis): number
  /** Whether a lane of the group waits for time. */
  waits(flow: string, group: string): boolean
}

/** A group in a line: when it was last served, and where its first lane stands, or stood. */
export interface Standing {
  readonly group: string
  readonly served: number
  readonly due: Millis
  readonly ticket: number
}

function isEarlier(one: Pick<Standing, 'due' | 'ticket'>, other: Pick<Standing, 'due' | 'ticket'>): boolean {
  return one.due < other.due || (one.due === other.due && one.ticket < other.ticket)
}

function isBefore(one: Standing, other: Standing): boolean {
  return one.served === other.served ? isEarlier(one, other) : one.served < other.served
}

/** Healthy, failing or suspect: the groups that may have a ready lane of the kind. */
class LineOfGroups {
  readonly line: Line
  readonly #known = new Map<string, Standing>()
  /** What is not known any more is passed over when it comes to the top. */
  #inOrder = new Heap<Standing>(isBefore)

  constructor(line: Line) {
    this.line = line
  }

  get(group: string): Standing | undefined {
    return this.#known.get(group)
  }

  stand(standing: Standing): void {
    this.#known.set(standing.group, standing)
    this.#inOrder.add(standing)
  }

  leave(group: string): void {
    this.#known.delete(group)
  }

  get first(): Standing | undefined {
    for (let first = this.#inOrder.first; first !== undefined; first = this.#inOrder.first) {
      if (this.#known.get(first.group) === first) return first
      this.#inOrder.takeFirst()
    }
    return undefined
  }

  /** Out of the order, until they are put back. */
  takeFirst(): void {
    this.#inOrder.takeFirst()
  }

  putBack(standing: Standing): void {
    if (this.#known.get(standing.group) === standing) this.#inOrder.add(standing)
    if (this.#inOrder.size > 2 * this.#known.size + FEW) this.#tidy()
  }

  #tidy(): void {
    this.#inOrder = new Heap<Standing>(isBefore)
    for (const standing of this.#known.values()) this.#inOrder.add(standing)
  }
}

interface FlowTurns {
  /** Lanes with a deadline up to this moment have been noticed. */
  upTo: Millis
  readonly lines: readonly LineOfGroups[]
}

export class GroupTurns {
  readonly #sql: Statements
  readonly #lanes: LanesOfGroups
  /** Only flows whose groups take turns. */
  readonly #flows = new Map<string, FlowTurns>()

  constructor(sql: Statements, lanes: LanesOfGroups) {
    this.#sql = sql
    this.#lanes = lanes
  }

  /** The first lanes of the next groups in turn. */
  next({ flow, lines, now, perGroup, n }: GroupQuery): readonly Lane[] {
    const asked = this.#lookedAt(flow, now).lines.filter(({ line }) => lines.includes(line))
    const found: Lane[] = []
    const seen = new Set<string>()
    const heads = new Map<Standing, Lane>()
    const aside: (readonly [LineOfGroups, Standing])[] = []
    while (found.length < n) {
      const line = foremost(asked)
      const standing = line?.first
      if (line === undefined || standing === undefined) break
      line.takeFirst()
      aside.push([line, standing])
      const { group } = standing
      if (seen.has(group)) continue
      if (!heads.has(standing) && this.#lanes.live(flow, group, now) >= perGroup) {
        seen.add(group)
        continue
      }
      const head = heads.get(standing) ?? this.#lanes.first({ flow, line: line.line, now }, standing)
      if (head === undefined) line.leave(group)
      else if (isEarlier(standing, head)) {
        const later = { ...standing, due: head.due, ticket: head.ticket }
        heads.set(later, head)
        line.stand(later)
      } else {
        seen.add(group)
        found.push(head)
      }
    }
    for (const [line, standing] of aside) line.putBack(standing)
    return found
  }

  /** The lane was written: if it is ready, nobody will come across it in the index of deadlines any more. */
  written({ flow, line, group, due, ticket }: Lane): void {
    const turns = this.#flows.get(flow)
    const its = turns !== undefined && due <= turns.upTo ? turns.lines[line] : undefined
    if (its !== undefined) this.#notice(flow, its, { group, due, ticket })
  }

  served({ flow, group }: Lane, turn: number, now: Millis): void {
    this.#sql.run(TOOK_TURN, flow, group, turn, now)
    for (const line of this.#flows.get(flow)?.lines ?? []) {
      const known = line.get(group)
      if (known !== undefined) line.stand({ ...known, served: turn })
    }
  }

  /** Whoever has nothing waiting is a newcomer when it comes back; whoever has is looked at again after as long. */
  forgetServed(before: Millis, now: Millis, n: number): number {
    const old = this.#sql.all(LONG_AGO, before, n)
    for (const [flow, group] of old.map((row) => [text(row[0]), text(row[1])] as const)) {
      if (this.#lanes.waits(flow, group)) this.#sql.run(STILL_THERE, now, flow, group)
      else {
        this.#sql.run(FORGET, flow, group)
        for (const line of this.#flows.get(flow)?.lines ?? []) line.leave(group)
      }
    }
    return old.length
  }

  /** The file no longer has what memory says it has. */
  letGo(): void {
    this.#flows.clear()
  }

  #lookedAt(flow: string, now: Millis): FlowTurns {
    let turns = this.#flows.get(flow)
    if (turns === undefined) {
      turns = { upTo: -1, lines: LINES.map((line) => new LineOfGroups(line)) }
      this.#flows.set(flow, turns)
    }
    if (turns.upTo === now) return turns
    for (const line of turns.lines) {
      for (const [group, due, ticket] of this.#sql.all(BECAME_READY, flow, line.line, turns.upTo, now)) {
        this.#notice(flow, line, { group: text(group), due: number(due), ticket: number(ticket) })
      }
    }
    // Also when the clock was set back: what is ready no longer is noticed again when its time comes.
    turns.upTo = now
    return turns
  }

  #notice(flow: string, line: LineOfGroups, lane: Pick<Lane, 'group' | 'due' | 'ticket'>): void {
    const known = line.get(lane.group)
    if (known === undefined) {
      line.stand({ ...lane, served: number(this.#sql.get(SERVED, flow, lane.group)?.[0] ?? 0) })
    } else if (isEarlier(lane, known)) line.stand({ ...known, due: lane.due, ticket: lane.ticket })
  }
}

function foremost(lines: readonly LineOfGroups[]): LineOfGroups | undefined {
  let best: { readonly line: LineOfGroups; readonly first: Standing } | undefined
  for (const line of lines) {
    const { first } = line
    if (first !== undefined && (best === undefined || isBefore(first, best.first))) best = { line, first }
  }
  return best?.line
}
