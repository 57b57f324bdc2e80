// `Harness` is what the suite needs from the tested store and from the test runner. The suite depends on no runner.
import type { Clock, Millis } from '../../src/clock.ts'
import type { Store } from '../../src/store/contract/index.ts'

/** A clock that moves only when a test moves it. */
export interface ManualClock extends Clock {
  /** Steps the wall time, forward or back. */
  set(now: Millis): void
  advance(by: Millis): void
}

type Test = () => Promise<void>

/** The part of vitest, node:test and similar runners that the suite uses. */
export interface Runner {
  describe(name: string, fill: () => void): unknown
  readonly it: (name: string, test: Test) => unknown
}

export interface Harness {
  readonly name: string
  clock(): ManualClock
  /** An empty store that no other test uses. */
  fresh(clock: Clock): Promise<Store> | Store
  /** Runs only these suites: for a second way to open a store that passes all of them. */
  readonly only?: readonly string[]
  /** Closes the store and opens its data again, as after a restart or a crash. Without it, the store must say that it is not durable. */
  reopen?(store: Store, clock: Clock): Promise<Store>
  /** Another client of the same data: a second connection. Without it, a second process shares the store object. */
  second?(store: Store): Promise<Store>
}
