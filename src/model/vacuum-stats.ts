// `VacuumStats` shows how well a database server removes dead rows, and which session keeps it from doing so.
import type { Millis } from '../clock.ts'

export interface VacuumStats {
  /** By table: changed or removed rows that still take room, as the server estimates. */
  readonly deadRows: Readonly<Record<string, number>>
  /** The oldest open snapshot; undefined if no snapshot is open. */
  readonly oldestSnapshot: SnapshotHolder | undefined
}

/** `SnapshotHolder` has an open snapshot. Meanwhile the server removes no row that existed when it began. */
export interface SnapshotHolder {
  readonly kind: 'session' | 'prepared' | 'slot'
  /** The process id of a session on the server; the name of a prepared transaction or a slot. */
  readonly name: string
  /** The application name of the session; '' if it has none. */
  readonly application: string
  readonly user: string
  /** The server's state, like `idle in transaction`; '' if unknown. */
  readonly state: string
  readonly age: Millis
  /** The server does not report the start. The holder is at least this old, because it has been seen for that long. */
  readonly isMinimumAge: boolean
}

/** `describeSnapshotHolder` returns who holds the snapshot, for how long, and what ends it. */
export function describeSnapshotHolder(holder: SnapshotHolder): string {
  const { name, age, isMinimumAge } = holder
  const long = `${isMinimumAge ? 'at least ' : ''}${Math.round(age / 1_000)} s`
  const harm = 'no row that it might see is cleared away, and claims get slower'
  if (holder.kind === 'session') {
    return `${describeSession(holder)} has had a transaction open for ${long}: ${harm}. Commit it, or end it by: select pg_terminate_backend(${name}).`
  }
  if (holder.kind === 'prepared') {
    return `The prepared transaction ${name} has waited for ${long}: ${harm}. End it by: commit prepared ${quoteLiteral(name)}, or rollback prepared ${quoteLiteral(name)}.`
  }
  return `The replication slot ${name} has held a snapshot for ${long}: ${harm}. End the long query on its standby; if that is gone: select pg_drop_replication_slot(${quoteLiteral(name)}).`
}

function describeSession({ name, application, user, state }: SnapshotHolder): string {
  const details = [application && `of ${application}`, user && `by ${user}`, state].filter((part) => part !== '')
  return details.length === 0 ? `Session ${name}` : `Session ${name} (${details.join(', ')})`
}

function quoteLiteral(name: string): string {
  return `'${name.replaceAll("'", "''")}'`
}
