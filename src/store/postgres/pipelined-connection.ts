// `PipelinedConnection` is one connection for all calls of a kind. The server executes them in the order in which they were sent,
// and a call can be sent before the result of the one before it has arrived.
import type { Pool, PoolClient } from 'pg'

export class PipelinedConnection {
  readonly #pool: Pool
  #client: Promise<PoolClient> | undefined
  #users = 0
  #isBroken = false

  constructor(pool: Pool) {
    this.#pool = pool
  }

  acquire(): Promise<PoolClient> {
    this.#users++
    this.#client ??= this.#pool.connect()
    return this.#client.catch((error: unknown) => {
      this.release(true)
      throw error
    })
  }

  /** The last user gives the connection back to the pool. */
  release(isBroken: boolean): void {
    this.#users--
    this.#isBroken ||= isBroken
    if (this.#users > 0) return
    const [client, broken] = [this.#client, this.#isBroken]
    this.#client = undefined
    this.#isBroken = false
    client?.then(
      (one) => one.release(broken),
      () => {},
    )
  }
}
