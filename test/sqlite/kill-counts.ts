// The counts over all cycles, and the descriptions of the first violations.

export interface KillCounts {
  cycles: number
  ackedAppends: number
  ackedSettlements: number
  claims: number
  sentAgain: number
  /** Calls in progress when the process died. Both outcomes are allowed. */
  unknownPresent: number
  unknownAbsent: number
  /** Acknowledged events that are missing. */
  lost: number
  /** Events that ran again, or wait again, after an acknowledged end. */
  repeatedAfterDone: number
  /** All other violations: an event in two places, a repeated token, another body. */
  wrong: number
}

export function noCounts(): KillCounts {
  return {
    cycles: 0,
    ackedAppends: 0,
    ackedSettlements: 0,
    claims: 0,
    sentAgain: 0,
    unknownPresent: 0,
    unknownAbsent: 0,
    lost: 0,
    repeatedAfterDone: 0,
    wrong: 0,
  }
}

export type Offence = 'lost' | 'repeatedAfterDone' | 'wrong'

const COMPLAINTS_KEPT = 20

export class Complaints {
  readonly counts: KillCounts = noCounts()
  readonly first: string[] = []

  add(offence: Offence, what: string): void {
    this.counts[offence]++
    if (this.first.length < COMPLAINTS_KEPT) this.first.push(`${offence}: ${what}`)
  }

  /** A known event that was not found is lost; each is counted once. */
  missing(known: Set<string>, seen: ReadonlySet<string>, where: string): void {
    for (const one of known) {
      if (seen.has(one)) continue
      known.delete(one)
      this.add('lost', `${one}, which should be ${where}`)
    }
  }
}
