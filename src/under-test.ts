// How an app is put under a test's clock and store, and watched: what `sluice/testing` and the app say to each other.
import type { Clock, Millis } from './clock.ts'
import type { Run } from './run/run.ts'
import type { Store } from './store/contract/index.ts'

export interface UnderTest {
  readonly clock: Clock
  readonly store: Store
  /** Nobody else works on the store: no need to look for what was not announced more often than this. */
  readonly calm: Millis
  readonly watch: (run: Run, handler: (run: never) => unknown) => unknown
}

export interface Crashable {
  readonly hasFlow: (name: string) => boolean
  /** As if the process had been killed: nothing is settled, nothing given back. */
  readonly crash: () => void
}
