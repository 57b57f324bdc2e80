// What the logs of the killed process show, kept outside the engine: acknowledged, failed, or unknown.
import { Complaints } from './kill-counts.ts'
import type { Claimed, Ended, Line, Sent } from './kill-load.ts'

interface RunKnown {
  readonly events: string
  ended: boolean
  /** Acknowledged retries, and those with an unknown result. */
  tries: number
  maybe: number
  /** Reported lapses, and whether the run is known to have been left running, which causes one more. */
  lapses: number
  running: boolean
}

export class Ledger {
  readonly complaints = new Complaints()
  /** Events that are known to be stored. */
  readonly events = new Set<string>()
  /** Placements (an event in a lane), by the state in which they must be. */
  readonly open = new Set<string>()
  readonly done = new Set<string>()
  readonly dead = new Set<string>()
  readonly runs = new Map<string, RunKnown>()
  /** The run that last claimed a placement. */
  readonly #runOf = new Map<string, string>()
  readonly #tokens = new Set<number>()
  readonly appending = new Map<number, readonly Sent[]>()
  readonly settling = new Map<number, readonly Ended[]>()
  /** Since the last check. */
  newEvents: string[] = []
  newEnds: Ended[] = []

  /** Some stored events, to be published again. */
  sample(pick: (n: number) => number, n: number): readonly string[] {
    const all = [...this.events]
    return all.length === 0 ? [] : Array.from({ length: n }, () => all[pick(all.length)] ?? '')
  }

  hear(line: Line): void {
    switch (line.kind) {
      case 'appending':
        this.appending.set(line.n, line.events)
        break
      case 'appended':
        this.#appended(this.appending.get(line.n) ?? [], line.answers)
        this.appending.delete(line.n)
        break
      case 'sent-again':
        this.#sentAgain(line)
        break
      case 'settling':
        this.settling.set(line.n, line.ends)
        break
      case 'settled':
        for (const [at, ended] of (this.settling.get(line.n) ?? []).entries()) {
          if (line.answers[at] !== 'ok') continue
          this.complaints.counts.ackedSettlements++
          this.end(ended)
        }
        this.settling.delete(line.n)
        break
      case 'claimed':
        for (const claimed of line.runs) this.#claimed(claimed)
        for (const run of line.crashed) this.#crashed(run)
        break
      case 'wrong':
        this.complaints.add('wrong', line.what)
        break
    }
  }

  #appended(events: readonly Sent[], answers: readonly string[]): void {
    for (const [at, event] of events.entries()) {
      if (answers[at] !== 'stored') this.complaints.add('wrong', `${event[0]} is new, but was answered ${answers[at]}`)
      this.complaints.counts.ackedAppends++
      this.stored(event)
    }
  }

  stored([id, lanes]: Sent): void {
    if (this.events.has(id)) return
    this.events.add(id)
    this.newEvents.push(id)
    for (const lane of lanes) this.open.add(place(id, lane))
  }

  #sentAgain({ of, as, answer }: Line & { kind: 'sent-again' }): void {
    this.complaints.counts.sentAgain++
    const expected = as === of ? 'repeated' : 'duplicate'
    if (answer === 'stored') this.complaints.add('lost', `that ${of} is known: it was stored a second time as ${as}`)
    else if (answer !== expected) this.complaints.add('wrong', `${of} again as ${as} was answered ${answer}`)
  }

  #claimed(claimed: Claimed): void {
    const { run, lane, token, tries, lapses, events } = claimed
    this.complaints.counts.claims++
    if (this.#tokens.has(token)) this.complaints.add('wrong', `token ${token} was given out twice`)
    this.#tokens.add(token)
    const known = this.runs.get(run)
    if (known !== undefined) this.#cameBack(claimed, known)
    this.runs.set(run, { events: events.join(), ended: false, tries, maybe: 0, lapses, running: true })
    for (const event of events) {
      const at = place(event, lane)
      if (this.done.has(at) || this.dead.has(at)) this.complaints.add('repeatedAfterDone', `${at} runs after its end`)
      const before = this.#runOf.get(at) ?? run
      if (before !== run && this.runs.get(before)?.ended === false) {
        this.complaints.add('lost', `run ${before}, which had begun: ${at} is in ${run} now`)
      }
      this.#runOf.set(at, run)
    }
  }

  #cameBack({ run, tries, lapses, events }: Claimed, known: RunKnown): void {
    if (known.ended) this.complaints.add('repeatedAfterDone', `run ${run} came back after its end`)
    if (known.events !== events.join()) this.complaints.add('wrong', `run ${run} came back with other events`)
    if (tries < known.tries) this.complaints.add('lost', `a retry of run ${run}: ${tries} tries, not ${known.tries}`)
    if (tries > known.tries + known.maybe) this.complaints.add('wrong', `run ${run} has ${tries} tries`)
    const least = known.lapses + (known.running ? 1 : 0)
    if (lapses < least) this.complaints.add('lost', `a lapse of run ${run}: ${lapses}, not ${least}`)
  }

  /** The effects of a settlement that counts. */
  end(ended: Ended): void {
    const { run, lane, kind, events, publish } = ended
    const known = this.runs.get(run)
    if (known === undefined) return this.complaints.add('wrong', `run ${run} was settled and never claimed`)
    for (const event of publish) this.stored(event)
    known.running = false
    if (kind === 'retry') known.tries++
    if (kind === 'retry' || kind === 'released') return undefined
    known.ended = true
    this.newEnds.push(ended)
    for (const event of events) {
      const died = kind === 'dead' || ended.dead.includes(event)
      if (!ended.retry.includes(event)) this.#move(place(event, lane), died ? this.dead : this.done)
    }
    return undefined
  }

  #move(at: string, to: Set<string>): void {
    if (!this.open.delete(at)) this.complaints.add('wrong', `${at} ended and was not open`)
    to.add(at)
  }

  #crashed(run: string): void {
    const known = this.runs.get(run)
    if (known !== undefined) known.ended = true
  }
}

export function place(event: string, lane: string): string {
  return `${event} in ${lane}`
}
