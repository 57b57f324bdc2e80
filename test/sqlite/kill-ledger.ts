// What the killed process was told, kept outside of the engine: acknowledged, failed, or unknown. Held against the file.
import { bodyOf, type Claimed, type Ended, type Line, type Sent } from './kill-load.ts'
import type { LaneSeen, Look } from './kill-look.ts'

export interface KillCounts {
  cycles: number
  ackedAppends: number
  ackedSettlements: number
  claims: number
  sentAgain: number
  /** In flight when the process died. Both are allowed. */
  unknownPresent: number
  unknownAbsent: number
  /** Acknowledged, and not there. */
  lost: number
  /** Ran again, or waits again, after an acknowledged end. */
  repeatedAfterDone: number
  /** Anything else that must not be: in two places, a token twice, another body. */
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

interface RunKnown {
  readonly events: string
  ended: boolean
  /** Retries that were acknowledged, and those of which nobody knows. */
  tries: number
  maybe: number
}

type Offence = 'lost' | 'repeatedAfterDone' | 'wrong'

const COMPLAINTS_KEPT = 20

export class Ledger {
  readonly counts: KillCounts = noCounts()
  readonly complaints: string[] = []
  /** Events of which it is known that they are stored. */
  readonly #events = new Set<string>()
  /** Places (an event in a lane) by where they have to be. */
  readonly #open = new Set<string>()
  readonly #done = new Set<string>()
  readonly #dead = new Set<string>()
  readonly #runs = new Map<string, RunKnown>()
  readonly #tokens = new Set<number>()
  readonly #appending = new Map<number, readonly Sent[]>()
  readonly #settling = new Map<number, readonly Ended[]>()
  /** Since the last look. */
  #newEvents: string[] = []
  #newEnds: Ended[] = []

  /** Some events that are stored, for sending them again. */
  sample(pick: (n: number) => number, n: number): readonly string[] {
    const all = [...this.#events]
    return all.length === 0 ? [] : Array.from({ length: n }, () => all[pick(all.length)] ?? '')
  }

  hear(line: Line): void {
    switch (line.kind) {
      case 'appending':
        this.#appending.set(line.n, line.events)
        break
      case 'appended':
        this.#appended(this.#appending.get(line.n) ?? [], line.answers)
        this.#appending.delete(line.n)
        break
      case 'sent-again':
        this.#sentAgain(line)
        break
      case 'settling':
        this.#settling.set(line.n, line.ends)
        break
      case 'settled':
        for (const [at, ended] of (this.#settling.get(line.n) ?? []).entries()) {
          if (line.answers[at] !== 'ok') continue
          this.counts.ackedSettlements++
          this.#end(ended)
        }
        this.#settling.delete(line.n)
        break
      case 'claimed':
        for (const claimed of line.runs) this.#claimed(claimed)
        for (const run of line.crashed) this.#crashed(run)
        break
      case 'wrong':
        this.#complain('wrong', line.what)
        break
    }
  }

  #appended(events: readonly Sent[], answers: readonly string[]): void {
    for (const [at, event] of events.entries()) {
      if (answers[at] !== 'stored') this.#complain('wrong', `${event[0]} is new, but was answered ${answers[at]}`)
      this.counts.ackedAppends++
      this.#stored(event)
    }
  }

  #stored([id, lanes]: Sent): void {
    if (this.#events.has(id)) return
    this.#events.add(id)
    this.#newEvents.push(id)
    for (const lane of lanes) this.#open.add(place(id, lane))
  }

  #sentAgain({ of, as, answer }: Line & { kind: 'sent-again' }): void {
    this.counts.sentAgain++
    const expected = as === of ? 'repeated' : 'duplicate'
    if (answer === 'stored') this.#complain('lost', `that ${of} is known: it was stored a second time as ${as}`)
    else if (answer !== expected) this.#complain('wrong', `${of} again as ${as} was answered ${answer}`)
  }

  #claimed({ run, lane, token, tries, events }: Claimed): void {
    this.counts.claims++
    if (this.#tokens.has(token)) this.#complain('wrong', `token ${token} was given out twice`)
    this.#tokens.add(token)
    const known = this.#runs.get(run)
    const list = events.join()
    if (known === undefined) this.#runs.set(run, { events: list, ended: false, tries, maybe: 0 })
    else {
      if (known.ended) this.#complain('repeatedAfterDone', `run ${run} came back after its end`)
      if (known.events !== list) this.#complain('wrong', `run ${run} came back with other events`)
      if (tries < known.tries) this.#complain('lost', `a retry of run ${run}: ${tries} tries, not ${known.tries}`)
      if (tries > known.tries + known.maybe) this.#complain('wrong', `run ${run} has ${tries} tries`)
      Object.assign(known, { tries, maybe: 0 })
    }
    for (const event of events) {
      const at = place(event, lane)
      if (this.#done.has(at) || this.#dead.has(at)) this.#complain('repeatedAfterDone', `${at} runs after its end`)
    }
  }

  /** The effects of a settlement that stands. */
  #end(ended: Ended): void {
    const { run, lane, kind, events, publish } = ended
    const known = this.#runs.get(run)
    if (known === undefined) return this.#complain('wrong', `run ${run} was settled and never claimed`)
    for (const event of publish) this.#stored(event)
    if (kind === 'released') return undefined
    if (kind === 'retry') {
      known.tries++
      return undefined
    }
    known.ended = true
    this.#newEnds.push(ended)
    for (const event of events) {
      const died = kind === 'dead' || ended.dead.includes(event)
      if (!ended.retry.includes(event)) this.#move(place(event, lane), died ? this.#dead : this.#done)
    }
    return undefined
  }

