// What the suite needs from the store under test and from the program that runs the tests. It depends on no runner.
import type { Clock, Millis } from '../../clock.ts'
import type { Store } from '../contract/index.ts'

/** A clock that moves only when told to. */
export interface HandClock extends Clock {
  /** Steps the wall time, forward or back. */
  set(now: Millis): void
  advance(by: Millis): void
}

type Test = () => Promise<void>

/** The part of vitest, node:test and their like that is used here. */
export interface Runner {
  describe(name: string, fill: () => void): unknown
  readonly it: {
    (name: string, test: Test): unknown
    skip(name: string, test: Test): unknown
  }
}

export interface Harness {
  readonly name: string
  clock(): HandClock
  /** An empty store that nobody else sees. */
  fresh(clock: Clock): Promise<Store> | Store
  /** Only these suites: for a second way to bring up a store that passes all of them. */
  readonly only?: readonly string[]
  /** Ends the store and opens its data again, as after a restart or a crash. Without it nothing is said about durability. */
  reopen?(store: Store, clock: Clock): Promise<Store>
  /** Another caller of the same data: a second connection. Without it a second process shares the store object. */
  second?(store: Store): Promise<Store>
  /** Suites this store is excused from, each with the reason that the report shows. */
  readonly skip?: Readonly<Record<string, string>>
}
