// One connection for all who guess: what is sent on it is done in the order in which it was sent, so that one can decide on
// what the other before it has not been told yet.
import type { Pool, PoolClient } from 'pg'

export class OneLine {
  readonly #pool: Pool
  #client: Promise<PoolClient> | undefined
  #users = 0
  #isBroken = false

  constructor(pool: Pool) {
    this.#pool = pool
  }

  take(): Promise<PoolClient> {
    this.#users++
    this.#client ??= this.#pool.connect()
    return this.#client.catch((error: unknown) => {
      this.giveBack(true)
      throw error
    })
  }

  /** The last one gives the connection back to the pool. */
  giveBack(isBroken: boolean): void {
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
