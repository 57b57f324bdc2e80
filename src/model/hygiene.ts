// How well a store's server keeps house: rows that are done with, and whoever keeps them from being cleared away.
import type { Millis } from '../clock.ts'

export interface StoreHygiene {
  /** By table: rows that were changed or removed since and still take room, as the server reckons. */
  readonly deadRows: Readonly<Record<string, number>>
  /** Whose view of the data is the oldest; undefined: nobody has one open. */
  readonly oldest: SnapshotHolder | undefined
}

/** While it is open, no row that was there when it began is cleared away, and every search has to pass over them. */
export interface SnapshotHolder {
  readonly kind: 'session' | 'prepared' | 'slot'
  /** Of a session its process id on the server, of the others their names. */
  readonly name: string
  /** What the session calls itself; '' where it does not say. */
  readonly application: string
  readonly user: string
  /** As the server calls it, like `idle in transaction`; '' where it does not say. */
  readonly state: string
  readonly age: Millis
  /** The server does not tell us when it began: it is at least this old, for so long it was seen. */
  readonly isAtLeast: boolean
}

/** Who it is, since when, and what ends it. */
export function holderText(holder: SnapshotHolder): string {
  const { name, age, isAtLeast } = holder
  const long = `${isAtLeast ? 'at least ' : ''}${Math.round(age / 1_000)} s`
  const harm = 'no row that it might see is cleared away, and claims get slower'
  if (holder.kind === 'session') {
    return `${sessionName(holder)} has had a transaction open for ${long}: ${harm}. Commit it, or end it by: select pg_terminate_backend(${name}).`
  }
  if (holder.kind === 'prepared') {
    return `The prepared transaction ${name} has waited for ${long}: ${harm}. End it by: commit prepared ${literal(name)}, or rollback prepared ${literal(name)}.`
  }
  return `The replication slot ${name} has held a snapshot for ${long}: ${harm}. End the long query on its standby; if that is gone: select pg_drop_replication_slot(${literal(name)}).`
}

function sessionName({ name, application, user, state }: SnapshotHolder): string {
  const said = [application && `of ${application}`, user && `by ${user}`, state].filter((part) => part !== '')
  return said.length === 0 ? `Session ${name}` : `Session ${name} (${said.join(', ')})`
}

function literal(name: string): string {
  return `'${name.replaceAll("'", "''")}'`
}
