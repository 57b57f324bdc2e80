// One commit in the making: the tables, the moment, and what to tell the world once it is done.
import type { Millis } from '../../clock.ts'
import { emptyLane, isEmpty, withoutPastHold, type Lane, type LaneName, type Moment } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Change, Hint } from '../contract/index.ts'
import type { RunRow, Tables } from './tables.ts'

export type Note = Omit<Change, 'seq'>

/** Thousands of notes are kept in memory, and a key may have 16 KB. */
const KEY_NOTED = 256

export class Work implements Moment {
  readonly tables: Tables
  readonly now: Millis
  readonly draw: () => number
  readonly notes: Note[] = []
  readonly #hints: Hint[] = []
  readonly #due = new Set<string>()

  constructor(tables: Tables, now: Millis) {
    this.tables = tables
    this.now = now
    this.draw = tables.draw
  }

  note(note: Omit<Note, 'at'>): void {
    this.notes.push({ ...note, at: this.now })
  }

  /** Of a lane, or of the run or dead letter `id` of it. */
  noteOf(lane: Pick<Lane, 'id' | 'flow' | 'key'>, kind: Note['kind'], detail: string, id: string = lane.id): void {
    const { flow, key } = lane
    const named = key.length <= KEY_NOTED && { key }
    this.notes.push({ kind, flow, id, detail, at: this.now, lane: lane.id, ...named })
  }

  hint(hint: Exclude<Hint, { kind: 'due' }>): void {
    this.#hints.push(hint)
  }

  /** Something of the flow has a deadline now. */
  due(flow: string): void {
    this.#due.add(flow)
  }

  get hints(): readonly Hint[] {
    return [...this.#hints, ...Array.from(this.#due, (flow) => ({ kind: 'due', flow }) as const)]
  }

  /** A lane, made if there is none. */
  lane(name: LaneName): Lane {
    return this.tables.lanes.get(name.id) ?? { ...emptyLane(name), row: this.draw() }
  }

  /** Keeps the lane, or forgets it when nothing is left in it. */
  save(lane: Lane): void {
    if (isEmpty(lane, this.now)) this.tables.lanes.remove(lane)
    else this.tables.lanes.put(withoutPastHold(lane, this.now))
  }

  /** A name for a run that no store has used. */
  runId(): string {
    return `${this.tables.name}-${this.draw().toString(36)}`
  }
}

/** As most runs are: done at the first try. */
export function isPlain(run: RunRow): boolean {
  const atOnce = run.kind === 'done' && run.tries === 0 && run.lapses === 0 && run.attempts.length === 0
  return atOnce && run.parent === '' && run.tenant === '' && run.reason === ''
}

/** The number in a run's id: runs sort by it in the order in which they began. */
export function runNumber(id: string): number {
  return Number.parseInt(id.slice(id.lastIndexOf('-') + 1), 36)
}

/** Lanes that a call touches more than once are read once and written once. */
export class LanesAtHand {
  readonly #work: Work
  readonly #lanes = new Map<LaneId, Lane>()

  constructor(work: Work) {
    this.#work = work
  }

  get(name: LaneName): Lane {
    return this.#lanes.get(name.id) ?? this.#work.lane(name)
  }

  set(lane: Lane): void {
    this.#lanes.set(lane.id, lane)
  }

  save(): void {
    for (const lane of this.#lanes.values()) this.#work.save(lane)
    this.#lanes.clear()
  }
}
