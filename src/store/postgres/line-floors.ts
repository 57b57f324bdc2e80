// Where the line of a flow begins. It is the front of a line that is deleted, and what is deleted stays in the index for as
// long as somebody holds an old snapshot: beside one of 100 s a claim goes through tens of thousands of dead entries before
// it finds the first lane. So while there is one, a look begins where the last look found the first lane.
import type { Millis } from '../../clock.ts'
import type { Lane, Line } from '../../model/lane.ts'
import { HOLDING_SESSIONS } from './hygiene.ts'
import type { Db } from './part.ts'
import { number } from './values.ts'

/** Deadlines that are set now lie later, unless a transaction takes longer than this to commit. */
const MARGIN: Millis = 1_000
/** What another process lets go, to stand further back than that, is found by then. */
const WHOLE_EVERY: Millis = 5_000
const SNAPSHOTS_EVERY: Millis = 5_000
const OLD: Millis = 5_000

/** Who may not see what others do sees no moment: that one may be old. */
const OLDEST = `select coalesce(max(coalesce(extract(epoch from clock_timestamp() - xact_start) * 1000, 1e9)), 0)
  from ${HOLDING_SESSIONS}`

interface Floor {
  readonly due: Millis
  /** When all of the line was looked at. */
  readonly whole: Millis
}

/** Of one process. */
export class LineFloors {
  readonly #floors = new Map<string, Floor>()
  #now: Millis = 0
  #lookedAt: Millis = 0
  #isOld = false

  /** There is a snapshot that is held for long. */
  get areUsed(): boolean {
    return this.#isOld
  }

  /** No live lane of the line stands before it, as far as this process knows. */
  from(flow: string, line: Line): Millis {
    const floor = this.#isOld ? this.#floors.get(nameOf(flow, line)) : undefined
    return floor === undefined || this.#now - floor.whole >= WHOLE_EVERY ? 0 : Math.min(floor.due, this.#now - MARGIN)
  }

  /** Where the first lane stands from there on, also one that runs; undefined for none. */
  found(flow: string, line: Line, from: Millis, first: Millis | undefined): void {
    const name = nameOf(flow, line)
    const whole = from === 0 ? this.#now : (this.#floors.get(name)?.whole ?? 0)
    this.#floors.set(name, { due: first ?? this.#now, whole })
  }

  /** One that was held stands, once it is let go, where it would have stood. */
  written(lanes: readonly Pick<Lane, 'flow' | 'line' | 'due'>[]): void {
    for (const { flow, line, due } of lanes) {
      const name = nameOf(flow, line)
      const floor = this.#floors.get(name)
      if (floor !== undefined && due < floor.due) this.#floors.set(name, { ...floor, due })
    }
  }

  happened(now: Millis): void {
    this.#now = Math.max(this.#now, now)
  }

  /** Now and then, with what a transaction asks anyway. */
  async look(db: Db): Promise<void> {
    if (this.#now - this.#lookedAt < SNAPSHOTS_EVERY) return
    this.#lookedAt = this.#now
    const [row] = await db.rows(OLDEST)
    this.#isOld = number(row?.[0]) > OLD
  }
}

function nameOf(flow: string, line: Line): string {
  return `${line} ${flow}`
}
