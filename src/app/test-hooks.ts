// `TestHooks` is the interface through which `sluice/testing` controls an app's clock and store and observes its runs.
import type { Dispatcher } from 'undici'
import type { Clock, Millis } from '../clock.ts'
import type { Run } from '../run/run.ts'
import type { Store } from '../store/contract/index.ts'

export interface TestHooks {
  readonly clock: Clock
  readonly store: Store
  /** No other process uses the store, so polling for unannounced changes needs to happen only this often. */
  readonly minPollInterval: Millis
  /** Except for the outbox: transactions of the test are not announced either. */
  readonly watchesOutbox?: boolean
  /** Replaces the network for limited calls and for deliveries. Only the test kit can set it; no option of an app can. */
  readonly outgoing?: { readonly fetch: typeof globalThis.fetch; readonly agent: Dispatcher }
  readonly watch: (run: Run, handler: (run: never) => unknown) => unknown
}

export interface TestControls {
  readonly hasFlow: (name: string) => boolean
  /** Stops as if the process had been killed: it settles nothing and gives nothing back. */
  readonly crash: () => void
}
