// `runAttempt` makes one attempt of a run: it calls the handler with a timeout and a signal and returns the settlement.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { isEncrypted, type EventInput } from '../model/event.ts'
import { runContext } from '../limit/run-context.ts'
import type { UnstoredPublish, EventToStore, Settlement } from '../store/contract/index.ts'
import type { DeathNotice } from '../model/settle.ts'
import type { LiveRun } from './live-run.ts'
import type { RunLog } from '../observe/log/log.ts'
import { HandledRun, type HandlerOutput, type OutputCollector, type PublishedEvent } from './run.ts'
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
  | { readonly kind: 'lost'; readonly handler: Promise<unknown> }
  | {
      readonly kind: 'ended'
      readonly settle: Settlement
      readonly verdict: Verdict
      readonly ms: Millis
      readonly counts: HandlerOutput['counts']
      /** Emits the published events once they are stored. */
      readonly onSettled: AttemptPublication['onSettled']
      readonly routesEpoch: AttemptPublication['routesEpoch']
      /** The handler that did not return in time. Its lane must not start again in this process before it returns. */
      readonly handler: Promise<unknown> | undefined
    }

export async function runAttempt(live: LiveRun, flow: Flow, deps: AttemptDependencies): Promise<AttemptResult> {
  const { clock } = deps
  const { lease } = live
  const timer = new AttemptTimer(clock, () => live.abort('timeout'))
  const bodies = await readBodies(live, deps)
  // The reply to the claim came too late: the store may have given the lane to another process by now.
  if (live.isLapsed) {
    live.abort('lost')
    return { kind: 'lost', handler: Promise.resolve() }
  }
  const output: OutputCollector = {
    published: [],
    counts: Object.create(null) as Record<string, number>,
    isClosed: false,
  }
  const commits: Promise<unknown>[] = []
  const run = new HandledRun(
    {
      live,
      flow,
      bodies,
      log: deps.log(live),
      commit: () => {
        const result = deps.commit(live)
        commits.push(result)
        return result
      },
      extend: (by) => timer.set(by),
      assertPublishable: deps.assertPublishable,
    },
    output,
  )
  timer.set(flow.timeout)
  const handler = runContext.run(live, () => callHandler(() => flow.run(run as never), commits))
  const first = await Promise.race([handler, live.finished])
  timer.clear()
  // A handler that blocked the event loop gets here before any timer fires.
  if (first === 'lost' || live.isLapsed) {
    live.abort('lost')
    return { kind: 'lost', handler }
  }
  const ended: HandlerResult = first === 'timed-out' ? { kind: 'timed-out' } : first
  output.isClosed = true
  const { snoozeLimit, random } = deps
  const at = { live, flow, now: deps.storeTime(), snoozeLimit, random, published: output.published.length }
  const judged = judgeAttempt(ended, at, output, deps)
  const { verdict, publish } = judged instanceof Promise ? await judged : judged
  // A handler that timed out may still work; the aborted signal ends its calls.
  if (first !== 'timed-out') live.markEnded(verdict.publishes ? 'done' : 'undone')
  const ms = clock.monotonic() - live.startedAt
  const settle: Settlement = {
    lane: lease.lane,
    token: lease.token,
    outcome: verdict.outcome,
    attempt:
      verdict.error === undefined ? undefined : { at: deps.storeTime(), ms: Math.round(ms), error: verdict.error },
    publish: publish.events,
    whileRunning: decideAfterRun(flow, run.events),
    keep: flow.rememberFor(run.events),
    ...(lease.events.some(({ attributes }) => isEncrypted(attributes)) && { confidential: true }),
    ...(mayDie(verdict) && { announceDeadAfter: await deps.readDeathNotice() }),
  }
  const { onSettled, routesEpoch } = publish
  const lingering = first === 'timed-out' ? handler : undefined
  return { kind: 'ended', settle, verdict, ms, counts: output.counts, onSettled, routesEpoch, handler: lingering }
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
  { published }: HandlerOutput,
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

/** `readBodies` reads the bodies that did not fit into the reply of the claim. */
async function readBodies(live: LiveRun, deps: AttemptDependencies): Promise<readonly (Uint8Array | undefined)[]> {
  const { events } = live.lease
  if (events.every((event) => event.body !== undefined)) return []
  return deps.readBodies(events.map((event) => event.id))
}

type HandlerEnd = Exclude<HandlerResult, { kind: 'timed-out' }>

/** A handler that did not wait for its commits ends once they are answered, because their results decide how it ended (L6c). */
async function callHandler(call: () => unknown, commits: readonly Promise<unknown>[]): Promise<HandlerEnd> {
  const ended = await awaitHandler(call)
  if (commits.length > 0) await Promise.allSettled(commits)
  return ended
}

async function awaitHandler(call: () => unknown): Promise<HandlerEnd> {
  try {
    return { kind: 'returned', value: await call() }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

class AttemptTimer {
  readonly #clock: Clock
  readonly #fire: () => void
  #cancel: () => void = () => {}
  #isOver = false

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock
    this.#fire = fire
  }

  /** After `clear`, a handler that still works may call `extend`; it has no effect. */
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
