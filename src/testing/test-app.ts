// An app under a clock of the test's own: an hour of debouncing passes in a moment, and always ends the same way.
import type { Millis } from '../clock.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { EventInput } from '../model/event-input.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { onlyKnown } from '../model/options.ts'
import type { EventMap, EventName } from '../observe/events.ts'
import type { Explanation } from '../observe/explain.ts'
import type { Run } from '../run/run.ts'
import type { Published } from '../receive/publisher.ts'
import type { PublishOptions } from '../receive/publishing.ts'
import { underTest, type Sluice } from '../sluice.ts'
import type { Store } from '../store/contract/index.ts'
import { openStore } from '../store/open.ts'
import { Quiet } from './quiet.ts'
import { VirtualClock } from './virtual-clock.ts'

export interface TestOptions {
  /** `memory:` unless said; `sqlite:<file>` or `sqlite::memory:` to try the real thing. */
  readonly store?: string
  /** What time it is when the test begins. */
  readonly now?: Date | Millis
}

/** One attempt, as the test saw it. */
export interface TestRun {
  readonly flow: string
  readonly key: string
  readonly id: string
  readonly attempt: number
  /** The data of its events, in order. */
  readonly events: readonly unknown[]
  /** Since the test began. */
  readonly at: Millis
  /** `running` until it has ended. */
  readonly ending: 'running' | 'done' | 'again' | 'retry' | 'partial' | 'cancelled' | 'lost' | 'dead' | 'dropped'
  readonly error: string | undefined
}

export interface TestApp {
  readonly app: Sluice
  /** All attempts so far, in the order in which they began. */
  readonly runs: readonly TestRun[]
  /** What was emitted so far. */
  readonly emitted: readonly { readonly name: EventName; readonly what: EventMap[EventName] }[]
  /** Since the test began. */
  readonly elapsed: Millis
  /** Publishes, and lets what is due at once run. */
  send(event: EventInput | readonly EventInput[], options?: PublishOptions): Promise<readonly Published[]>
  /** Lets time pass: every timer fires at its moment, and all that comes of it is done before the next. */
  advance(by: Duration): Promise<void>
  /** Lets everything happen that needs no time. */
  settled(): Promise<void>
  explain(flow: string, key: string): Promise<Explanation>
  /** The next so many attempts of the flow throw this instead of being run. */
  fail(flow: string, error: Error, times?: number): void
  /** The process is killed: nothing is settled. `restart` begins another on the same store. */
  crash(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

const CALM = 3_600_000

const KNOWN: ReadonlySet<string> = new Set<keyof TestOptions>(['store', 'now'])

export async function testApp(app: Sluice, options: TestOptions = {}): Promise<TestApp> {
  onlyKnown(options, KNOWN, 'testApp: ')
  const { now } = options
  const clock = new VirtualClock(now instanceof Date ? now.getTime() : now)
  const quiet = new Quiet()
  const opened = await openStore(options.store ?? 'memory:', { clock })
  const store: Store = quiet.watched(opened)
  const runs: TestRun[] = []
  const failures = new Map<string, Error[]>()
  const watch = (run: Run, handler: (run: never) => unknown): unknown => {
    runs.push({
      flow: run.flow,
      key: run.key,
      id: run.id,
      attempt: run.attempt,
      at: clock.monotonic(),
      events: run.events.map((event: FlowEvent) => event.data),
      ending: 'running',
      error: undefined,
    })
    const failure = failures.get(run.flow)?.shift()
    if (failure !== undefined) throw failure
    return handler(run as never)
  }
  const { crash, hasFlow } = underTest(app, { clock, store, calm: CALM, watch })
  const emitted = listen(app, runs)
  await app.start()
  await quiet.settled()
  return {
    app,
    runs,
    emitted,
    get elapsed() {
      return clock.monotonic()
    },
    async send(event, sendOptions) {
      const published = await app.publish(event, sendOptions)
      await quiet.settled()
      return published
    },
    advance: async (by: Duration) => quiet.pass(clock, millis(by, 'advance')),
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
      await app.start()
      await quiet.settled()
    },
    async stop() {
      await quiet.awaited(clock, app.stop())
      await opened.close()
    },
  }
}

const ENDINGS = ['done', 'again', 'retry', 'partial', 'cancelled', 'lost', 'dead', 'dropped'] as const

function listen(app: Sluice, runs: TestRun[]): { name: EventName; what: EventMap[EventName] }[] {
  const emitted: { name: EventName; what: EventMap[EventName] }[] = []
  app.events.onAny((name, what) => void emitted.push({ name, what }))
  for (const ending of ENDINGS) {
    app.events.on(`run.${ending}`, (what) => {
      const at = runs.findLastIndex((run) => run.id === what.run && run.ending === 'running')
      const run = runs[at]
      if (run !== undefined) runs[at] = { ...run, ending, error: 'error' in what ? what.error : undefined }
    })
  }
  return emitted
}
