// This file stores permits, pauses, processes, pressure, replays and documents as rows.
import type { Millis } from '../../clock.ts'
import type { Pressure } from '../../model/place.ts'
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable, PauseRow, ProcessRow, SmallTables } from '../core/tables.ts'
import { AUDIT_COLUMNS, DOC_COLUMNS, toAuditRecord, toDoc } from '../sql/rows.ts'
import { number, sqliteCells, text, type Statements } from './statements.ts'

export class SqliteSmallTables implements SmallTables {
  readonly #sql: Statements

  constructor(sql: Statements) {
    this.#sql = sql
  }

  getProcess(id: string): ProcessRow | undefined {
    const row = this.#sql.get('select at, request, answer from processes where id = ?', id)
    return row === undefined ? undefined : { at: number(row[0]), request: number(row[1]), answer: text(row[2]) }
  }

  putProcess(id: string, { at, request, answer }: ProcessRow): void {
    this.#sql.runUnordered(
      'insert or replace into processes (id, at, request, answer) values (?, ?, ?, ?)',
      id,
      at,
      request,
      answer,
    )
  }

  forgetProcesses(before: Millis): void {
    this.#sql.run('delete from processes where at <= ?', before)
  }

  findPermits(name: string): readonly { process: string; n: number; until: Millis }[] {
    return this.#sql
      .all('select process, n, until from permits where name = ?', name)
      .map((row) => ({ process: text(row[0]), n: number(row[1]), until: number(row[2]) }))
  }

  putPermit(name: string, process: string, { n, until }: { readonly n: number; readonly until: Millis }): void {
    this.#sql.run(
      'insert or replace into permits (name, process, n, until) values (?, ?, ?, ?)',
      name,
      process,
      n,
      until,
    )
  }

  removePermit(name: string, process: string): void {
    this.#sql.run('delete from permits where name = ? and process = ?', name, process)
  }

  forgetPermits(before: Millis): void {
    this.#sql.run('delete from permits where until <= ?', before)
  }

  getPause(flow: string): PauseRow | undefined {
    const row = this.#sql.get('select reason, by, since from pauses where flow = ?', flow)
    return row === undefined ? undefined : { reason: text(row[0]), by: text(row[1]), since: number(row[2]) }
  }

  putPause(flow: string, pause: PauseRow | undefined): void {
    if (pause === undefined) this.#sql.run('delete from pauses where flow = ?', flow)
    else {
      const { reason, by, since } = pause
      this.#sql.run(
        'insert or replace into pauses (flow, reason, by, since) values (?, ?, ?, ?)',
        flow,
        reason,
        by,
        since,
      )
    }
  }

  getPressure(flow: string): Pressure | undefined {
    const row = this.#sql.get('select level, at, raised_at from pressure where flow = ?', flow)
    return row === undefined ? undefined : { level: number(row[0]), at: number(row[1]), raisedAt: number(row[2]) }
  }

  putPressure(flow: string, { level, at, raisedAt }: Pressure): void {
    const values = [flow, level, at, raisedAt] as const
    this.#sql.run('insert or replace into pressure (flow, level, at, raised_at) values (?, ?, ?, ?)', ...values)
  }

  markReplayed(replay: string, event: number, now: Millis): boolean {
    const values = [replay, event, now] as const
    return (
      this.#sql.run('insert into replays (replay, event, at) values (?, ?, ?) on conflict do nothing', ...values) === 0
    )
  }

  forgetReplays(before: Millis): void {
    this.#sql.run('delete from replays where at <= ?', before)
  }
}

export class SqliteDocs implements DocTable {
  readonly #sql: Statements

  constructor(sql: Statements) {
    this.#sql = sql
  }

  get(kind: string, id: string): Doc | undefined {
    return this.#sql
      .all(`select ${DOC_COLUMNS} from docs where kind = ? and id = ?`, kind, id)
      .map((row) => toDoc(sqliteCells, row))[0]
  }

  put({ kind, id, rev, body }: Doc): void {
    this.#sql.run(`insert or replace into docs (${DOC_COLUMNS}) values (?, ?, ?, ?)`, kind, id, rev, body)
  }

  remove(kind: string, id: string): void {
    this.#sql.run('delete from docs where kind = ? and id = ?', kind, id)
  }

  page(kind: string, after: string, n: number): readonly Doc[] {
    const page = `select ${DOC_COLUMNS} from docs where kind = ? and id > ? order by id limit ?`
    return this.#sql.all(page, kind, after, n).map((row) => toDoc(sqliteCells, row))
  }

  lastAudit(): AuditRecord | undefined {
    return this.#sql
      .all(`select ${AUDIT_COLUMNS} from audit order by id desc limit 1`)
      .map((row) => toAuditRecord(sqliteCells, row))[0]
  }

  addAudit({ id, at, who, what, chain }: AuditRecord): void {
    this.#sql.run(`insert into audit (${AUDIT_COLUMNS}) values (?, ?, ?, ?, ?)`, id, at, who, what, chain)
  }
}
