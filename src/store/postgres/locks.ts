// `AdvisoryLocks` locks names for things that have no row to lock. A transaction takes them in one order and holds them until
// its end.
import type { Db } from './row-cache.ts'
import { text, escapeText, type Value } from './values.ts'

export type LockMode = 'shared' | 'alone'

const TRY = `select name, pg_try_advisory_xact_lock(hashtextextended($1 || name, 0)) from unnest($2::text[]) as l (name)`
const TAKE = `select case when mode = 'alone' then pg_advisory_xact_lock(hashtextextended($1 || name, 0))
  else pg_advisory_xact_lock_shared(hashtextextended($1 || name, 0)) end from unnest($2::text[], $3::text[]) as l (name, mode)`

export class AdvisoryLocks {
  readonly #space: string
  readonly #held = new Map<string, LockMode>()
  readonly #pending = new Map<string, LockMode>()

  /** `space` is a prefix: advisory locks are shared by the whole database, but the names belong to this store only. */
  constructor(space: string) {
    this.#space = space
  }

  require(name: string, mode: LockMode = 'alone'): void {
    const held = this.#held.get(name)
    if (held === 'alone' || held === mode) return
    if (this.#pending.get(name) !== 'alone') this.#pending.set(name, mode)
  }

  isHeld(name: string): boolean {
    return this.#held.has(name)
  }

  resetPass(): void {
    this.#pending.clear()
  }

  get hasPending(): boolean {
    return this.#pending.size > 0
  }

  async load(db: Db): Promise<void> {
    const wanted = [...this.#pending].toSorted(([one], [other]) => (one < other ? -1 : 1))
    this.#pending.clear()
    if (wanted.length === 0) return
    for (const [name, mode] of wanted) this.#held.set(name, mode)
    if (db.readOnly) return
    await db.query(TAKE, [
      this.#space,
      wanted.map(([name]) => escapeText(name)),
      wanted.map(([, mode]) => mode),
    ] satisfies readonly Value[])
  }

  /** `tryExclusive` does not wait. A name that another transaction has locked stays unlocked here; `isHeld` shows it. */
  async tryExclusive(db: Db, names: readonly string[]): Promise<void> {
    const results = await db.query(TRY, [this.#space, names.map(escapeText)])
    for (const [name, isHeld] of results) if (isHeld === true) this.#held.set(text(name), 'alone')
  }
}
