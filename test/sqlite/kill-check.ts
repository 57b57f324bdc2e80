// Compares what was acknowledged with the content of the file.
import type { Complaints } from './kill-counts.ts'
import { place, type Ledger } from './kill-ledger.ts'
import { bodyOf, type Ended } from './kill-load.ts'
import type { LaneSeen, Look } from './kill-read.ts'

export class Checker {
  readonly #ledger: Ledger
  readonly #complaints: Complaints

  constructor(ledger: Ledger) {
    this.#ledger = ledger
    this.#complaints = ledger.complaints
  }

  /** After the process has died, or has nothing more to do: everything known must be in the file. */
  check(look: Look): void {
    this.#resolve(look)
    for (const id of this.#ledger.newEvents) {
      const body = look.bodyOf(id)
      // A missing event is counted by its placements, and by checkAll.
      if (body === undefined) continue
      if (Buffer.compare(body, bodyOf(id)) !== 0) this.#complaints.add('wrong', `the body of ${id} is another one`)
    }
    for (const ended of this.#ledger.newEnds) this.#checkEnd(look, ended)
    this.#checkDeadLetters(look)
    this.#checkLanes(look.lanes())
    this.#ledger.newEvents = []
    this.#ledger.newEnds = []
  }

  /** Calls without a reply are resolved by reading: from now on their results are known, and must stay. */
  #resolve(look: Look): void {
    for (const event of [...this.#ledger.appending.values()].flat()) {
      if (this.#met(look.bodyOf(event[0]) !== undefined)) this.#ledger.stored(event)
    }
    for (const ended of [...this.#ledger.settling.values()].flat()) {
      const known = this.#ledger.runs.get(ended.run)
      if (known !== undefined && (ended.kind === 'retry' || ended.kind === 'released')) {
        known.running = false
        if (ended.kind === 'retry') known.maybe++
        continue
      }
      if (this.#met(look.record(ended.run) !== undefined)) this.#ledger.end(ended)
      else if (ended.publish.some(([id]) => look.bodyOf(id) !== undefined)) {
        this.#complaints.add('wrong', `what ${ended.run} published is there without its settlement`)
      }
    }
    this.#ledger.appending.clear()
    this.#ledger.settling.clear()
  }

  #met(present: boolean): boolean {
    this.#complaints.counts[present ? 'unknownPresent' : 'unknownAbsent']++
    return present
  }

  #checkEnd(look: Look, { run, lane, kind, events, retry, dead }: Ended): void {
    const record = look.record(run)
    if (record === undefined) return this.#complaints.add('lost', `the end of run ${run} (${kind})`)
    const accepted = kind === 'partial' ? events.filter((id) => !retry.includes(id) && !dead.includes(id)) : events
    const expected = kind === 'partial' && accepted.length === 0 ? 'dropped' : kind
    const same = record.kind === expected && record.lane === lane && record.events.join() === accepted.join()
    return same
      ? undefined
      : this.#complaints.add('wrong', `the record of ${run} says ${record.kind} of ${record.events.join()}`)
  }

  #checkDeadLetters(look: Look): void {
    const seen = new Set<string>()
    for (const deadLetter of look.deadLetters()) {
      for (const event of deadLetter.events) {
        const at = place(event, deadLetter.lane)
        if (seen.has(at)) this.#complaints.add('wrong', `${at} is in two dead letters`)
        seen.add(at)
        // A call without a reply may have found the fourth lapse.
        if (deadLetter.reason === 'crashed' && this.#ledger.open.delete(at)) this.#ledger.dead.add(at)
        else if (!this.#ledger.dead.has(at))
          this.#complaints.add('wrong', `${at} is in a dead letter (${deadLetter.reason})`)
      }
    }
    this.#complaints.missing(this.#ledger.dead, seen, 'in its dead letter')
  }

  #checkLanes(lanes: readonly LaneSeen[]): void {
    const seen = new Set<string>()
    for (const { id, waiting, inRun, events } of lanes) {
      if (waiting + inRun !== events.length) {
        this.#complaints.add('wrong', `lane ${id} counts ${waiting} + ${inRun} and holds ${events.length}`)
      }
      for (const event of events) {
        const at = place(event, id)
        const ended = this.#ledger.done.has(at) || this.#ledger.dead.has(at)
        if (seen.has(at)) this.#complaints.add('wrong', `${at} is twice in its lane`)
        else if (ended) this.#complaints.add('repeatedAfterDone', `${at} waits after its end`)
        else if (!this.#ledger.open.has(at)) this.#complaints.add('wrong', `${at} came from nowhere`)
        seen.add(at)
      }
    }
    this.#complaints.missing(this.#ledger.open, seen, 'in its lane')
  }

  /** Checks everything, not only what is new. */
  checkAll(look: Look): void {
    const said = look.integrity()
    if (said !== 'ok') this.#complaints.add('wrong', `integrity_check says ${said}`)
    const ids = new Set(look.eventIds())
    for (const id of ids)
      if (!this.#ledger.events.has(id)) this.#complaints.add('wrong', `event ${id} came from nowhere`)
    this.#complaints.missing(this.#ledger.events, ids, 'stored')
    const unlisted = look.unlisted()
    if (unlisted.length > 0) this.#complaints.add('lost', `runs ${unlisted.join()} are in no list of their lanes`)
    const finished = new Set<string>()
    for (const { kind, lane, events } of look.records()) {
      if (kind === 'dead') continue
      for (const event of events) {
        const at = place(event, lane)
        if (finished.has(at)) this.#complaints.add('repeatedAfterDone', `${at} has two records`)
        if (!this.#ledger.done.has(at)) this.#complaints.add('wrong', `${at} has a record (${kind}) and is not done`)
        finished.add(at)
      }
    }
    this.#complaints.missing(this.#ledger.done, finished, 'in the record of its run')
  }

  /** After the last run: nothing waits, and every event has run or is a dead letter. */
  checkDrained(): void {
    this.#complaints.missing(this.#ledger.open, new Set(), 'done by now')
  }
}
