// `PostgresSmallTables` holds the small tables of a transaction: processes, permits, pauses, adaptive windows (`pressure`) and
// replays.
import type { Millis } from '../../clock.ts'
import type { Pressure } from '../../model/place.ts'
import type { PauseRow, ProcessRow, SmallTables } from '../core/tables.ts'
import type { AdvisoryLocks } from './locks.ts'
import {
  bindJson,
  buildDelete,
  buildUpsert,
  CachedTable,
  QueryCache,
  RowCache,
  type Db,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { number, text, escapeText, type Row } from './values.ts'

interface PermitRow {
  readonly name: string
  readonly process: string
  readonly n: number
  readonly until: Millis
}

const PUT_PROCESS = `insert into processes (id, at, request, answer) values ($1, $2, $3, $4)
  on conflict (id) do update set at = excluded.at, request = excluded.request, answer = excluded.answer`
/** Every settle-and-claim call reads both tables, so one statement does. */
const PROCESSES_AND_PAUSES = `select id, at, request, null, null from processes where id = any($1)
  union all select flow, since, null, reason, by from pauses where flow = any($2)`
const ANSWERS = 'select id, answer from processes where id = any($1)'
const PERMITS = 'select name, process, n, until from permits where name = any($1)'
const PUT_PERMIT = buildUpsert('permits', 'name, process, n, until', 'name, process')
/** A process that is renewing a permit at this time keeps it: the delete skips locked rows. */
const FORGET_PERMITS = `delete from permits where (name, process) in
  (select name, process from permits where until <= $1 for update skip locked)`
const PUT_PAUSE = buildUpsert('pauses', 'flow, reason, by, since', 'flow')
const PRESSURE = 'select flow, level, at, raised_at from pressure where flow = any($1)'
const PUT_PRESSURE = buildUpsert('pressure', 'flow, level, at, raised_at', 'flow')
const REPLAYS = `select r.replay, r.event, r.at from replays r join unnest($1::text[], $2::bigint[]) as w (replay, event)
  on r.replay = w.replay and r.event = w.event`
const PUT_REPLAY = buildUpsert('replays', 'replay, event, at', 'replay, event')

export class PostgresSmallTables extends CachedTable implements SmallTables {
  readonly #locks: AdvisoryLocks
  readonly #processes = new RowCache<ProcessRow>()
  readonly #answers = new RowCache<string>(async (db, ids) => {
    const rows = await db.query(ANSWERS, [ids.map(escapeText)])
    return rows.map(([id, answer]) => [text(id), String(answer)])
  })
  readonly #permits = new RowCache<PermitRow>()
  /** The names whose permits are all loaded. */
  readonly #permitNames = new QueryCache<[name: string], true>(async (db, names) => {
    const rows = await db.query(PERMITS, [names.map(([name]) => escapeText(name))])
    const permits = rows.map((row) => ({
      name: text(row[0]),
      process: text(row[1]),
      n: number(row[2]),
      until: number(row[3]),
    }))
    this.#permits.addLoaded(permits.map((permit) => [permitKey(permit.name, permit.process), permit]))
    return names.map(() => true)
  })
  readonly #pauses = new RowCache<PauseRow>()
  readonly #pressure = new RowCache<Pressure>(async (db, flows) => {
    const rows = await db.query(PRESSURE, [flows.map(escapeText)])
    return rows.map((row) => [text(row[0]), { level: number(row[1]), at: number(row[2]), raisedAt: number(row[3]) }])
  })
  readonly #replays = new RowCache<Millis>(async (db, keys) => {
    const replays = keys.map(parseReplayKey)
    const rows = await db.query(REPLAYS, [replays.map(([name]) => escapeText(name)), replays.map(([, event]) => event)])
    return rows.map((row) => [replayKey(text(row[0]), number(row[1])), number(row[2])])
  })
  protected readonly caches: readonly TransactionCache[] = [
    this.#processes,
    this.#pauses,
    this.#answers,
    this.#pressure,
    this.#permits,
    this.#permitNames,
    this.#replays,
  ]
  #processesBefore: Millis | undefined
  #permitsBefore: Millis | undefined
  #replaysBefore: Millis | undefined

  constructor(locks: AdvisoryLocks) {
    super()
    this.#locks = locks
  }

  /** A repeated request waits for the lock while the first one is still running. */
  getProcess(id: string): ProcessRow | undefined {
    this.#locks.require(`process/${id}`)
    return this.#processes.get(id)
  }

  putProcess(id: string, row: ProcessRow): void {
    this.#processes.put(id, row)
  }

  forgetProcesses(before: Millis): void {
    this.#processesBefore = before
  }

  findPermits(name: string): readonly PermitRow[] {
    this.#locks.require(`permits/${name}`)
    this.#permitNames.get(name)
    return [...this.#permits.values()].filter((permit) => permit.name === name)
  }

  putPermit(name: string, process: string, { n, until }: { readonly n: number; readonly until: Millis }): void {
    this.#permits.put(permitKey(name, process), { name, process, n, until })
  }

  removePermit(name: string, process: string): void {
    const key = permitKey(name, process)
    if (this.#permits.isLoaded(key)) this.#permits.remove(key)
  }

  forgetPermits(before: Millis): void {
    this.#permitsBefore = before
  }

  getPause(flow: string): PauseRow | undefined {
    return this.#pauses.get(flow)
  }

  putPause(flow: string, pause: PauseRow | undefined): void {
    this.#locks.require(`pause/${flow}`)
    if (pause === undefined) this.#pauses.remove(flow)
    else this.#pauses.put(flow, pause)
  }

  getPressure(flow: string): Pressure | undefined {
    return this.#pressure.get(flow)
  }

  putPressure(flow: string, pressure: Pressure): void {
    this.#pressure.put(flow, pressure)
  }

  /** The event's row is already locked, so two replays of the same event run one after the other. */
  markReplayed(replay: string, event: number, now: Millis): boolean {
    const key = replayKey(replay, event)
    if (this.#replays.get(key) !== undefined) return true
    this.#replays.put(key, now)
    return false
  }

  forgetReplays(before: Millis): void {
    this.#replaysBefore = before
  }

  override resetPass(): void {
    super.resetPass()
    this.#processesBefore = undefined
    this.#permitsBefore = undefined
    this.#replaysBefore = undefined
  }

  override load(db: Db): Promise<unknown> {
    return Promise.all([this.#loadProcessesAndPauses(db), super.load(db)])
  }

  async #loadProcessesAndPauses(db: Db): Promise<void> {
    const processes = this.#processes.takeMisses()
    const pauses = this.#pauses.takeMisses()
    if (processes.length === 0 && pauses.length === 0) return
    for (const id of processes) this.#processes.setLoaded(id, undefined)
    for (const flow of pauses) this.#pauses.setLoaded(flow, undefined)
    for (const row of await db.query(PROCESSES_AND_PAUSES, [processes.map(escapeText), pauses.map(escapeText)])) {
      const [name, since, request, reason, by] = row
      if (request !== null) this.#processes.setLoaded(text(name), this.#toProcessRow(row))
      else this.#pauses.setLoaded(text(name), { reason: text(reason), by: text(by), since: number(since) })
    }
  }

  /**
   * The stored reply grows with the number of lanes in the call, and only a repeated call needs it. So it is loaded on first
   * access.
   */
  #toProcessRow(row: Row): ProcessRow {
    const answers = this.#answers
    return {
      at: number(row[1]),
      request: number(row[2]),
      get answer() {
        return answers.get(text(row[0])) ?? ''
      },
    }
  }

  buildWrites(): readonly Statement[] {
    const processes = [...this.#processes.changes].flatMap(([id, row]): readonly Statement[] =>
      row === undefined ? [] : [[PUT_PROCESS, [escapeText(id), row.at, row.request, row.answer]]],
    )
    const permits = this.#permits.changedRows.map((permit) => ({
      ...permit,
      name: escapeText(permit.name),
      process: escapeText(permit.process),
    }))
    const pauses = [...this.#pauses.changes].flatMap(([flow, pause]) =>
      pause === undefined
        ? []
        : [{ flow: escapeText(flow), reason: escapeText(pause.reason), by: escapeText(pause.by), since: pause.since }],
    )
    const pressure = [...this.#pressure.changes].flatMap(([flow, row]) =>
      row === undefined ? [] : [{ flow: escapeText(flow), level: row.level, at: row.at, raised_at: row.raisedAt }],
    )
    const replays = [...this.#replays.changes].flatMap(([key, at]) => {
      const [replay, event] = parseReplayKey(key)
      return at === undefined ? [] : [{ replay: escapeText(replay), event, at }]
    })
    const givenBack = this.#permits.removedKeys.map((key): Statement => {
      const [name = '', process = ''] = JSON.parse(key) as readonly string[]
      return ['delete from permits where name = $1 and process = $2', [escapeText(name), escapeText(process)]]
    })
    return [
      ...processes,
      ...givenBack,
      ...bindJson(PUT_PERMIT, permits),
      ...bindJson(PUT_PAUSE, pauses),
      ...buildDelete('pauses where flow', this.#pauses.removedKeys.map(escapeText)),
      ...bindJson(PUT_PRESSURE, pressure),
      ...bindJson(PUT_REPLAY, replays),
      ...buildDeleteUpTo('delete from processes where at <= $1', this.#processesBefore),
      ...buildDeleteUpTo(FORGET_PERMITS, this.#permitsBefore),
      ...buildDeleteUpTo('delete from replays where at <= $1', this.#replaysBefore),
    ]
  }
}

function buildDeleteUpTo(sql: string, before: Millis | undefined): readonly Statement[] {
  return before === undefined ? [] : [[sql, [before]]]
}

function permitKey(name: string, process: string): string {
  return JSON.stringify([name, process])
}

function replayKey(replay: string, event: number): string {
  return JSON.stringify([replay, event])
}

function parseReplayKey(key: string): readonly [replay: string, event: number] {
  return JSON.parse(key) as [string, number]
}
