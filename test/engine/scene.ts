// Shared by the tests of the engine: an app under a virtual clock on a chosen store, and handlers that wait for the test.
import { onTestFinished } from 'vitest'
import {
  openStore,
  Sluice,
  type EventMap,
  type EventName,
  type FlowOptions,
  type PublishResult,
  type Run,
  type SluiceOptions,
  type Store,
} from '../../src/index.ts'
import { IdleTracker } from '../../src/testing/idle-tracker.ts'
import { testApp, VirtualClock, type TestApp } from '../../src/testing/index.ts'

/** The stores on which each test of a rule runs. */
export const STORES = ['memory:', 'sqlite::memory:'] as const

export type Declare = (app: Sluice) => unknown
type Options = Partial<Omit<SluiceOptions, 'store' | 'clock'>> & { readonly now?: Date | number }

/** The options of a flow that a test adds or changes. */
export type More = Partial<Omit<FlowOptions<Run>, 'run'>> & { readonly run?: (run: Run) => void | Promise<void> }

export const START = Date.UTC(2026, 0, 1)

/** Starts an app, and stops it at the end of the test. */
export async function play(store: string, declare: Declare, options: Options = {}): Promise<TestApp> {
  const { now = START, ...rest } = options
  const app = new Sluice({ store: 'memory:', log: false, ...rest })
  declare(app)
  const t = await testApp(app, { store, now })
  let stopped: Promise<void> | undefined
  const once: TestApp = new Proxy(t, {
    get: (target, name): unknown => (name === 'stop' ? stop : Reflect.get(target, name)),
  })
  const stop = (): Promise<void> => (stopped ??= t.stop())
  onTestFinished(stop)
  return once
}

/** `Gate` lets handlers wait at a name. Each opening of the name lets one handler through. */
export class Gate {
  readonly #waiting = new Map<string, (() => void)[]>()

  wait(name = ''): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve])
    return promise
  }

  /** Also ends when the signal is aborted, as a good handler does. */
  async waitFor(name: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const aborted = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => aborted.reject(signal.reason as Error), { once: true })
    await Promise.race([this.wait(name), aborted.promise])
  }

  open(name = ''): void {
    const [first, ...others] = this.#waiting.get(name) ?? []
    if (first === undefined) throw new Error(`Nobody waits at ${JSON.stringify(name)}.`)
    this.#waiting.set(name, others)
    first()
  }

  waits(name = ''): number {
    return this.#waiting.get(name)?.length ?? 0
  }
}

export interface Datum {
  readonly user?: string
  readonly n?: number
}

/** The n-th event of a user. */
export function ping(user: string, n = 0): { readonly type: string; readonly data: Datum } {
  return { type: 'ping', data: { user, n } }
}

export function userOf(event: { readonly data: unknown }): string | undefined {
  return (event.data as Datum).user
}

/** Wake-ups within this time share a call: everything that is due at once runs within it. */
export const SOON = 4

export async function soon(t: TestApp): Promise<void> {
  await t.advance(SOON)
}

/** Publishes, and advances the clock by 4 ms, so that everything that is due at once runs. */
export async function sendNow(t: TestApp, ...sent: Parameters<TestApp['send']>): Promise<readonly PublishResult[]> {
  const published = await t.send(...sent)
  await soon(t)
  return published
}

export function keysOf(t: TestApp): readonly string[] {
  return t.runs.map((run) => run.key)
}

/** For each attempt, the numbers of its events. */
export function numbersOf(t: TestApp): readonly (readonly unknown[])[] {
  return t.runs.map((run) => run.events.map((data) => (data as Datum).n))
}

export function emittedEvents<N extends EventName>(t: TestApp, name: N): readonly EventMap[N][] {
  return t.emitted.filter((one) => one.name === name).map((one) => one.payload as EventMap[N])
}

/** `Shared` is several processes on one store and one clock. */
export class Shared {
  readonly clock: VirtualClock
  readonly store: Store
  readonly #quiet: IdleTracker

  private constructor(clock: VirtualClock, opened: Store) {
    this.clock = clock
    this.#quiet = new IdleTracker(clock)
    this.store = clock.watch(opened)
  }

  static async open(address: string): Promise<Shared> {
    const clock = new VirtualClock(START)
    const opened = await openStore(address, { clock })
    onTestFinished(() => opened.close())
    return new Shared(clock, opened)
  }

  /** Starts a process. The end of the test stops it, unless the test did. */
  async process(name: string, declare: Declare, options: Partial<SluiceOptions> = {}): Promise<Sluice> {
    const app = new Sluice({ log: false, ...options, store: this.store, clock: this.clock, process: name })
    declare(app)
    await app.start()
    onTestFinished(() => this.stop(app))
    await this.settled()
    return app
  }

  settled(): Promise<void> {
    return this.#quiet.settled()
  }

  advance(by: number): Promise<void> {
    return this.#quiet.advance(by)
  }

  /** Stops an app and advances the clock as far as this takes. */
  async stop(app: Sluice): Promise<void> {
    await this.#quiet.advanceUntil(app.stop())
  }
}