  #move(at: string, to: Set<string>): void {
    if (!this.#open.delete(at)) this.#complain('wrong', `${at} ended and was not open`)
    to.add(at)
  }

  #crashed(run: string): void {
    const known = this.#runs.get(run)
    if (known !== undefined) known.ended = true
  }

  /** After the process has died, or has nothing more to do: all that is known has to be in the file. */
  check(look: Look): void {
    this.#resolve(look)
    for (const id of this.#newEvents) {
      const body = look.bodyOf(id)
      // One that is missing is counted by its places, and by checkAll.
      if (body === undefined) continue
      if (Buffer.compare(body, bodyOf(id)) !== 0) this.#complain('wrong', `the body of ${id} is another one`)
    }
    for (const ended of this.#newEnds) this.#checkEnd(look, ended)
    this.#checkLetters(look)
    this.#checkLanes(look.lanes())
    this.#newEvents = []
    this.#newEnds = []
  }

  /** What nobody answered is settled by looking: from now on it is known, and has to stay. */
  #resolve(look: Look): void {
    for (const event of [...this.#appending.values()].flat()) {
      if (this.#met(look.bodyOf(event[0]) !== undefined)) this.#stored(event)
    }
    for (const ended of [...this.#settling.values()].flat()) {
      const known = this.#runs.get(ended.run)
      if (ended.kind === 'retry' && known !== undefined) known.maybe++
      if (ended.kind === 'retry' || ended.kind === 'released') continue
      if (this.#met(look.record(ended.run) !== undefined)) this.#end(ended)
      else if (ended.publish.some(([id]) => look.bodyOf(id) !== undefined)) {
        this.#complain('wrong', `what ${ended.run} published is there without its settlement`)
      }
    }
    this.#appending.clear()
    this.#settling.clear()
  }

  #met(present: boolean): boolean {
    this.counts[present ? 'unknownPresent' : 'unknownAbsent']++
    return present
  }

  #checkEnd(look: Look, { run, lane, kind, events, retry, dead }: Ended): void {
    const record = look.record(run)
    if (record === undefined) return this.#complain('lost', `the end of run ${run} (${kind})`)
    const accepted = kind === 'partial' ? events.filter((id) => !retry.includes(id) && !dead.includes(id)) : events
    const expected = kind === 'partial' && accepted.length === 0 ? 'dropped' : kind
    const same = record.kind === expected && record.lane === lane && record.events.join() === accepted.join()
    return same ? undefined : this.#complain('wrong', `the record of ${run} says ${record.kind} of ${record.events.join()}`)
  }

  #checkLetters(look: Look): void {
    const seen = new Set<string>()
    for (const letter of look.letters()) {
      for (const event of letter.events) {
        const at = place(event, letter.lane)
        if (seen.has(at)) this.#complain('wrong', `${at} is in two dead letters`)
        seen.add(at)
        // The fourth lapse may have been found by a turn whose answer nobody got.
        if (letter.reason === 'crashed' && this.#open.delete(at)) this.#dead.add(at)
        else if (!this.#dead.has(at)) this.#complain('wrong', `${at} is in a dead letter (${letter.reason})`)
      }
    }
    this.#missing(this.#dead, seen, 'in its dead letter')
  }

  #checkLanes(lanes: readonly LaneSeen[]): void {
    const seen = new Set<string>()
    for (const { id, waiting, inRun, events } of lanes) {
      if (waiting + inRun !== events.length) {
        this.#complain('wrong', `lane ${id} counts ${waiting} + ${inRun} and holds ${events.length}`)
      }
      for (const event of events) {
        const at = place(event, id)
        const ended = this.#done.has(at) || this.#dead.has(at)
        if (seen.has(at)) this.#complain('wrong', `${at} stands twice in its lane`)
        else if (ended) this.#complain('repeatedAfterDone', `${at} waits after its end`)
        else if (!this.#open.has(at)) this.#complain('wrong', `${at} came from nowhere`)
        seen.add(at)
      }
    }
    this.#missing(this.#open, seen, 'in its lane')
  }

  /** Everything there is, not only what is new. */
  checkAll(look: Look): void {
    const said = look.integrity()
    if (said !== 'ok') this.#complain('wrong', `integrity_check says ${said}`)
    const ids = new Set(look.eventIds())
    for (const id of ids) if (!this.#events.has(id)) this.#complain('wrong', `event ${id} came from nowhere`)
    this.#missing(this.#events, ids, 'stored')
    const finished = new Set<string>()
    for (const { kind, lane, events } of look.records()) {
      if (kind === 'dead') continue
      for (const event of events) {
        const at = place(event, lane)
        if (finished.has(at)) this.#complain('repeatedAfterDone', `${at} has two records`)
        if (!this.#done.has(at)) this.#complain('wrong', `${at} has a record (${kind}) and is not done`)
        finished.add(at)
      }
    }
    this.#missing(this.#done, finished, 'in the record of its run')
  }

  /** After the last run: nothing waits, all has run or is a dead letter. */
  checkDrained(): void {
    this.#missing(this.#open, new Set(), 'done by now')
  }

  /** Each is counted once. */
  #missing(known: Set<string>, seen: ReadonlySet<string>, where: string): void {
    for (const one of known) {
      if (seen.has(one)) continue
      known.delete(one)
      this.#complain('lost', `${one}, which should be ${where}`)
    }
  }

  #complain(offence: Offence, what: string): void {
    this.counts[offence]++
    if (this.complaints.length < COMPLAINTS_KEPT) this.complaints.push(`${offence}: ${what}`)
  }
}

function place(event: string, lane: string): string {
  return `${event} in ${lane}`
}
