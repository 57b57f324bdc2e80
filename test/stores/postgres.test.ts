// The PostgreSQL store passes the whole conformance suite on real servers; every second caller has its own connections.
import { afterEach, describe, inject, it } from 'vitest'
import { storeConformance } from '../conformance/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { EmptyStores } from '../postgres/empty-stores.ts'

for (const { name, url } of inject('postgresServers')) {
  const stores = new EmptyStores(url, 'conformance')
  afterEach(() => stores.letGo())
  storeConformance(
    { describe, it },
    {
      name,
      clock: () => new VirtualClock(),
      fresh: (clock) => stores.open(clock),
      reopen: (store, clock) => stores.again(store, clock),
      second: (store) => stores.beside(store),
    },
  )
}
