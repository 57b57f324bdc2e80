// What is counted over all lives of the process, and what is said of the first offences.

export interface EngineCounts {
  cycles: number
  /** Events whose `publish` resolved. */
  acked: number
  /** Handlers that were entered. */
  runs: number
  /** Runs of which the process was told that they are done. */
  done: number
  /** Handlers that were at work when their process was killed, and runs that came back from that. */
  lapsed: number
  resumed: number
  /** Events that handlers published and that were handled in turn. */
  published: number
  /** Dead letters at the end, and those of them that died of kills alone. */
  dead: number
  crashed: number
  /** Acknowledged events that were published once more after a restart. */
  resent: number
  /** Settlements of leases that had ended, each of them refused. */
  refused: number
  /** Acknowledged, and neither handled nor in a dead letter. */
  lost: number
  /** Two handlers of a lane at once, or of a flow that has one slot. */
  overlapping: number
  /** Ran again, or has two records, after an acknowledged end. */
  repeatedAfterDone: number
  /** Anything else that must not be. */
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
