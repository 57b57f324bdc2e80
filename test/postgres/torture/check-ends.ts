// Checks that every placement of every event has exactly the ending that the ledger knows: done, dropped or superseded in a
// run's record, dead in a dead letter, or purged. Every record and dead letter must come from a handler or an operator.
import type { Acted, Ledger, Lease, Sent } from './ledger.ts'
import { inputOf, lanesOf, type Input } from './plan.ts'
import { eventsOf, type DeadLetterRow, type RunRow, type Tables } from './tables.ts'

const ENDS: readonly string[] = ['done', 'partial', 'dropped', 'superseded']
const LAPSES_MAX = 4

export function checkEnds(ledger: Ledger, tables: Tables, listed: readonly string[]): readonly string[] {
  return new Ends(ledger, tables, listed).check()
}

class Ends {
  readonly #complaints: string[] = []
  readonly #ledger: Ledger
  readonly #tables: Tables
  readonly #listed: ReadonlySet<string>
  readonly #labels: ReadonlyMap<number, string>
  readonly #wiped: ReadonlySet<string>
  readonly #name: string
  readonly #byRun: ReadonlyMap<string, readonly Lease[]>
  readonly #byLane: ReadonlyMap<string, readonly Acted[]>

  constructor(ledger: Ledger, tables: Tables, listed: readonly string[]) {
    this.#ledger = ledger
    this.#tables = tables
    this.#listed = new Set(listed)
    this.#labels = new Map(tables.events.map(({ seq, id }) => [seq, id]))
    this.#wiped = new Set(tables.events.flatMap(({ id, purged_hash: hash }) => (hash === '' ? [] : id)))
    this.#name = tables.meta[0]?.name ?? ''
    this.#byRun = Map.groupBy(ledger.leases, ({ run }) => run)
    this.#byLane = Map.groupBy(ledger.acts, ({ target }) => target)
  }

