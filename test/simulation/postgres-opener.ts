// How the simulation opens a store on PostgreSQL.
import type { DirectCallsMode } from '../postgres/direct-calls.ts'
import { EmptyStores, type Prepare } from '../postgres/empty-stores.ts'
import { oneByOne } from './one-by-one.ts'
import type { Opened } from './simulate.ts'
import type { VirtualClock } from './virtual-clock.ts'

export interface OpenerOptions {
  readonly mode?: DirectCallsMode
  /** Runs in each new schema. */
  readonly prepare?: Prepare
}

/** `opener` opens an empty store for each history. */
export function opener(
  url: string,
  label: string,
  { mode = 'direct', prepare }: OpenerOptions = {},
): (clock: VirtualClock) => Promise<Opened> {
  const stores = new EmptyStores(url, label, mode, prepare)
  return async (clock) => {
    stores.letGo()
    const store = await stores.open(clock)
    let current = store
    return {
      store: oneByOne(store),
      reopen: async () => oneByOne((current = await stores.again(current, clock))),
    }
  }
}
