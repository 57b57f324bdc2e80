// `Attempt` makes one attempt of a run: it calls the handler with a timeout and a signal, and creates the settlement.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { SluiceError } from '../errors.ts'
import { isEncrypted, type EventInput, type PublishTarget } from '../model/event.ts'
import { runContext } from '../limit/run-context.ts'
import type { UnstoredPublish, EventToStore, Settlement } from '../store/contract/index.ts'
import type { DeathNotice } from '../model/settle.ts'
import type { LiveRun } from './live-run.ts'
import type { RunLog } from '../observe/log/log.ts'
import { withTrace } from '../observe/trace/context.ts'
import { HandledRun, hasBody, type PublishedEvent, type RunControls } from './run.ts'
import { decideVerdict, type EndedAttempt, type HandlerResult, type Verdict } from './verdict.ts'

/** `AttemptPublication` is the events that an attempt publishes, with their placements. */
interface AttemptPublication {
  readonly events: readonly EventToStore[]
  /** The epoch of the routes that routed the events. */
  readonly routesEpoch: number
  readonly onSettled: (keptOut: readonly UnstoredPublish[]) => void
}

const NO_PUBLICATION: AttemptPublication = { events: [], routesEpoch: Infinity, onSettled: () => {} }

export interface AttemptDependencies {
  readonly clock: Clock
  /** Returns the estimated time of the store. */
  readonly storeTime: () => Millis
  readonly snoozeLimit: Millis
  readonly random: () => number
  readonly log: (live: LiveRun) => RunLog
  readonly commit: (live: LiveRun) => Promise<'ok' | 'cancelled'>
  readonly readBodies: (events: readonly string[]) => Promise<readonly (Uint8Array | undefined)[]>
  readonly assertPublishable: (event: EventInput) => void
  /** Returns what the store must know to announce a run that dies. */
  readonly readDeathNotice: () => Promise<DeathNotice>
  /** Routes the events and names them `run/n`, so that a repeated attempt publishes nothing twice (L2b). */
  readonly preparePublication: (
    events: readonly PublishedEvent[],
    run: string,
    from: number,
  ) => AttemptPublication | Promise<AttemptPublication>
}

export type AttemptResult =
  /** The lease is lost: no write of this process to the run counts any more. */
  | { readonly kind: 'lost'; readonly handler: UnfinishedHandler }
  /** No handler was called, e.g. because the store did not return the events. */
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'ended'
      readonly settle: Settlement
      readonly verdict: Verdict
      readonly ms: Millis
      readonly counts: Readonly<Record<string, number>>
      /** Emits the published events once they are stored. */
      readonly onSettled: AttemptPublication['onSettled']
      readonly routesEpoch: AttemptPublication['routesEpoch']
      /** The handler that did not return in time. Its lane must not start again in this process before it returns. */
      readonly handler: UnfinishedHandler
    }

/** `UnfinishedHandler` resolves when a handler ends that its attempt did not wait for. */
type UnfinishedHandler = Promise<unknown> | undefined

/**
 * `Attempt` calls the handler of a run once and passes the result to `onEnded`. It uses callbacks, because a chain of async functions
 * took a fifth of the CPU time of a run that does nothing.
 */
export class Attempt implements RunControls {
  readonly live: LiveRun
  readonly flow: Flow
  readonly #deps: AttemptDependencies
  readonly #onEnded: (result: AttemptResult) => void
  readonly #published: PublishedEvent[] = []
  #counts: Record<string, number> | undefined
  readonly #commits: Promise<unknown>[] = []
  #log: RunLog | undefined
  #events: readonly FlowEvent[] = []
  /** Set if the attempt waits for the handler. */
  #handler: UnfinishedHandler
  /** When the attempt times out, on the monotonic clock. */
  #timesOutAt: Millis = Infinity
  #cancelTimer: () => void = () => {}
  #isOver = false

  constructor(live: LiveRun, flow: Flow, deps: AttemptDependencies, onEnded: (result: AttemptResult) => void) {
    this.live = live
    this.flow = flow
    this.#deps = deps
    this.#onEnded = onEnded
  }