  check(): readonly string[] {
    const ends = new Map<string, string[]>()
    const end = (lane: string, label: string, what: string): void => {
      const at = `${label} in ${lane}`
      ends.set(at, [...(ends.get(at) ?? []), what])
    }
    for (const run of this.#tables.runs) {
      this.#record(run)
      if (ENDS.includes(run.kind))
        for (const label of this.#labelsOf(run.events)) end(run.lane, label, `${run.kind} by ${this.#idOf(run)}`)
    }
    for (const deadLetter of this.#tables.deadLetters) {
      this.#deadLetter(deadLetter)
      for (const label of this.#labelsOf(eventsOf(deadLetter))) end(deadLetter.lane, label, `dead in ${deadLetter.id}`)
    }
    for (const input of this.#inputs()) this.#places(input, ends)
    for (const at of ends.keys()) this.#complain(`${at} has an end, and was never placed there`)
    for (const lease of this.#ledger.leases) this.#settled(lease)
    for (const id of this.#listed)
      if (!this.#tables.deadLetters.some((deadLetter) => deadLetter.id === id))
        this.#complain(`dead letter ${id} is listed, and is not there`)
    return this.#complaints
  }

  #complain(what: string): void {
    this.#complaints.push(what)
  }

  #idOf({ n }: RunRow): string {
    return `${this.#name}-${n.toString(36)}`
  }

  #labelsOf(seqs: readonly number[]): readonly string[] {
    return seqs.map((seq) => this.#labels.get(seq) ?? `event ${seq}, which is gone,`)
  }

  /** All stored events, from any publisher. */
  *#inputs(): Iterable<Input> {
    for (const { id } of this.#tables.events) yield this.#ledger.sent.get(id)?.input ?? inputOf(id, 'parcel')
  }

  #places(input: Input, ends: Map<string, readonly string[]>): void {
    // When the body goes, the event leaves the records of all its lanes. Whether the body may go is checked with the event.
    const isWiped = this.#wiped.has(input.id)
    for (const lane of lanesOf(input)) {
      const at = `${input.id} in ${lane}`
      const found = ends.get(at) ?? []
      ends.delete(at)
      const { may, must } = purged(this.#ledger, input, lane)
      const where = `${input.id} of ${input.data.topic} in ${lane}`
      if ((must || isWiped) && found.length > 0) this.#complain(`${where} was purged, and is ${found.join(' and ')}`)
      if (!may && !isWiped && found.length === 0) this.#complain(`lost: ${where} has no end`)
      if (found.length > 1) this.#complain(`twice: ${where} is ${found.join(' and ')}`)
    }
  }

  /** Checks that a record matches what a handler or an operator did. */
  #record(row: RunRow): void {
    const id = this.#idOf(row)
    const leases = this.#byRun.get(id) ?? []
    const labels = this.#labelsOf(row.events)
    switch (row.kind) {
      case 'done':
        return this.#from(id, labels, leases, (one) => one.outcome?.kind === 'done' && one.how === 'done')
      case 'partial':
        return this.#from(id, labels, leases, (one) => one.outcome?.kind === 'partial')
      case 'dropped':
        if (leases.some(({ outcome, answer }) => isAccepted(answer) && DROPS.includes(outcome?.kind ?? ''))) return
        if (this.#did('drop-lane', row.lane) || this.#did('drop-dead-letter', id)) return
        return this.#complain(`${id} is on record as dropped, and nobody dropped it`)
      case 'superseded': {
        const by = this.#byRun.get(row.parent)?.some(({ superseded }) => superseded >= row.events.length)
        if (by !== true) this.#complain(`${id} is on record as superseded, and no run took its place`)
        return
      }
      case 'cancelled':
        return this.#from(id, labels, leases, (one) => one.outcome?.kind === 'cancelled')
      case 'dead':
        if (!this.#tables.deadLetters.some((deadLetter) => deadLetter.id === id))
          this.#complain(`${id} is dead, and there is no dead letter`)
        return
      case 'purged':
        return
      default:
        this.#complain(`${id} is on record as ${row.kind}`)
    }
  }

  #from(id: string, labels: readonly string[], leases: readonly Lease[], is: (lease: Lease) => boolean): void {
    const lease = leases.find((one) => isAccepted(one.answer) && is(one))
    if (lease === undefined) {
      const known = leases.map(({ flow, how, outcome, answer }) => `${flow} ${how} ${outcome?.kind} ${answer}`)
      return this.#complain(`${id} has a record of an end that no handler gave it: ${known.join(', ')}`)
    }
    if (labels.some((label) => !lease.events.includes(label)))
      this.#complain(`the record of ${id} has events that its run had not`)
  }

  #did(action: Acted['action'], target: string): boolean {
    return this.#byLane.get(target)?.some((act) => act.action === action && act.answer !== 'missing') === true
  }

  #deadLetter(deadLetter: DeadLetterRow): void {
    const { id, parent, state, reason, lapses, lane } = deadLetter
    if (state !== 'dead') this.#complain(`dead letter ${id} is ${state}, and nothing is at work`)
    if (!this.#listed.has(id)) this.#complain(`dead letter ${id} is not listed`)
    const leases = this.#byRun.get(id) ?? []
    const wasPurged =
      this.#did('purge-lane', lane) ||
      this.#ledger.acts.some(({ action }) => action === 'purge-event' || action === 'purge-tenant')
    if (reason === 'crashed') {
      // A claim whose reply was lost holds a lease that no process knows; it may lapse like any other.
      const lapsed = leases.filter(({ answer }) => answer !== 'ok').length
      if (lapses !== LAPSES_MAX || lapsed === 0)
        this.#complain(`dead letter ${id} crashed ${lapses} times, and lapsed ${lapsed} times`)
      return
    }
    const own = leases.some(({ outcome, answer }) => isAccepted(answer) && outcome?.kind === 'dead')
    const ofParent = (this.#byRun.get(parent) ?? []).some(
      ({ outcome, answer }) => isAccepted(answer) && outcome?.kind === 'partial',
    )
    if (!own && !ofParent && !wasPurged) this.#complain(`dead letter ${id} is dead, and no handler failed for good`)
  }

  /** Checks that the replies to a process were true. */
  #settled(lease: Lease): void {
    const { run, outcome, answer, how, lane, events } = lease
    if (outcome === undefined) return
    if (!allowed(lease).includes(outcome.kind))
      this.#complain(`${run} ended as ${how}, and was settled as ${outcome.kind}`)
    if (answer !== 'ok') return
    const kept = events.filter((label) => {
      const input = this.#ledger.sent.get(label)?.input ?? inputOf(label, 'parcel')
      return !this.#wiped.has(label) && !purged(this.#ledger, input, lane).may
    })
    if (kept.length === 0) return
    const record = this.#tables.runs.find((row) => this.#idOf(row) === run)
    if (outcome.kind === 'done' && record?.kind !== 'done')
      this.#complain(`lost: ${run} was done, and is on record as ${record?.kind}`)
    if (outcome.kind === 'dropped' && record?.kind !== 'dropped')
      this.#complain(`lost: ${run} was dropped, and is on record as ${record?.kind}`)
    if (outcome.kind === 'cancelled' && record?.kind === 'done')
      this.#complain(`${run} was cancelled, and is on record as done`)
    if (outcome.kind === 'done' && record !== undefined) {
      const recorded = new Set(this.#labelsOf(record.events))
      for (const label of kept) if (!recorded.has(label)) this.#complain(`lost: ${label}, which ${run} had done`)
    }
  }
}

const DROPS: readonly string[] = ['dropped', 'partial']

function isAccepted(answer: Lease['answer']): boolean {
  return answer === 'ok' || answer === 'unknown'
}

const FAILS = ['retry', 'dead'] as const
/** The run was cancelled, its process stopped, or its limit had no slot. */
const GIVEN_BACK = ['cancelled', 'released'] as const

/** The settlements that are valid for each ending of a handler. */
function allowed({ how, wasAborted }: Lease): readonly string[] {
  const endings = endingsOf(how)
  if (!wasAborted) return endings
  // The handler may have timed out; and if it throws after its signal was aborted, its error does not count.
  const hasThrown = how === 'throw' || how === 'permanent'
  return hasThrown ? [...endings, ...FAILS, ...GIVEN_BACK] : [...endings, ...FAILS]
}

function endingsOf(how: Lease['how']): readonly string[] {
  switch (how) {
    case 'done':
      return ['done']
    case 'snooze':
      return ['snoozed']
    case 'drop':
      return ['dropped']
    case 'partial':
      return ['partial']
    case 'retry':
    case 'throw':
    case 'nonsense':
      return FAILS
    case 'permanent':
      return ['dead']
    case 'gave-up':
      return ['cancelled']
    case 'aborted':
    case undefined:
      return [...FAILS, ...GIVEN_BACK]
  }
}

/** Whether an event may have been purged in a lane, and whether it must have been. */
export function purged(ledger: Ledger, input: Input, lane: string): { readonly may: boolean; readonly must: boolean } {
  const sent = ledger.sent.get(input.id)
  const acts = ledger.acts.filter((act) => isOf(act, input, lane))
  const may = acts.some(({ ended }) => ended >= (sent?.began ?? 0))
  return { may, must: acts.some((act) => mustHaveGone(act, sent)) }
}

function isOf({ action, target }: Acted, input: Input, lane: string): boolean {
  if (action === 'purge-lane') return target === lane
  if (action === 'purge-event') return target === input.id
  return action === 'purge-tenant' && target === input.tenant
}

/** The event was stored and placed before an operator purged. */
export function mustHaveGone({ lastBegan, ended }: Acted, sent: Sent | undefined): boolean {
  if (sent?.acked === undefined || ended === Infinity) return false
  return !sent.isPlacedLate && sent.acked < lastBegan
}
