// Locks by name, for what has no row of its own to lock. Taken in one order, held until the end of the transaction.
import type { Db } from './part.ts'
import { written, type Value } from './values.ts'

export type LockMode = 'shared' | 'alone'

const TAKE = `select case when mode = 'alone' then pg_advisory_xact_lock(hashtextextended($1 || name, 0))
  else pg_advisory_xact_lock_shared(hashtextextended($1 || name, 0)) end from unnest($2::text[], $3::text[]) as l (name, mode)`

export class Locks {
  readonly #space: string
  readonly #held = new Map<string, LockMode>()
  readonly #lacking = new Map<string, LockMode>()

  /** `space`: locks are of the whole database, names of this store only. */
  constructor(space: string) {
    this.#space = space
  }

  hold(name: string, mode: LockMode = 'alone'): void {
    const held = this.#held.get(name)
    if (held === 'alone' || held === mode) return
    if (this.#lacking.get(name) !== 'alone') this.#lacking.set(name, mode)
  }

  holds(name: string): boolean {
    return this.#held.has(name)
  }

  again(): void {
    this.#lacking.clear()
  }

  get isLacking(): boolean {
    return this.#lacking.size > 0
  }

  async load(db: Db): Promise<void> {
    const wanted = [...this.#lacking].toSorted(([one], [other]) => (one < other ? -1 : 1))
    this.#lacking.clear()
    if (wanted.length === 0) return
    for (const [name, mode] of wanted) this.#held.set(name, mode)
    if (db.readOnly) return
    await db.rows(TAKE, [
      this.#space,
      wanted.map(([name]) => written(name)),
      wanted.map(([, mode]) => mode),
    ] satisfies readonly Value[])
  }
}
