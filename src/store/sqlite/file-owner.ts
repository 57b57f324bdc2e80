// `FileOwner` records in the file which store may write it. The lock beside the file keeps a second process out, but
// anybody can remove that lock. So each commit checks inside its transaction that this store still owns the file: a
// store that was taken over writes nothing.
import { randomUUID } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'

export class FileOwner {
  readonly #file: string
  readonly #name = randomUUID()
  readonly #owner: StatementSync

  /** The constructor takes over the file. No earlier owner can change what is read after this. */
  constructor(db: DatabaseSync, file: string) {
    this.#file = file
    this.#owner = db.prepare(`select value from meta where name = 'owner'`)
    db.prepare(`insert or replace into meta (name, value) values ('owner', ?)`).run(this.#name)
  }

  /** `assert` throws if another store has taken over the file. Call it inside the transaction that writes. */
  assert(): void {
    if (this.#owner.get()?.['value'] === this.#name) return
    const why = `its lock, ${this.#file}-lock, was removed or does not hold`
    throw new SluiceError('STORE_TAKEN', `Another process has taken over ${this.#file}: ${why}.`)
  }
}
