// `testApp` runs an app under a virtual clock: an hour of debouncing takes milliseconds and always ends the same way.
import type { Millis } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { EventInput, PublishResult } from '../model/event.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { assertKnownOptions } from '../validate/options.ts'
import { RUN_ENDINGS, type EventMap, type EventName, type RunEnding } from '../observe/emitter.ts'
import type { Explanation } from '../observe/explain/explain.ts'
import type { Run } from '../run/run.ts'
import type { PublishOptions } from '../publish/publish.ts'
import { attachTest, type Sluice } from '../app/sluice.ts'
import type { Store } from '../store/contract/index.ts'
import { openStore } from '../store/open.ts'
import { IdleTracker } from './idle-tracker.ts'
import { createOutgoing, type TestFetch } from './outgoing.ts'
import { VirtualClock } from './virtual-clock.ts'

export interface TestOptions {
  /** The store (default `memory:`), e.g. `sqlite:<file>` or `sqlite::memory:` to test on SQLite. */
  readonly store?: string
  readonly now?: Date | Millis
  /** The clock (default: a new one that starts at `now`), for a test that needs it before the app exists. */
  readonly clock?: VirtualClock
  /**
   * Receives every request that the app makes: the posts of its deliveries and the calls through `limit.fetch`. It may wait for the
   * virtual clock. Default: requests leave through the network, in real time.
   */
  readonly fetch?: TestFetch
  /**
   * Whether the test publishes in transactions on PostgreSQL, with `tx` or in SQL. The app then looks into the outbox twice in each virtual
   * second, which takes about a millisecond of real time each. Default: once an hour.
   */
  readonly outbox?: boolean
}

/** One attempt, as observed by the test. */
export interface TestRun {
  readonly flow: string
  readonly key: string
  readonly id: string
  readonly attempt: number
  /** The data of its events, in order. */
  readonly events: readonly unknown[]
  /** Milliseconds since the start of the test. */
  readonly at: Millis
  /** How the attempt ended; `running` until then. */
  readonly ending: 'running' | RunEnding
  readonly error: string | undefined
}

export interface TestApp {
  readonly app: Sluice
  readonly clock: VirtualClock
  /** All attempts so far, in the order of their start. */
  readonly runs: readonly TestRun[]
  /** All emitted events so far. */
  readonly emitted: readonly { readonly name: EventName; readonly payload: EventMap[EventName] }[]
  /** Milliseconds since the start of the test. */
  readonly elapsed: Millis
  /** Publishes events and runs the lanes that are due at once. */
  send(event: EventInput | readonly EventInput[], options?: PublishOptions): Promise<readonly PublishResult[]>
  /** Advances the clock. Each timer fires at its time, and all its consequences complete before the next one. */
  advance(by: Duration): Promise<void>
  /** Advances the clock until the promise settles. */
  until<T>(promise: Promise<T>): Promise<T>
  /** Completes everything that needs no clock advance. */
  settled(): Promise<void>
  explain(flow: string, key: string): Promise<Explanation>
  /** Makes the next `times` attempts of the flow throw the error instead of calling the handler. */
  fail(flow: string, error: Error, times?: number): void
  /** Kills the process without settling anything. `restart` starts another one on the same store. */
  crash(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

const MIN_POLL_INTERVAL = 3_600_000

const BOTH_TIMES =
  'testApp: now must be omitted with clock. The clock has the time; set it with new VirtualClock(time).'

export async function testApp(app: Sluice, options: TestOptions = {}): Promise<TestApp> {
  assertKnownOptions(options, ['store', 'now', 'clock', 'fetch', 'outbox'], 'testApp: ')
  const { now, fetch, outbox = false } = options
  if (now !== undefined && options.clock !== undefined) throw new TypeError(BOTH_TIMES)
  const clock = options.clock ?? new VirtualClock(now instanceof Date ? now.getTime() : now)
  const began = clock.monotonic()
  const quiet = new IdleTracker(clock)
  // A test may use a server that does not wait for its disk.
  const opened = await openStore(options.store ?? 'memory:', { clock, acceptLoss: true })
  const store: Store = clock.watch(opened)
  const runs: TestRun[] = []
  const failures = new Map<string, Error[]>()
  const watch = (run: Run, handler: (run: never) => unknown): unknown => {
    runs.push({
      flow: run.flow,
      key: run.key,
      id: run.id,
      attempt: run.attempt,
      at: clock.monotonic() - began,
      events: run.events.map(readData),
      ending: 'running',
      error: undefined,
    })
    const failure = failures.get(run.flow)?.shift()
    if (failure !== undefined) throw failure
    return handler(run as never)
  }
  const outgoing = fetch === undefined ? {} : { outgoing: await createOutgoing(fetch) }
  const hooks = { clock, store, minPollInterval: MIN_POLL_INTERVAL, watchesOutbox: outbox, watch, ...outgoing }
  const { crash, hasFlow } = attachTest(app, hooks)
  const emitted = recordRuns(app, runs)
  await app.start()
  await quiet.settled()
  return {
    app,
    clock,
    runs,
    emitted,
    get elapsed() {
      return clock.monotonic() - began
    },
    async send(event, sendOptions) {
      const published = await app.publish(event, sendOptions)
      await quiet.settled()
      return published
    },
    advance: async (by: Duration) => quiet.advance(parseDuration(by, 'advance')),
    until: (promise) => quiet.advanceUntil(promise),
    settled: () => quiet.settled(),
    explain: (flow, key) => app.explain(flow, key),
    fail(flow, error, times = 1) {
      if (!hasFlow(flow)) throw new TypeError(`t.fail: there is no flow ${JSON.stringify(flow)}.`)
      failures.set(flow, [...(failures.get(flow) ?? []), ...Array.from({ length: times }, () => error)])
    },
    async crash() {
      crash()
      await quiet.settled()
    },
    async restart() {
      // A process that starts does more than call its store, and no time passes until it has started.
      await clock.watch({ start: () => app.start() }).start()
      await quiet.settled()
    },
    async stop() {
      await quiet.advanceUntil(app.stop())
      await opened.close()
    },
  }
}

/** The data as it was sent if its schema rejects it by now: the handler may not read it at all. */
function readData(event: FlowEvent): unknown {
  try {
    return event.data
  } catch {
    return event.toJSON()['data']
  }
}

function recordRuns(app: Sluice, runs: TestRun[]): { name: EventName; payload: EventMap[EventName] }[] {
  const emitted: { name: EventName; payload: EventMap[EventName] }[] = []
  app.onAny((name, payload) => void emitted.push({ name, payload }))
  for (const ending of RUN_ENDINGS) {
    app.on(`run.${ending}`, (payload) => {
      const at = runs.findLastIndex((run) => run.id === payload.run && run.ending === 'running')
      const run = runs[at]
      if (run !== undefined) runs[at] = { ...run, ending, error: 'error' in payload ? payload.error : undefined }
    })
  }
  return emitted
}
