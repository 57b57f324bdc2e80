// What is known from outside of the engine, from what each life of the process has written: what was acknowledged, which
// handlers were at work when, and how runs ended. Whatever contradicts itself is an offence at once.
import { Complaints } from './counts.ts'
import { FLOWS_OF, inputOf, ONE_SLOT, parcelsOf, type How, type Line } from './load.ts'

type Entered = Line & { readonly kind: 'entered' }

export interface RunKnown {
  readonly id: string
  readonly flow: string
  readonly key: string
  readonly events: readonly string[]
  /** Acknowledged ends of attempts, and those of which nobody knows whether they count. */
  retries: number
  maybeRetries: number
  agains: number
  maybeAgains: number
  /** A handler ended well at least once; the acknowledged end, if any. */
  well: boolean
  end: 'done' | 'dead' | undefined
  /** The last attempt failed as the handler meant it to. */
  failed: boolean
  /** How often it was at work when its process was killed. */
  cuts: number
  /** Of the attempt under way: in which life, and how its handler ended. */
  life: number
  how: How | 'at work' | undefined
}

const SUSPECT_FROM = 2
const SUSPECTS = 'the slot of suspects'

/** Who is in the one place where only one may be: a lane, or the slot of a flow. */
interface Occupied {
  readonly run: string
  /** Infinity while it lasts. */
  until: number
}

export class Ledger {
  readonly complaints = new Complaints()
  /** Events that the engine said it has stored; those that were sent are known to be possible. */
  readonly acked = new Set<string>()
  readonly sent = new Set<string>()
  readonly runs = new Map<string, RunKnown>()
  /** What was left when the last life had nothing more to do. */
  drained = false
  stuck: readonly string[] = []
  /** The run of each place: an event in a flow. */
  readonly #runOf = new Map<string, string>()
  readonly #occupied = new Map<string, Occupied>()

  /** All that one life has written; `ended`: when it was killed, or had come to its end. */
  hear(life: number, lines: readonly Line[], ended: number): void {
    for (const line of lines) this.#hear(life, line)
    for (const run of this.runs.values()) if (run.life === life) this.#cut(run)
    for (const occupied of this.#occupied.values()) occupied.until = Math.min(occupied.until, ended)
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
        this.#left(line)
        break
      case 'told':
        this.#told(line.name, this.runs.get(line.run))
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
    for (const one of placesForOne(line, known)) {
      const before = this.#occupied.get(one)
      if (before !== undefined && at < before.until) {
        this.complaints.add(
          one === SUSPECTS ? 'wrong' : 'overlapping',
          `${id} began in ${one} while ${before.run} was there`,
        )
      }
      this.#occupied.set(one, { run: id, until: Infinity })
    }
    for (const label of events) this.#takes(id, label, flow)
    if (known === undefined) this.runs.set(id, this.#newRun(life, line))
    else this.#cameBack(known, life, line)
  }

  #takes(run: string, label: string, flow: string): void {
    const at = place(label, flow)
    const before = this.#runOf.get(at) ?? run
    // Nothing dissolves a run that has begun (L8, L12).
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
    // It may have begun before and died without a line: but then nothing of it was settled.
    if (attempt !== 1 || step !== 0) this.complaints.add('wrong', `${id} begins with attempt ${attempt}, step ${step}`)
    const none = { retries: 0, maybeRetries: 0, agains: 0, maybeAgains: 0, cuts: 0 }
    return { id, flow, key, events, ...none, well: false, end: undefined, failed: false, life, how: 'at work' }
  }

  #cameBack(known: RunKnown, life: number, { events, attempt, step }: Entered): void {
    const { id, end } = known
    if (end !== undefined) this.complaints.add('repeatedAfterDone', `${id} runs after its end (${end})`)
    if (known.events.join() !== events.join()) this.complaints.add('wrong', `${id} came back with other events`)
    this.#between(`attempt ${attempt} of ${id}`, attempt - 1, known.retries, known.maybeRetries)
    this.#between(`step ${step} of ${id}`, step, known.agains, known.maybeAgains)
    if (known.life < life) this.complaints.counts.resumed++
    Object.assign(known, { retries: attempt - 1, maybeRetries: 0, agains: step, maybeAgains: 0 })
    Object.assign(known, { life, how: 'at work', failed: false } satisfies Partial<RunKnown>)
  }

  #between(what: string, seen: number, least: number, more: number): void {
    if (seen < least) this.complaints.add('lost', `the end of an attempt: ${what} after ${least} were settled`)
    if (seen > least + more) this.complaints.add('wrong', `${what}, and only ${least} to ${least + more} before it`)
  }

  #left({ run: id, at, how }: Line & { readonly kind: 'left' }): void {
    const known = this.runs.get(id)
    if (known === undefined) return this.complaints.add('wrong', `${id} ended and never began`)
    for (const one of placesForOne(known, known)) {
      const occupied = this.#occupied.get(one)
      if (occupied?.run === id) occupied.until = Math.min(occupied.until, at)
    }
    known.how = how
    known.well ||= how === 'done'
    known.failed = how === 'failed' || how === 'permanent'
    return undefined
  }

  /** A settlement was answered. What the engine tells of runs that no handler has left says nothing of an attempt. */
  #told(name: string, known: RunKnown | undefined): void {
    if (known === undefined || known.how === undefined || known.how === 'at work') return
    if (name === 'run.done') {
      if (known.how !== 'done') this.complaints.add('wrong', `${known.id} is told to be done: ${known.how}`)
      this.complaints.counts.done++
      known.end = 'done'
    } else if (name === 'run.dead') known.end = 'dead'
    else if (name === 'run.retry') known.retries++
    else if (name === 'run.again') known.agains++
    else if (name !== 'run.lost') return
    known.how = undefined
  }

  /** The process died: what was at work lapses, what had no answer may count or not. */
  #cut(run: RunKnown): void {
    if (run.how === 'at work') {
      run.cuts++
      this.complaints.counts.lapsed++
    } else if (run.how === 'failed') run.maybeRetries++
    else if (run.how === 'again') run.maybeAgains++
    run.how = undefined
  }
}

/** Its lane (L1), the slot of a flow that has one (L20), and that of suspects, which a process takes on one by one (L12). */
function placesForOne({ flow, key }: Pick<RunKnown, 'flow' | 'key'>, known: RunKnown | undefined): readonly string[] {
  const slot = ONE_SLOT.includes(flow) ? [`the slot of ${flow}`] : []
  const suspects = (known?.cuts ?? 0) < SUSPECT_FROM ? [] : [SUSPECTS]
  return [`lane ${flow} ${key}`, ...slot, ...suspects]
}

export function place(label: string, flow: string): string {
  return `${label} in ${flow}`
}

/** What the run published, if it was settled after so many steps. */
export function parcelsUpTo(run: RunKnown, steps: number): readonly string[] {
  if (run.flow !== 'steps') return steps === 0 ? [] : parcelsOf(run.flow, run.id, 0)
  return Array.from({ length: steps }, (_, step) => parcelsOf(run.flow, run.id, step)).flat()
}
