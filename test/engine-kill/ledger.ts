// What the logs of all lives prove about the engine: which events were acknowledged, when each handler ran, and how runs
// ended. A contradiction is reported as a violation at once.
import { Complaints } from './counts.ts'
import { Leases } from './leases.ts'
import { FLOWS_OF, inputOf, LEASE_OF_MANY, ONE_SLOT, parcelsOf, type How, type Line } from './load.ts'

type Entered = Line & { readonly kind: 'entered' }

export interface RunKnown {
  readonly id: string
  readonly flow: string
  readonly key: string
  readonly events: readonly string[]
  /** Acknowledged ends of attempts, and ends that may or may not count. */
  retries: number
  maybeRetries: number
  agains: number
  maybeAgains: number
  /** A handler succeeded at least once; with the acknowledged end, if any. */
  well: boolean
  end: 'done' | 'dead' | undefined
  /** The last attempt failed as the handler intended. */
  failed: boolean
  /** How often its handler ran when the process was killed. */
  cuts: number
  /** The current attempt: its life, where it started, and how its handler ended. */
  life: number
  from: { readonly attempt: number; readonly step: number }
  how: How | 'at work' | undefined
  /** The run was reported lost while its handler ran. */
  isLost: boolean
  /** Attempts of the same life that ended too late, and were not reported when the life got the run again. */
  late: number
  /** By life: attempts that ended when another life had the run, and were not reported yet. */
  readonly untold: Map<number, number>
}

/** Everything known about one life. */
export interface LifeHeard {
  readonly life: number
  readonly lines: readonly Line[]
  /** When it was killed, or had ended. */
  readonly ended: number
  /** When it was stopped by a signal. */
  readonly stops: readonly Stall[]
}

export interface Stall {
  readonly from: number
  readonly to: number
}

const SUSPECT_FROM = 2
const SUSPECTS = 'the slot of suspects'
/** A stalled process learns what it has lost as soon as it checks its timers. */
const TO_COME_ROUND_MS = 50

/** The handler that occupies a place for one: a lane, or the permit of a flow. */
interface Occupied {
  readonly run: string
  readonly life: number
  /** Infinity while the handler runs. */
  until: number
}

export class Ledger {
  readonly complaints = new Complaints()
  /** Events that the engine reported as stored; events that were sent may be stored. */
  readonly acked = new Set<string>()
  readonly sent = new Set<string>()
  readonly runs = new Map<string, RunKnown>()
  /** What was left when the last life had nothing more to do. */
  drained = false
  stuck: readonly string[] = []
  /** The run of each placement: an event in a flow. */
  readonly #runOf = new Map<string, string>()
  readonly #occupied = new Map<string, Occupied>()
  readonly #leases = new Leases(this.complaints)
  readonly #stalls = new Map<number, readonly Stall[]>()
  /** By life and run: when the life last got the run. */
  readonly #claimed = new Map<string, number>()

  /** All lines of one life; `ended`: when it was killed, or had ended. */
  hear(life: number, lines: readonly Line[], ended: number): void {
    for (const line of lines) this.#hear(life, line)
    this.#died(life, ended)
  }

  /** Lives that ran side by side, in the order of their lines. */
  hearTogether(lives: readonly LifeHeard[]): void {
    const all = lives.flatMap(({ life, lines, ended, stops }) => {
      const own = lines.flatMap((line) => (line.kind === 'stalled' ? [{ from: line.from, to: line.at }] : []))
      this.#stalls.set(life, [...stops, ...own])
      let at = 0
      const heard = lines.map((line) => {
        at = 'at' in line ? Math.max(at, line.at) : at
        return { at, act: () => this.#hear(life, line) }
      })
      return [...heard, { at: Math.max(at, ended), act: () => this.#died(life, ended) }]
    })
    for (const { act } of all.toSorted((one, other) => one.at - other.at)) act()
    this.#leases.check()
  }

  #died(life: number, ended: number): void {
    for (const run of this.runs.values()) if (run.life === life) this.#cut(run)
    for (const occupied of this.#occupied.values()) {
      if (occupied.life === life) occupied.until = Math.min(occupied.until, ended)
    }
  }

  #hear(life: number, line: Line): void {
    switch (line.kind) {
      case 'opened':
        break
      case 'sending':
        for (const label of line.labels) this.sent.add(label)
        break
      case 'acked':
        for (const [label, answer] of line.answers) this.#acked(label, answer)
        break
      case 'resent':
        this.#resent(line)
        break
      case 'entered':
        this.#entered(life, line)
        break
      case 'left':
        this.#left(life, line)
        break
      case 'told':
        if (line.name === 'run.claimed') this.#claimed.set(`${life} ${line.run}`, line.at)
        this.#told(life, line.name, this.runs.get(line.run))
        break
      case 'stalled':
        break
      case 'turned':
        this.#leases.turned(line)
        break
      case 'stale':
        this.#leases.stale(line)
        break
      case 'drained':
        this.drained = true
        break
      case 'stuck':
        this.stuck = line.lanes
        break
    }
  }

  #acked(label: string, answer: string): void {
    if (answer !== 'stored') this.complaints.add('wrong', `${label} is new, but was answered ${answer}`)
    this.complaints.counts.acked++
    this.acked.add(label)
  }