  start(): void {
    const { events } = this.live.lease
    if (events.every(hasBody)) return this.#run([], this.live.startedAt)
    // These bodies did not fit into the reply of the claim.
    this.#deps.readBodies(events.map((event) => event.id)).then(
      (bodies) => this.#run(bodies, this.#deps.clock.monotonic()),
      (error: unknown) => this.#onEnded({ kind: 'failed', error }),
    )
  }

  #run(bodies: readonly (Uint8Array | undefined)[], now: Millis): void {
    const { live, flow } = this
    // The reply to the claim came too late: the store may have given the lane to another process by now.
    if (live.abortCause === 'lost' || now >= live.endsAt) return this.#end('lost')
    let run: HandledRun
    try {
      run = new HandledRun(this, bodies)
    } catch (error) {
      return this.#onEnded({ kind: 'failed', error })
    }
    this.#events = run.events
    this.#timesOutAt = now + flow.timeout
    live.onOver = (how) => this.#end(how)
    const ended = callHandler(run, this)
    if (!(ended instanceof Promise) && this.#commits.length === 0) return this.#end(ended)
    this.#handler = Promise.resolve(ended).then((how) => this.#endAfterCommits(how))
    // Before this line, the handler kept the event loop busy, and no timer could have fired.
    this.#setTimer()
  }

  /** A handler that did not wait for its commits ends once they are answered, because their results decide how it ended (L6c). */
  #endAfterCommits(how: HandlerEnd): unknown {
    if (this.#commits.length === 0) return this.#end(how)
    return Promise.allSettled(this.#commits).then(() => this.#end(how))
  }

  #setTimer(): void {
    this.#cancelTimer()
    if (this.#isOver || this.#timesOutAt === Infinity) return
    const { clock } = this.#deps
    this.#cancelTimer = clock.after(this.#timesOutAt - clock.monotonic(), () => this.live.abort('timeout'))
  }

  /** Created on first use, because most handlers write no log. */
  get log(): RunLog {
    return (this.#log ??= this.#deps.log(this.live))
  }

  commit(): Promise<'ok' | 'cancelled'> {
    const result = this.#deps.commit(this.live)
    this.#commits.push(result)
    return result
  }

  /** After the attempt, a handler that still works may call `extend`; it has no effect. */
  extend(by: Millis): void {
    this.#timesOutAt = this.#deps.clock.monotonic() + by
    if (this.#handler !== undefined) this.#setTimer()
  }

  publish(events: readonly EventInput[], target: PublishTarget | undefined): void {
    // No settlement would store the events.
    if (this.#isOver) throw publishedTooLate()
    for (const input of events) this.#deps.assertPublishable(input)
    for (const input of events) this.#published.push({ ...target, input: withTrace(input) })
  }

  count(name: string, by: number): void {
    this.#counts ??= Object.create(null) as Record<string, number>
    this.#counts[name] = (this.#counts[name] ?? 0) + by
  }

  /** The handler ended, or the attempt stops waiting for it. Only the first call counts. */
  #end(how: HandlerEnd | 'timed-out' | 'lost'): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelTimer()
    let result: AttemptResult | Promise<AttemptResult>
    try {
      result = this.#judge(how)
    } catch (error) {
      result = { kind: 'failed', error }
    }
    if (!(result instanceof Promise)) return this.#onEnded(result)
    void result.catch((error: unknown) => ({ kind: 'failed' as const, error })).then(this.#onEnded)
  }

  #judge(how: HandlerEnd | 'timed-out' | 'lost'): AttemptResult | Promise<AttemptResult> {
    const { live } = this
    const now = this.#deps.clock.monotonic()
    // A handler that blocked the event loop gets here before any timer fires.
    if (how === 'lost' || now >= live.endsAt) {
      live.abort('lost')
      return { kind: 'lost', handler: this.#handler }
    }
    const ended: HandlerResult = how === 'timed-out' ? { kind: 'timed-out' } : how
    const { storeTime, snoozeLimit, random } = this.#deps
    const published = this.#published.length
    const at = { live, flow: this.flow, storeTime, snoozeLimit, random, published }
    const judged = judgeAttempt(ended, at, this.#published, this.#deps)
    const ms = now - live.startedAt
    if (judged instanceof Promise) return judged.then((judgement) => this.#settle(ended, judgement, ms))
    return this.#settle(ended, judged, ms)
  }

  #settle(ended: HandlerResult, judged: JudgedAttempt, ms: Millis): AttemptResult | Promise<AttemptResult> {
    // A handler that timed out may still work; the aborted signal ends its calls.
    if (ended.kind !== 'timed-out') this.live.markEnded(judged.verdict.publishes ? 'done' : 'undone')
    if (!mayDie(judged.verdict)) return this.#toResult(ended, judged, ms, undefined)
    return this.#deps.readDeathNotice().then((notice) => this.#toResult(ended, judged, ms, notice))
  }

  #toResult(
    ended: HandlerResult,
    { verdict, publish }: JudgedAttempt,
    ms: Millis,
    announceDeadAfter: DeathNotice | undefined,
  ): AttemptResult {
    const { lease } = this.live
    const { error } = verdict
    const settle: Settlement = {
      lane: lease.lane,
      token: lease.token,
      outcome: verdict.outcome,
      attempt: error === undefined ? undefined : { at: this.#deps.storeTime(), ms: Math.round(ms), error },
      publish: publish.events,
      whileRunning: decideAfterRun(this.flow, this.#events),
      keep: this.flow.rememberFor(this.#events),
      confidential: lease.events.some(({ attributes }) => isEncrypted(attributes)),
      announceDeadAfter,
    }
    return {
      kind: 'ended',
      settle,
      verdict,
      ms,
      counts: this.#counts ?? NO_COUNTS,
      onSettled: publish.onSettled,
      routesEpoch: publish.routesEpoch,
      handler: ended.kind === 'timed-out' ? this.#handler : undefined,
    }
  }
}

const NO_COUNTS: Readonly<Record<string, number>> = Object.freeze({})

type HandlerEnd = Exclude<HandlerResult, { kind: 'timed-out' }>

function callHandler(run: HandledRun, { live, flow }: Attempt): HandlerEnd | Promise<HandlerEnd> {
  try {
    const returned: unknown = runContext.run(live, () => flow.run(run as never))
    // Whether another value is a promise, only a promise can find out safely: reading its `then` may throw.
    if (returned === undefined) return { kind: 'returned', value: undefined }
    return Promise.resolve(returned).then(toReturned, toThrown)
  } catch (error) {
    return toThrown(error)
  }
}

function toReturned(value: unknown): HandlerEnd {
  return { kind: 'returned', value }
}

function toThrown(error: unknown): HandlerEnd {
  return { kind: 'threw', error }
}

function mayDie({ outcome }: Verdict): boolean {
  return outcome.kind === 'dead' || (outcome.kind === 'partial' && outcome.dead.length > 0)
}

/** A flow may decide per event; the last event of the run then decides for those that wait behind it. */
function decideAfterRun(flow: Flow, events: readonly FlowEvent[]): Settlement['whileRunning'] {
  const last = events.at(-1)
  try {
    return last !== undefined && flow.whileRunning(last) === 'requeue' ? 'requeue' : 'window'
  } catch {
    return 'window'
  }
}

interface JudgedAttempt {
  readonly verdict: Verdict
  readonly publish: AttemptPublication
}

/** `judgeAttempt` returns a promise only if a published event has a target that the store must look up. */
function judgeAttempt(
  ended: HandlerResult,
  at: EndedAttempt,
  published: readonly PublishedEvent[],
  deps: AttemptDependencies,
): JudgedAttempt | Promise<JudgedAttempt> {
  const verdict = decideSafely(ended, at)
  if (!verdict.publishes || published.length === 0) return { verdict, publish: NO_PUBLICATION }
  // An invalid published event is a failure of the handler.
  const reject = (error: unknown): JudgedAttempt => ({
    verdict: decideVerdict({ kind: 'threw', error }, at),
    publish: NO_PUBLICATION,
  })
  try {
    const { lease, storedState } = at.live
    const prepared = deps.preparePublication(published, lease.runId, storedState.published)
    if (!(prepared instanceof Promise)) return { verdict, publish: prepared }
    return prepared.then((publish) => ({ verdict, publish }), reject)
  } catch (error) {
    return reject(error)
  }
}

/** The thrown value may itself throw when it is read. */
function decideSafely(ended: HandlerResult, at: EndedAttempt): Verdict {
  try {
    return decideVerdict(ended, at)
  } catch {
    const error = new Error('The handler ended with a value that cannot be read.')
    return decideVerdict({ kind: 'threw', error }, at)
  }
}

function publishedTooLate(): SluiceError {
  const what = 'run.publish: the run is over; nothing was published.'
  return new SluiceError('CONFLICT', what, undefined, 'Publish before the handler returns.')
}
