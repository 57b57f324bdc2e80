// `OwnSchema` gives an app tables of its own beside the store, in another schema of the same PostgreSQL server.
import { Pool, type PoolClient } from 'pg'

export interface SchemaNames {
  /** The options of a client of `pg` whose session uses the app's own schema. */
  readonly client: { readonly connectionString: string; readonly options: string }
  /** The app's own schema. */
  readonly own: string
  /** The schema of the store, where `publish` is. */
  readonly store: string
}

/** `schemaNames` returns the names for the address of a store. Two stores of one server have two schemas, and so have their apps. */
export function schemaNames(address: string, app: string): SchemaNames {
  const url = new URL(address)
  const named = url.searchParams.get('schema')
  url.searchParams.delete('schema')
  const own = named === null ? app : `${app}_${named.replaceAll(/\W/g, '_')}`
  return { client: { connectionString: url.href, options: `-c search_path=${own}` }, own, store: named ?? 'sluice' }
}

export class OwnSchema {
  readonly #pool: Pool
  readonly #name: string
  readonly #tables: string
  #isReady: Promise<void> | undefined

  /** `tables` are statements that may be repeated, e.g. `create table if not exists …`. */
  constructor(address: string, app: string, tables: string) {
    const { client, own } = schemaNames(address, app)
    this.#pool = new Pool({ ...client, max: 8, allowExitOnIdle: true })
    // An idle connection that breaks is replaced by the next call.
    this.#pool.on('error', () => {})
    this.#name = own
    this.#tables = tables
  }

  /** Returns a connection. The first call creates the tables. */
  async connect(): Promise<PoolClient> {
    await (this.#isReady ??= this.#create().catch((error: unknown) => {
      this.#isReady = undefined
      throw error
    }))
    return this.#pool.connect()
  }

  /** Processes that start together take turns. */
  async #create(): Promise<void> {
    const client = await this.#pool.connect()
    try {
      await client.query('select pg_advisory_lock(hashtext($1))', [this.#name])
      await client.query(`create schema if not exists ${this.#name}; ${this.#tables}`)
      await client.query('select pg_advisory_unlock(hashtext($1))', [this.#name])
      client.release()
    } catch (error) {
      client.release(true)
      throw error
    }
  }
}