  #resent({ label, was, answer }: Line & { readonly kind: 'resent' }): void {
    if (was === 'unknown') {
      if (answer !== 'stored' && answer !== 'duplicate') this.complaints.add('wrong', `${label} was answered ${answer}`)
      this.complaints.counts.acked++
      this.acked.add(label)
      return
    }
    this.complaints.counts.resent++
    if (answer === 'stored') this.complaints.add('lost', `that ${label} is known: it was stored a second time`)
    else if (answer !== 'duplicate') this.complaints.add('wrong', `${label} again was answered ${answer}`)
  }

  // Handlers

  #entered(life: number, line: Entered): void {
    const { run: id, flow, events, at } = line
    this.complaints.counts.runs++
    const known = this.runs.get(id)
    if (known !== undefined && known.life !== life && this.#cameTooLate(life, line)) return
    for (const one of placesForOne(line, known, life)) {
      const before = this.#occupied.get(one)
      if (before !== undefined && at < before.until && !this.#stoodStill(before.life, at)) {
        this.complaints.add(
          one.startsWith(SUSPECTS) ? 'wrong' : 'overlapping',
          `${id} began in ${one} while ${before.run} was there`,
        )
      }
      this.#occupied.set(one, { run: id, life, until: Infinity })
    }
    for (const label of events) this.#takes(id, label, flow)
    if (known === undefined) this.runs.set(id, this.#newRun(life, line))
    else this.#cameBack(known, life, line)
  }

  /** A handler of a stalled process has no effect: its lease ends, and the process is notified as soon as it continues. */
  #stoodStill(life: number, at: number): boolean {
    const stalls = this.#stalls.get(life) ?? []
    return stalls.some(({ from, to }) => from <= at && at <= to + TO_COME_ROUND_MS)
  }

  /**
   * The process checked that its lease was live, and stalled until the lease was over before it started the handler. Its ending
   * has no effect, and must not be accepted.
   */
  #cameTooLate(life: number, { run, at }: Entered): boolean {
    const claimed = this.#claimed.get(`${life} ${run}`) ?? at
    const stalls = this.#stalls.get(life) ?? []
    return stalls.some(({ from, to }) => claimed <= from && claimed + LEASE_OF_MANY <= to && to <= at)
  }

  #takes(run: string, label: string, flow: string): void {
    const at = place(label, flow)
    const before = this.#runOf.get(at) ?? run
    // Nothing dissolves a run that has started (L8, L12).
    if (before !== run) {
      const ended = this.runs.get(before)?.end !== undefined
      if (ended) this.complaints.add('repeatedAfterDone', `${at} ended in ${before} and is in ${run} now`)
      else this.complaints.add('wrong', `${at} was in ${before} and is in ${run} now`)
    }
    this.#runOf.set(at, run)
    const wanted: readonly string[] = FLOWS_OF[label.includes('/') ? 'parcel' : inputOf(label).type]
    if (!wanted.includes(flow)) this.complaints.add('wrong', `${at} is in a flow that does not want it`)
  }

  #newRun(life: number, { run: id, flow, key, events, attempt, step }: Entered): RunKnown {
    // The run may have started before, in a process that died without a line; nothing of that was settled.
    if (attempt !== 1 || step !== 0) this.complaints.add('wrong', `${id} begins with attempt ${attempt}, step ${step}`)
    const none = { retries: 0, maybeRetries: 0, agains: 0, maybeAgains: 0, cuts: 0 }
    const from = { attempt, step }
    const under = { life, from, how: 'at work', isLost: false, late: 0 } as const
    return { id, flow, key, events, ...none, well: false, end: undefined, failed: false, ...under, untold: new Map() }
  }

  #cameBack(known: RunKnown, life: number, { events, attempt, step }: Entered): void {
    const { id, end } = known
    if (end !== undefined) this.complaints.add('repeatedAfterDone', `${id} runs after its end (${end})`)
    if (known.events.join() !== events.join()) this.complaints.add('wrong', `${id} came back with other events`)
    // Another life may get the run before the life that settled it knows the reply.
    const isSame = known.life === life
    const late = isSame ? known.late + Number(known.how !== undefined) : (known.untold.get(life) ?? 0)
    known.untold.delete(life)
    if (!isSame) {
      const isUntold = known.how !== undefined && known.how !== 'at work'
      if (isUntold) known.untold.set(known.life, (known.untold.get(known.life) ?? 0) + 1)
      this.#unknown(known)
    }
    this.#between(`attempt ${attempt} of ${id}`, attempt - 1, known.retries, known.maybeRetries)
    this.#between(`step ${step} of ${id}`, step, known.agains, known.maybeAgains)
    if (!isSame) this.complaints.counts.resumed++
    Object.assign(known, { retries: attempt - 1, maybeRetries: 0, agains: step, maybeAgains: 0 })
    const from = { attempt, step }
    const under = { life, from, how: 'at work', isLost: false, late } as const
    Object.assign(known, { ...under, failed: false } satisfies Partial<RunKnown>)
  }

  #between(what: string, seen: number, least: number, more: number): void {
    if (seen < least) this.complaints.add('lost', `the end of an attempt: ${what} after ${least} were settled`)
    if (seen > least + more) this.complaints.add('wrong', `${what}, and only ${least} to ${least + more} before it`)
  }

  #left(life: number, { run: id, at, how }: Line & { readonly kind: 'left' }): void {
    const known = this.runs.get(id)
    if (known === undefined) return this.complaints.add('wrong', `${id} ended and never began`)
    for (const one of placesForOne(known, known, life)) {
      const occupied = this.#occupied.get(one)
      if (occupied?.run === id && occupied.life === life) occupied.until = Math.min(occupied.until, at)
    }
    // The life has lost the run, so this ending does not count.
    if (known.life !== life) return void known.untold.set(life, (known.untold.get(life) ?? 0) + 1)
    known.how = known.isLost ? undefined : how
    known.well ||= how === 'done'
    known.failed = how === 'failed' || how === 'permanent'
    return undefined
  }

  /** The reply to a settlement. A report about a run without a handler says nothing about an attempt. */
  #told(life: number, name: string, known: RunKnown | undefined): void {
    if (known !== undefined && known.life !== life) {
      const untold = known.untold.get(life) ?? 0
      if (untold > 0) known.untold.set(life, untold - 1)
      return this.#toldLate(name, known)
    }
    if (known === undefined) return
    if (name === 'run.lost' && known.late > 0) return void known.late--
    if (known.how === 'at work' && name === 'run.lost') known.isLost = true
    if (known.how === undefined || known.how === 'at work') return
    if (name === 'run.done') {
      if (known.how !== 'done') this.complaints.add('wrong', `${known.id} is told to be done: ${known.how}`)
      this.complaints.counts.done++
      known.end = 'done'
    } else if (name === 'run.dead') known.end = 'dead'
    else if (name === 'run.retry') known.retries++
    else if (name === 'run.snoozed' || name === 'run.deferred') known.agains++
    else if (name !== 'run.lost') return
    known.how = undefined
  }

  /** A report about a run that another life has by now: only an outcome after which the run returns can have been settled. */
  #toldLate(name: string, known: RunKnown): void {
    const { attempt, step } = known.from
    const cameBack =
      (name === 'run.retry' && attempt > 1) || (['run.snoozed', 'run.deferred'].includes(name) && step > 0)
    const isEnd = ['run.done', 'run.retry', 'run.snoozed', 'run.deferred'].includes(name)
    if (isEnd && !cameBack) this.complaints.add('wrong', `${known.id} was given to another, and ${name} was accepted`)
  }

  /** The process died: its live runs lapse, and calls without a reply may or may not count. */
  #cut(run: RunKnown): void {
    if (run.how === 'at work') {
      run.cuts++
      this.complaints.counts.lapsed++
    }
    this.#unknown(run)
  }

  #unknown(run: RunKnown): void {
    if (run.how === 'failed') run.maybeRetries++
    else if (run.how === 'again') run.maybeAgains++
    run.how = undefined
  }
}

/** The places for one: the lane (L1), the permit of a flow (L20), and the suspects of a process (L12). */
function placesForOne(
  { flow, key }: Pick<RunKnown, 'flow' | 'key'>,
  known: RunKnown | undefined,
  life: number,
): readonly string[] {
  const slot = ONE_SLOT.includes(flow) ? [`the slot of ${flow}`] : []
  const suspects = (known?.cuts ?? 0) < SUSPECT_FROM ? [] : [`${SUSPECTS} of process ${life}`]
  return [`lane ${flow} ${key}`, ...slot, ...suspects]
}

export function place(label: string, flow: string): string {
  return `${label} in ${flow}`
}

/** The events that the run published, if it was settled after this many steps. */
export function parcelsUpTo(run: RunKnown, steps: number): readonly string[] {
  if (run.flow !== 'steps') return steps === 0 ? [] : parcelsOf(run.flow, run.id, 0)
  return Array.from({ length: steps }, (_, step) => parcelsOf(run.flow, run.id, step)).flat()
}
