// The Redis store passes the whole conformance suite on a real server; every second caller has its own connections.
import { afterEach, describe, inject, it } from 'vitest'
import { storeConformance } from '../conformance/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { EmptyStores } from '../redis/empty-stores.ts'

const stores = new EmptyStores(inject('redisUrl'), 'conformance')
afterEach(() => stores.letGo())

storeConformance(
  { describe, it },
  {
    name: 'Redis',
    clock: () => new VirtualClock(),
    fresh: (clock) => stores.open(clock),
    reopen: (store, clock) => stores.again(store, clock),
    second: (store) => stores.beside(store),
  },
)
