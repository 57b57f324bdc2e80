// One turn of a lane: calls the handler with a timeout and a signal, and says what the store is to be told.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { EventInput } from '../model/event-input.ts'
import { runScope } from '../scope.ts'
import type { KeptOut, Lease, NewEvent, Settle } from '../store/contract/index.ts'
import { keptAs, notPutOff } from './kept.ts'
import type { LiveRun } from './live-run.ts'
import type { RunLog } from '../observe/log.ts'
import { HandledRun, type Left, type LeftSoFar } from './run.ts'
import { verdictOf, type Circumstances, type HowItEnded, type Verdict } from './verdict.ts'

/** Events with their places, and how to tell of them once they are stored. */
export interface ToPublish {
  readonly events: readonly NewEvent[]
  /** The epoch by which they were routed. */
  readonly routes: number
  readonly tell: (keptOut: readonly KeptOut[]) => void
}

const NOTHING: ToPublish = { events: [], routes: Infinity, tell: () => {} }

export interface AttemptParts {
  readonly clock: Clock
  /** The store's time, as far as it is known here. */
  readonly storeNow: () => Millis
  readonly againFor: Millis
  readonly chance: () => number
  readonly log: (live: LiveRun) => RunLog
  readonly commit: (live: LiveRun) => Promise<'ok' | 'cancelled'>
  readonly bodies: (events: readonly string[]) => Promise<readonly (Uint8Array | undefined)[]>
  /** Routed and named `run/n`, so that a repeated attempt publishes nothing twice (L2b). */
  readonly toPublish: (events: readonly EventInput[], run: string, from: number) => ToPublish
}

export type Attempted =
  /** Nothing this process says of the run counts any more. */
  | { readonly kind: 'lost'; readonly handler: Promise<unknown> }
  | {
      readonly kind: 'ended'
      readonly settle: Settle
      readonly verdict: Verdict
      readonly ms: Millis
      readonly counts: Left['counts']
      /** Tells of what it published, once that is stored. */
      readonly tell: ToPublish['tell']
      readonly routes: ToPublish['routes']
      /** Of a handler that did not return in time: its lane must not start again here while it lives. */
      readonly handler: Promise<unknown> | undefined
    }

export async function attempt(live: LiveRun, flow: Flow, parts: AttemptParts): Promise<Attempted> {
  const { clock } = parts
  const { lease } = live
  const timer = new Timer(clock, () => live.abort('timeout'))
  const bodies = await bodiesOf(live, parts)
  // The claim was answered too late: the store may have given the lane to somebody else by now.
  if (live.isPast) {
    live.abort('lost')
    return { kind: 'lost', handler: Promise.resolve() }
  }
  const left: LeftSoFar = { published: [], counts: Object.create(null) as Record<string, number>, isOver: false }
  const run = new HandledRun(
    {
      live,
      bodies,
      log: parts.log(live),
      commit: () => parts.commit(live),
      extend: (by) => timer.set(by),
    },
    left,
  )
  timer.set(flow.timeout)
  const handler = runScope.run(live, () => called(() => flow.run(run as never)))
  const first = await Promise.race([handler, live.over])
  timer.clear()
  // A handler that kept the event loop busy gets here before any timer could tell.
  if (first === 'lost' || live.isPast) {
    live.abort('lost')
    return { kind: 'lost', handler }
  }
  const ended: HowItEnded = first === 'timed-out' ? { kind: 'timed-out' } : first
  left.isOver = true
  const { verdict, publish } = judged(ended, new AtItsEnd(live, flow, left, parts))
  // One that is out of time may still be at work: its signal ends what it does.
  if (first !== 'timed-out') live.end(verdict.publishes ? 'done' : 'undone')
  const ms = clock.monotonic() - live.began
  const settle: Settle = {
    lane: lease.lane,
    token: lease.token,
    outcome: verdict.outcome,
    attempt:
      verdict.error === undefined ? undefined : { at: parts.storeNow(), ms: Math.round(ms), error: verdict.error },
    publish: publish.events,
    whileRunning: flow.whileRunning === 'requeue' ? 'requeue' : 'window',
    keep: flow.keepFor(run.events),
  }
  const stillRuns = first === 'timed-out' ? handler : undefined
  const { tell, routes } = publish
  return { kind: 'ended', settle, verdict, ms, counts: left.counts, tell, routes, handler: stillRuns }
}

interface Judged {
  readonly verdict: Verdict
  readonly publish: ToPublish
}

function judged(ended: HowItEnded, circumstances: AtItsEnd): Judged {
  const verdict = verdictIn(ended, circumstances)
  if (!verdict.publishes) return { verdict, publish: NOTHING }
  try {
    return { verdict, publish: circumstances.toPublish() }
  } catch (error) {
    // What it published is no event: that is its own failure.
    return { verdict: verdictOf({ kind: 'threw', error }, circumstances), publish: NOTHING }
  }
}

/** What was thrown may throw when it is looked at. */
function verdictIn(ended: HowItEnded, circumstances: AtItsEnd): Verdict {
  try {
    return verdictOf(ended, circumstances)
  } catch {
    return verdictOf({ kind: 'threw', error: new Error('It ended with what cannot be read.') }, circumstances)
  }
}

class AtItsEnd implements Circumstances {
  readonly flow: Flow
  readonly now: Millis
  readonly #live: LiveRun
  readonly #left: Left
  readonly #parts: AttemptParts

  constructor(live: LiveRun, flow: Flow, left: Left, parts: AttemptParts) {
    this.flow = flow
    this.now = parts.storeNow()
    this.#live = live
    this.#left = left
    this.#parts = parts
  }

  get lease(): Lease {
    return this.#live.lease
  }

  get cause(): LiveRun['cause'] {
    return this.#live.cause
  }

  get committed(): boolean {
    return this.#live.committed
  }

  get againFor(): Millis {
    return this.#parts.againFor
  }

  get mayBePutOff(): boolean {
    return this.#live.mayBePutOff()
  }

  chance(): number {
    return this.#parts.chance()
  }

  keep(state: unknown): string {
    return keptAs({ published: this.#live.kept.published + this.#left.published.length, state })
  }

  givenBack(): string {
    return notPutOff(this.lease.state64)
  }

  putOff(limit: string): string {
    return keptAs({ ...this.#live.kept, putOffBy: limit, ...(this.#live.hasCalled ? { midway: true } : {}) })
  }

  toPublish(): ToPublish {
    const { published } = this.#left
    return published.length === 0
      ? NOTHING
      : this.#parts.toPublish(published, this.lease.run, this.#live.kept.published)
  }
}

/** Bodies that did not fit into the answer of the claim. */
async function bodiesOf(live: LiveRun, parts: AttemptParts): Promise<readonly (Uint8Array | undefined)[]> {
  const { events } = live.lease
  if (events.every((event) => event.body !== undefined)) return []
  return parts.bodies(events.map((event) => event.id))
}

async function called(call: () => unknown): Promise<Exclude<HowItEnded, { kind: 'timed-out' }>> {
  try {
    return { kind: 'returned', value: await call() }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

class Timer {
  readonly #clock: Clock
  readonly #fire: () => void
  #cancel: () => void = () => {}
  #isOver = false

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock
    this.#fire = fire
  }

  /** A handler that is no longer waited for may still ask for more time. */
  set(after: Millis): void {
    if (this.#isOver) return
    this.#cancel()
    this.#cancel = after === Infinity ? () => {} : this.#clock.after(after, this.#fire)
  }

  clear(): void {
    this.#isOver = true
    this.#cancel()
  }
}
