// The rows that the SQLite and PostgreSQL stores read in the same way. Their tables have the same columns; the stores differ only in
// how a cell holds a value.
import type { AuditRecord, Doc, Receipt } from '../contract/index.ts'
import type { Attempt } from '../../model/lane.ts'
import { INITIAL_LIMIT_STATE, type LimitState } from '../../model/limit.ts'
import { parseSkips } from '../../model/routing.ts'
import type { DeadLetterRow, EventRow, PlacementRow, RunRow, TicketRow, UnroutedRow } from '../core/tables.ts'

export type SqlCell = string | number | boolean | null | Uint8Array | readonly (string | number)[]
export type SqlRow = readonly SqlCell[]

/** `CellReader` reads the cells of a row. */
export interface CellReader {
  readonly text: (cell: SqlCell | undefined) => string
  readonly number: (cell: SqlCell | undefined) => number
  readonly bytes: (cell: SqlCell | undefined) => Uint8Array
  /** A key may contain any character. */
  readonly key: (cell: SqlCell | undefined) => string
  readonly texts: (cell: SqlCell | undefined) => readonly string[]
  readonly numbers: (cell: SqlCell | undefined) => readonly number[]
  readonly placements: (cell: SqlCell | undefined) => readonly PlacementRow[]
}

export const EVENT_COLUMNS = `seq, id, identity, dedupe_until, source, type, time, tenant, subject, attributes, arrived, lanes, skips,
  purged_hash, doomed, request, body`

export function toEventRow({ text, number, bytes, texts }: CellReader, row: SqlRow): EventRow {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    identity: row[2] === null ? '' : text(row[2]),
    dedupeUntil: number(row[3]),
    source: text(row[4]),
    type: text(row[5]),
    time: number(row[6]),
    tenant: text(row[7]),
    subject: text(row[8]),
    attributes: text(row[9]),
    arrived: number(row[10]),
    lanes: texts(row[11]),
    skips: parseSkips(text(row[12])),
    purgedHash: text(row[13]),
    doomed: Boolean(row[14]),
    request: bytes(row[15]),
    body: bytes(row[16]),
  }
}

export function toReceipt({ text, number }: CellReader, row: SqlRow): Receipt {
  return { at: number(row[0]), kind: text(row[1]) as Receipt['kind'], event: text(row[2]), bodyHash: text(row[3]) }
}

export const RUN_COLUMNS =
  'n, parent, lane, flow, key, tenant, kind, reason, started, ended, tries, lapses, events, attempts'

/** `store` is the name of the store, the prefix of its run ids. */
export function toRunRow({ text, number, key, numbers }: CellReader, row: SqlRow, store: string): RunRow {
  return {
    id: `${store}-${number(row[0]).toString(36)}`,
    parent: text(row[1]),
    lane: text(row[2]),
    flow: text(row[3]),
    key: key(row[4]),
    tenant: text(row[5]),
    kind: text(row[6]) as RunRow['kind'],
    reason: text(row[7]),
    started: number(row[8]),
    ended: number(row[9]),
    tries: number(row[10]),
    lapses: number(row[11]),
    events: numbers(row[12]),
    attempts: row[13] === null ? [] : (JSON.parse(text(row[13])) as readonly Attempt[]),
  }
}

export const DEAD_LETTER_COLUMNS =
  'id, ord, lane, flow, key, tenant, grp, parent, state, reason, at, tries, lapses, blocks, places, attempts, replay'

export function toDeadLetterRow({ text, number, key, placements }: CellReader, row: SqlRow): DeadLetterRow {
  return {
    id: text(row[0]),
    order: number(row[1]),
    lane: text(row[2]),
    flow: text(row[3]),
    key: key(row[4]),
    tenant: text(row[5]),
    group: text(row[6]),
    parent: text(row[7]),
    state: text(row[8]) as DeadLetterRow['state'],
    reason: text(row[9]),
    at: number(row[10]),
    tries: number(row[11]),
    lapses: number(row[12]),
    blocks: Boolean(row[13]),
    placements: placements(row[14]),
    attempts: JSON.parse(text(row[15])) as readonly Attempt[],
    replay: text(row[16]),
  }
}

export const UNROUTED_COLUMNS = 'id, event, flow, reason, error, since, due, tries, token'

export function toUnroutedRow({ text, number }: CellReader, row: SqlRow): UnroutedRow {
  return {
    id: number(row[0]),
    event: number(row[1]),
    flow: text(row[2]),
    reason: text(row[3]) as UnroutedRow['reason'],
    error: text(row[4]),
    since: number(row[5]),
    due: number(row[6]),
    tries: number(row[7]),
    token: number(row[8]),
  }
}

export const TICKET_COLUMNS = 'ticket, ord, at, used, limits'

export function toTicketRow({ text, number }: CellReader, row: SqlRow): TicketRow {
  return {
    ticket: text(row[0]),
    order: number(row[1]),
    at: number(row[2]),
    used: Boolean(row[3]),
    limits: JSON.parse(text(row[4])) as TicketRow['limits'],
  }
}

/** A limit that an older release wrote may lack newer fields. */
export function parseLimitState(json: string): LimitState {
  return { ...INITIAL_LIMIT_STATE, ...(JSON.parse(json) as LimitState) }
}

export const DOC_COLUMNS = 'kind, id, rev, body'

export function toDoc({ text, number, bytes }: CellReader, row: SqlRow): Doc {
  return { kind: text(row[0]), id: text(row[1]), rev: number(row[2]), body: bytes(row[3]) }
}

export const AUDIT_COLUMNS = 'id, at, who, what, chain'

export function toAuditRecord({ text, number }: CellReader, row: SqlRow): AuditRecord {
  return { id: number(row[0]), at: number(row[1]), who: text(row[2]), what: text(row[3]), chain: text(row[4]) }
}
