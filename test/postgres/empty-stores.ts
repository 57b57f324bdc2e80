// Empty stores on a server, one after the other: a schema is made once and emptied for the next test, which costs a tenth.
import pg from 'pg'
import type { Clock } from '../../src/clock.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

/** Small enough that most are empty anyway: deleting is then cheaper than truncating. */
const EMPTY = `
do $$ declare name text; begin
  for name in select tablename from pg_tables where schemaname = current_schema and tablename not in ('meta', 'stored_bytes') loop
    execute format('delete from %I', name);
  end loop;
  update stored_bytes set bytes = 0;
  update meta set routes = 1;
end $$`

export class EmptyStores {
  readonly #url: string
  readonly #label: string
  /** Empties them. Keeps no process from ending. */
  readonly #pool: pg.Pool
  readonly #free: string[] = []
  readonly #opened = new Map<Store, { readonly schema: string; readonly clock: Clock }>()
  #made = 0

  constructor(url: string, label: string) {
    this.#url = url
    this.#label = label
    this.#pool = new pg.Pool({ connectionString: url, max: 1, allowExitOnIdle: true })
    this.#pool.on('error', () => {})
  }

  async open(clock: Clock): Promise<Store> {
    const used = this.#free.pop()
    if (used === undefined) return this.#at(`${this.#label}_${process.pid}_${this.#made++}`, clock)
    await this.#pool.query(`set search_path = "${used}"; ${EMPTY}`)
    return this.#at(used, clock)
  }

  /** What was written, by another process. */
  async beside(store: Store): Promise<Store> {
    const { schema, clock } = this.#opened.get(store) ?? raise()
    return this.#at(schema, clock)
  }

  /** What was written, after a restart. */
  async again(store: Store, clock: Clock): Promise<Store> {
    const { schema } = this.#opened.get(store) ?? raise()
    await store.close()
    return this.#at(schema, clock)
  }

  /** Nobody needs any more what is in those that were opened. */
  letGo(): void {
    for (const { schema } of this.#opened.values()) if (!this.#free.includes(schema)) this.#free.push(schema)
    this.#opened.clear()
  }

  async #at(schema: string, clock: Clock): Promise<Store> {
    const store = await openPostgresStore({ url: this.#url, schema, clock, connections: 4, acceptLoss: true })
    this.#opened.set(store, { schema, clock })
    return store
  }
}

function raise(): never {
  throw new Error('This store was opened by somebody else.')
}
