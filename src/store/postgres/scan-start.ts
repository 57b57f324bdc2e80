// `ScanStarts` remembers where the first lane of each flow is in the deadline index. Claims delete entries at the front of that
// index, and deleted entries stay in it while any session holds an old snapshot. Beside a snapshot of 100 s, a claim would walk
// through tens of thousands of dead entries. So while an old snapshot exists, a scan begins where the last scan found the first
// lane.
import type { Millis } from '../../clock.ts'
import type { Lane, LaneHealth } from '../../model/lane.ts'
import { HOLDING_SESSIONS } from './vacuum-stats.ts'
import type { Db } from './row-cache.ts'
import { number } from './values.ts'

/** New deadlines are later than now minus this margin, unless a transaction takes longer than the margin to commit. */
const COMMIT_MARGIN: Millis = 1_000
/** A full scan at this interval finds lanes that another process resumed at an earlier position. */
const FULL_SCAN_INTERVAL: Millis = 5_000
const SNAPSHOT_CHECK_INTERVAL: Millis = 5_000
const OLD_SNAPSHOT_AGE: Millis = 5_000

/** A role that may not see the sessions of others gets null for their start. These sessions count as old, because they may be. */
const OLDEST = `select coalesce(max(coalesce(extract(epoch from clock_timestamp() - xact_start) * 1000, 1e9)), 0)
  from ${HOLDING_SESSIONS}`

interface ScanStart {
  readonly due: Millis
  /** When the whole index range was last scanned. */
  readonly fullScanAt: Millis
}

/** `ScanStarts` belongs to one process. */
export class ScanStarts {
  readonly #starts = new Map<string, ScanStart>()
  #now: Millis = 0
  #checkedAt: Millis = 0
  #hasOldSnapshot = false

  /** `isActive` returns whether any session holds an old snapshot. */
  get isActive(): boolean {
    return this.#hasOldSnapshot
  }

  /** `getStart` returns a position before which no lane of the flow and health is, as far as this process knows. */
  getStart(flow: string, health: LaneHealth): Millis {
    const start = this.#hasOldSnapshot ? this.#starts.get(queueKey(flow, health)) : undefined
    return start === undefined || this.#now - start.fullScanAt >= FULL_SCAN_INTERVAL
      ? 0
      : Math.min(start.due, this.#now - COMMIT_MARGIN)
  }

  /** `recordFront` stores the position of the first lane at or after `from`, which may be a running lane; undefined for none. */
  recordFront(flow: string, health: LaneHealth, from: Millis, first: Millis | undefined): void {
    const name = queueKey(flow, health)
    const whole = from === 0 ? this.#now : (this.#starts.get(name)?.fullScanAt ?? 0)
    this.#starts.set(name, { due: first ?? this.#now, fullScanAt: whole })
  }

  /** `lowerFor` moves the start back for lanes that are written before it, e.g. a resumed lane returns to its old position. */
  lowerFor(lanes: readonly Pick<Lane, 'flow' | 'health' | 'due'>[]): void {
    for (const { flow, health, due } of lanes) {
      const name = queueKey(flow, health)
      const start = this.#starts.get(name)
      if (start !== undefined && due < start.due) this.#starts.set(name, { ...start, due })
    }
  }

  setNow(now: Millis): void {
    this.#now = Math.max(this.#now, now)
  }

  /** `checkSnapshots` sends its query at most every 5 s, together with the statements of a transaction. */
  async checkSnapshots(db: Db): Promise<void> {
    if (this.#now - this.#checkedAt < SNAPSHOT_CHECK_INTERVAL) return
    this.#checkedAt = this.#now
    const [row] = await db.query(OLDEST)
    this.#hasOldSnapshot = number(row?.[0]) > OLD_SNAPSHOT_AGE
  }
}

function queueKey(flow: string, health: LaneHealth): string {
  return `${health} ${flow}`
}
