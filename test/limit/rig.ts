// Limits on a real store under a clock that the test moves, and a record of what they did.
import { onTestFinished } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import type { LimitDependencies } from '../../src/limit/limit.ts'
import { Emitter } from '../../src/observe/emitter.ts'
import { runContext, type RunContext } from '../../src/limit/run-context.ts'
import type { ReserveCall, ReserveReply, Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { IdleTracker } from '../../src/testing/idle-tracker.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { ownFile } from '../temporary-folder.ts'

/** Of the rig of this test. */
let quiet: IdleTracker

export const STORES = ['memory', 'sqlite'] as const

export interface Rig {
  readonly clock: VirtualClock
  readonly store: Store
  /** All calls of reserve, in order. */
  readonly asked: ReserveCall[]
  readonly emitted: (readonly [name: string, what: unknown])[]
  /** The limit of another process on the same store, with calls of its own. */
  process(own?: Partial<LimitDependencies>): LimitDependencies
  /** How long a reply to reserve takes; default 0. */
  answersAfter: (call: ReserveCall) => Millis
  /** Moves the clock in small steps, and waits for the consequences of each. */
  pass(by: Millis, step?: Millis): Promise<void>
  /** Moves the clock until a promise settles. */
  until<T>(over: Promise<T>, steps?: () => Millis): Promise<T>
}

export async function rig(kind: (typeof STORES)[number]): Promise<Rig> {
  const clock = new VirtualClock()
  const address = kind === 'memory' ? 'memory:' : ownFile()
  quiet = new IdleTracker(clock)
  const store = clock.watch(await openStore(address, { clock }))
  onTestFinished(() => store.close())
  const emitter = new Emitter()
  const asked: ReserveCall[] = []
  const emitted: Rig['emitted'] = []
  emitter.onAny((name, what) => void emitted.push([name, what]))
  const observed = watched(store, async (call) => {
    asked.push(call)
    const reply = await store.reserve(call)
    const late = it.answersAfter(call)
    if (late > 0) await new Promise<void>((resolve) => void clock.after(late, resolve))
    return reply
  })
  const it: Rig = {
    clock,
    store,
    asked,
    emitted,
    process: (own = {}) => ({
      store: () => Promise.resolve(observed),
      clock,
      emit: emitter.emit,
      fetch: () => Promise.reject(new Error('This test has no network.')),
      ...own,
    }),
    answersAfter: () => 0,
    async pass(by, step = 5) {
      await settle()
      for (let left = by; left > 0; left -= step) {
        clock.advance(Math.min(step, left))
        await settle()
      }
    },
    async until(over, steps = () => 5) {
      const end = new AbortController()
      over.then(
        () => end.abort(),
        () => end.abort(),
      )
      await settle()
      for (let n = 0; n < 50_000 && !end.signal.aborted; n++) {
        clock.advance(steps())
        await settle()
      }
      if (!end.signal.aborted) throw new Error('It is not over, however long one waits.')
      return over
    },
  }
  return it
}

/** The real store, except for one member. */
function watched(store: Store, reserve: (call: ReserveCall) => Promise<ReserveReply>): Store {
  return new Proxy(store, {
    get(target, member) {
      if (member === 'reserve') return reserve
      const value: unknown = Reflect.get(target, member)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** Resolves when all consequences of this moment have happened: no call of a store is open, and no promise is pending. */
export function settle(): Promise<void> {
  return quiet.settled()
}

/** The maximum number of calls in any period as long as `per`. */
export function most(times: readonly Millis[], per: Millis): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + per).length))
}

/** Runs code as if it were in a run of the flow. */
export function inRun<T>(call: () => T, own: Partial<RunContext> = {}): T {
  const scope: RunContext = {
    flow: 'rank',
    run: 'run-1',
    signal: new AbortController().signal,
    status: () => 'live',
    mayBeDeferred: () => true,
    hasCalled: false,
    markCalled: () => {},
    trackWait: () => () => {},
    ...own,
  }
  return runContext.run(scope, call)
}

/** Prevents an unhandled rejection of a promise that fails before it is awaited. */
export async function failure(of: Promise<unknown>): Promise<unknown> {
  try {
    await of
  } catch (error) {
    return error
  }
  throw new Error('It did not fail.')
}
