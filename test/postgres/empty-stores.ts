// Gives each test an empty store on a server. The schema is made once and emptied for the next test, which costs a tenth of
// making it.
import type pg from 'pg'
import type { Clock } from '../../src/clock.ts'
import type { Store } from '../../src/store/contract/index.ts'
import type { DirectPlan } from '../../src/store/postgres/plain-calls.ts'
import { connectStore, createStore, type StoreConnections } from '../../src/store/postgres/store.ts'
import { planOf, type DirectCallsMode } from './direct-calls.ts'

/** Most tables are empty anyway, so deleting is cheaper than truncating. */
const EMPTY = `
do $$ declare name text; begin
  for name in select tablename from pg_tables where schemaname = current_schema and tablename not in ('meta', 'stored_bytes') loop
    execute format('delete from %I', name);
  end loop;
  update stored_bytes set bytes = 0;
  update meta set routes = 1;
end $$`

/** A schema, and the connections of each store that was opened on it at the same time. */
interface Used {
  readonly schema: string
  readonly connections: StoreConnections[]
  /** How many of them stores have now. */
  taken: number
}

export type Prepare = (pool: pg.Pool) => Promise<unknown>

export class EmptyStores {
  readonly #url: string
  readonly #label: string
  readonly #free: Used[] = []
  readonly #opened = new Map<Store, { readonly of: Used; readonly over: StoreConnections; readonly clock: Clock }>()
  #made = 0

  readonly #planDirect: (() => DirectPlan) | undefined

  readonly #prepare: Prepare | undefined

  /** `prepare` runs in each new schema. */
  constructor(url: string, label: string, calls: DirectCallsMode = 'direct', prepare?: Prepare) {
    this.#prepare = prepare
    this.#url = url
    this.#label = label
    this.#planDirect = planOf(calls)
  }

  async open(clock: Clock): Promise<Store> {
    const used = this.#free.pop()
    const [first] = used?.connections ?? []
    if (used !== undefined && first !== undefined) {
      await Promise.all(used.connections.map(({ pool }) => untilIdle(pool)))
      await first.pool.query(EMPTY)
    }
    const of = used ?? { schema: `${this.#label}_${process.pid}_${this.#made++}`, connections: [], taken: 0 }
    return this.#take(of, clock)
  }

  /** Opens the same store as another process would. */
  async beside(store: Store): Promise<Store> {
    const { of, clock } = this.#opened.get(store) ?? raise()
    return this.#take(of, clock)
  }

  /** Opens the same store as after a restart. */
  async again(store: Store, clock: Clock): Promise<Store> {
    const { of, over } = this.#opened.get(store) ?? raise()
    await store.close()
    return this.#over(of, over, clock)
  }

  /** Marks the content of the opened stores as no longer needed. */
  letGo(): void {
    for (const { of, over } of this.#opened.values()) {
      // What a store heard of its connections is of no use to the next.
      over.pool.removeAllListeners('remove')
      of.taken = 0
      if (!this.#free.includes(of)) this.#free.push(of)
    }
    this.#opened.clear()
  }

  async #take(of: Used, clock: Clock): Promise<Store> {
    const at = of.taken++
    const connections = (of.connections[at] ??= await connectStore({ ...this.#options(of), connections: 4 }))
    if (at === 0) await this.#prepare?.(connections.pool)
    return this.#over(of, connections, clock)
  }

  #over(of: Used, over: StoreConnections, clock: Clock): Store {
    const store = createStore({ ...over, pool: kept(over.pool) }, { ...this.#options(of), clock }, this.#planDirect)
    this.#opened.set(store, { of, over, clock })
    return store
  }

  #options({ schema }: Used): { readonly url: string; readonly schema: string; readonly acceptLoss: true } {
    return { url: this.#url, schema, acceptLoss: true }
  }
}

/** The same connections, which stay open when the store is closed. */
function kept(pool: pg.Pool): pg.Pool {
  return new Proxy(pool, {
    get(target, name): unknown {
      if (name === 'end') return () => untilIdle(target)
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

/** What is under way on them comes to its end. */
async function untilIdle(pool: pg.Pool): Promise<void> {
  while (pool.idleCount < pool.totalCount) await new Promise((resolve) => setImmediate(resolve))
}

function raise(): never {
  throw new Error('This store was opened by somebody else.')
}
