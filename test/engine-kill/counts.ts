// The counts over all lives of the process, and the descriptions of the first violations.

export interface EngineCounts {
  cycles: number
  /** Events whose `publish` resolved. */
  acked: number
  /** Handlers that were started. */
  runs: number
  /** Runs that were reported to the process as done. */
  done: number
  /** Handlers that ran when their process was killed, and runs that returned afterwards. */
  lapsed: number
  resumed: number
  /** Events that handlers published and that were handled in turn. */
  published: number
  /** Dead letters at the end, and those of them that died of kills alone. */
  dead: number
  crashed: number
  /** Acknowledged events that were published once more after a restart. */
  resent: number
  /** Settlements after the end of the lease; the store must reject each of them. */
  refused: number
  /** Acknowledged events that were neither handled nor are in a dead letter. */
  lost: number
  /** Two handlers at once in a lane, or in a flow with concurrency 1. */
  overlapping: number
  /** Runs that ran again, or have two records, after an acknowledged end. */
  repeatedAfterDone: number
  /** All other violations. */
  wrong: number
}

export function noCounts(): EngineCounts {
  return {
    cycles: 0,
    acked: 0,
    runs: 0,
    done: 0,
    lapsed: 0,
    resumed: 0,
    published: 0,
    dead: 0,
    crashed: 0,
    resent: 0,
    refused: 0,
    lost: 0,
    overlapping: 0,
    repeatedAfterDone: 0,
    wrong: 0,
  }
}

export type Offence = 'lost' | 'overlapping' | 'repeatedAfterDone' | 'wrong'

const COMPLAINTS_KEPT = 20

export class Complaints {
  readonly counts: EngineCounts = noCounts()
  readonly first: string[] = []

  add(offence: Offence, what: string): void {
    this.counts[offence]++
    if (this.first.length < COMPLAINTS_KEPT) this.first.push(`${offence}: ${what}`)
  }
}
