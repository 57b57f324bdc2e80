// Runs the whole conformance suite on real servers; every second caller has its own connections.
import { afterEach, describe, inject, it } from 'vitest'
import { storeConformance } from '../conformance/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import type { DirectCallsMode } from '../postgres/direct-calls.ts'
import { EmptyStores } from '../postgres/empty-stores.ts'

export function conformanceOnPostgres(mode: DirectCallsMode): void {
  for (const { name, url } of inject('postgresServers')) {
    const stores = new EmptyStores(url, `conformance_${mode}`, mode)
    afterEach(() => stores.letGo())
    storeConformance(
      { describe, it },
      {
        name: mode === 'direct' ? name : `${name}, ${mode}`,
        clock: () => new VirtualClock(),
        fresh: (clock) => stores.open(clock),
        reopen: (store, clock) => stores.again(store, clock),
        second: (store) => stores.beside(store),
      },
    )
  }
}
