// Runs an app on one PostgreSQL as in production: debounced keys, runs that fail and retry, dead letters, and retention that
// deletes finished work. It follows every acknowledged event to its end.
import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice, type Run } from '../../../src/index.ts'
import { Chance } from '../../sqlite/kill-load.ts'
import { Sessions, type SessionsPlan } from './sessions.ts'

export interface LoadPlan extends SessionsPlan {
  readonly url: string
  /** Milliseconds for which finished events are kept, and for which their identities are known. */
  readonly keep: number
  readonly dedupe: number
}

export interface LoadFigure {
  readonly acknowledged: number
  /** Events that neither succeeded nor became dead letters. */
  readonly lost: number
  /** Events for which more than one run succeeded. */
  readonly repeated: number
  readonly runs: number
  readonly retried: number
  readonly deadLetters: number
  /** Writes of a lane that already had events; those at one time count as one. Most of them only move a deadline back. */
  readonly pushes: number
  /** The CPU time of this process, load and app, as a share of one core. */
  readonly cpu: number
}

const TICK = 200
const WINDOW = { quiet: '2s', max: '20s' } as const
const RETRY = ['500ms', '2s'] as const
const FAILS = 0.05
/** An event that fails at every attempt and becomes a dead letter. */
const NEVER_GOOD = 0.004
const LONGEST_RUN = 40
/** The time for events that are open at the end: `max`, all retries, and some reserve. */
const DRAIN = 60_000

export class Load {
  readonly #plan: LoadPlan
  readonly #sessions: Sessions
  readonly #chance: Chance
  readonly #app: Sluice
  readonly #acked = new Set<number>()
  /** Events, acknowledged or not, because a run may end before the event's sender gets its reply. */
  readonly #ended = new Set<number>()
  /** The events of runs that have begun and not ended. */
  readonly #open = new Map<string, readonly number[]>()
  readonly #stop = new AbortController()
  readonly #counts = { acknowledged: 0, repeated: 0, runs: 0, retried: 0, deadLetters: 0, pushes: 0 }
  #sending: Promise<void> = Promise.resolve()
  #begun = { at: 0, cpu: process.cpuUsage() }

  constructor(plan: LoadPlan) {
    this.#plan = plan
    this.#sessions = new Sessions(plan)
    this.#chance = new Chance(plan.seed + 1)
    const { url: store, keep, dedupe } = plan
    this.#app = new Sluice({ store, dedupe, keep: { events: keep, deadLetters: keep }, log: false })
    const run = (one: Run): Promise<void> => this.#run(one)
    const common = { retry: RETRY, keep, run }
    this.#app.flow('work', { on: 'work', key: (event) => event.subject, window: WINDOW, ...common })
    this.#app.flow('note', { on: 'note', ...common })
    this.#app.on('run.done', ({ run: id }) => this.#end(id))
    this.#app.on('run.dead', ({ run: id }) => {
      this.#counts.deadLetters++
      this.#end(id)
    })
    this.#app.on('run.retry', () => void this.#counts.retried++)
    this.#app.on('lane.opened', ({ flow }) => flow === 'work' && this.#counts.pushes--)
  }

  async start(): Promise<void> {
    await this.#app.start()
    this.#begun = { at: performance.now(), cpu: process.cpuUsage() }
    this.#sending = this.#send()
    // A fault in the load ends the measurement at its await.
    this.#sending.catch(() => {})
  }

  /** Resolves after all open events have ended. */
  async finish(): Promise<LoadFigure> {
    this.#stop.abort()
    await this.#sending
    const took = process.cpuUsage(this.#begun.cpu)
    const cpu = (took.user + took.system) / 1_000 / (performance.now() - this.#begun.at)
    const until = performance.now() + DRAIN
    while (this.#acked.size > 0 && performance.now() < until) await sleep(TICK)
    return { ...this.#counts, lost: this.#acked.size, cpu }
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#app.stop()
  }

  async #send(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const first = this.#sessions.sent
      const events = this.#sessions.until(performance.now() - this.#begun.at)
      if (events.length > 0) await this.#app.publish(events)
      for (let n = first; n < this.#sessions.sent; n++) if (!this.#ended.delete(n)) this.#acked.add(n)
      this.#counts.acknowledged += events.length
      this.#counts.pushes += new Set(events.flatMap(({ type, subject }) => (type === 'work' ? subject : []))).size
      await sleep(TICK)
    }
  }

  async #run({ id, events, attempt }: Run): Promise<void> {
    this.#open.set(
      id,
      events.map(({ data }) => (data as { readonly n: number }).n),
    )
    // The first event decides the ending, so that it is the same at every attempt.
    const first = new Chance(this.#plan.seed ^ ((this.#open.get(id)?.[0] ?? 0) * 7_919))
    await sleep(this.#chance.below(LONGEST_RUN))
    if (first.happens(NEVER_GOOD)) throw new Error('This one never succeeds.')
    if (attempt === 1 && first.happens(FAILS)) throw new Error('The other side was busy.')
  }

  #end(run: string): void {
    const events = this.#open.get(run) ?? []
    this.#open.delete(run)
    this.#counts.runs++
    for (const n of events) {
      if (this.#acked.delete(n)) continue
      if (n < this.#counts.acknowledged) this.#counts.repeated++
      else this.#ended.add(n)
    }
  }
}
