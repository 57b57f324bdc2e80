// The small tables in a transaction: processes, permits, pauses, pressure, replays.
import type { Millis } from '../../clock.ts'
import type { Pressure } from '../../model/pressure.ts'
import type { PauseRow, ProcessRow, SmallTables } from '../rules/tables.ts'
import type { Locks } from './locks.ts'
import { deleteBy, Keyed, upsert, withJson, type Db, type Part, type Statement } from './part.ts'
import { number, text, written, type Row } from './values.ts'

interface Permit {
  readonly name: string
  readonly process: string
  readonly n: number
  readonly until: Millis
}

const PUT_PROCESS = `insert into processes (id, at, request, answer) values ($1, $2, $3, $4)
  on conflict (id) do update set at = excluded.at, request = excluded.request, answer = excluded.answer`
/** Both are asked for by every turn. */
const PROCESSES_AND_PAUSES = `select id, at, request, null, null from processes where id = any($1)
  union all select flow, since, null, reason, by from pauses where flow = any($2)`
const PUT_PERMIT = upsert('permits', ['name', 'process', 'n', 'until'], ['name', 'process'])
const PUT_PAUSE = upsert('pauses', ['flow', 'reason', 'by', 'since'], ['flow'])
const PUT_PRESSURE = upsert('pressure', ['flow', 'level', 'at', 'raised_at'], ['flow'])
const PUT_REPLAY = upsert('replays', ['replay', 'event', 'at'], ['replay', 'event'])

export class PostgresSmall implements SmallTables, Part {
  readonly #locks: Locks
  readonly #processes = new Keyed<ProcessRow>()
  readonly #answers = new Keyed<string>()
  readonly #permits = new Keyed<Permit>()
  readonly #permitNames = new Set<string>()
  readonly #lacksNames = new Set<string>()
  readonly #pauses = new Keyed<PauseRow>()
  readonly #pressure = new Keyed<Pressure>()
  readonly #replays = new Keyed<Millis>()
  #processesBefore: Millis | undefined
  #replaysBefore: Millis | undefined

  constructor(locks: Locks) {
    this.#locks = locks
  }

  /** A request that is repeated while the first one is still under way waits for it. */
  process(id: string): ProcessRow | undefined {
    this.#locks.hold(`process/${id}`)
    return this.#processes.get(id)
  }

  putProcess(id: string, row: ProcessRow): void {
    this.#processes.put(id, row)
  }

  forgetProcesses(before: Millis): void {
    this.#processesBefore = before
  }

  permits(name: string): readonly Permit[] {
    this.#locks.hold(`permits/${name}`)
    if (!this.#permitNames.has(name)) this.#lacksNames.add(name)
    return [...this.#permits.values()].filter((permit) => permit.name === name)
  }

  putPermit(name: string, process: string, { n, until }: { readonly n: number; readonly until: Millis }): void {
    this.#permits.put(JSON.stringify([name, process]), { name, process, n, until })
  }

  removePermit(name: string, process: string): void {
    const key = JSON.stringify([name, process])
    if (this.#permits.knows(key)) this.#permits.remove(key)
  }

  pauseOf(flow: string): PauseRow | undefined {
    return this.#pauses.get(flow)
  }

  putPause(flow: string, pause: PauseRow | undefined): void {
    this.#locks.hold(`pause/${flow}`)
    if (pause === undefined) this.#pauses.remove(flow)
    else this.#pauses.put(flow, pause)
  }

  pressure(flow: string): Pressure | undefined {
    return this.#pressure.get(flow)
  }

  putPressure(flow: string, pressure: Pressure): void {
    this.#pressure.put(flow, pressure)
  }

  /** The event's row is locked by then: two who replay it at once come one after the other. */
  replayedBefore(replay: string, event: number, now: Millis): boolean {
    const key = JSON.stringify([replay, event])
    if (this.#replays.get(key) !== undefined) return true
    this.#replays.put(key, now)
    return false
  }

  forgetReplays(before: Millis): void {
    this.#replaysBefore = before
  }

  again(): void {
    for (const rows of this.#keyed) rows.again()
    this.#lacksNames.clear()
    this.#processesBefore = undefined
    this.#replaysBefore = undefined
  }

  get #keyed(): readonly Pick<Keyed<unknown>, 'again' | 'isLacking'>[] {
    return [this.#processes, this.#answers, this.#permits, this.#pauses, this.#pressure, this.#replays]
  }

  get isLacking(): boolean {
    return this.#keyed.some((rows) => rows.isLacking) || this.#lacksNames.size > 0
  }

  async load(db: Db): Promise<void> {
    const one = async <T>(rows: Keyed<T>, sql: string, read: (row: Row) => T): Promise<void> => {
      const keys = rows.lacking()
      if (keys.length === 0) return
      for (const key of keys) rows.load(key, undefined)
      for (const row of await db.rows(sql, [keys.map(written)])) rows.load(text(row[0]), read(row))
    }
    await Promise.all([
      this.#loadProcessesAndPauses(db),
      one(this.#answers, 'select id, answer from processes where id = any($1)', (row) => String(row[1])),
      one(this.#pressure, 'select flow, level, at, raised_at from pressure where flow = any($1)', (row) => ({
        level: number(row[1]),
        at: number(row[2]),
        raisedAt: number(row[3]),
      })),
      this.#loadPermits(db),
      ...this.#replays.lacking().map(async (key) => {
        const [replay, event] = JSON.parse(key) as [string, number]
        const [row] = await db.rows('select at from replays where replay = $1 and event = $2', [written(replay), event])
        this.#replays.load(key, row === undefined ? undefined : number(row[0]))
      }),
    ])
  }

  async #loadProcessesAndPauses(db: Db): Promise<void> {
    const processes = this.#processes.lacking()
    const pauses = this.#pauses.lacking()
    if (processes.length === 0 && pauses.length === 0) return
    for (const id of processes) this.#processes.load(id, undefined)
    for (const flow of pauses) this.#pauses.load(flow, undefined)
    for (const row of await db.rows(PROCESSES_AND_PAUSES, [processes.map(written), pauses.map(written)])) {
      const [name, since, request, reason, by] = row
      if (request !== null) this.#processes.load(text(name), this.#processOf(row))
      else this.#pauses.load(text(name), { reason: text(reason), by: text(by), since: number(since) })
    }
  }

  /** The answer is as long as a turn has lanes, and wanted only by who repeats a turn. */
  #processOf(row: Row): ProcessRow {
    const answers = this.#answers
    return {
      at: number(row[1]),
      request: number(row[2]),
      get answer() {
        return answers.get(text(row[0])) ?? ''
      },
    }
  }

  async #loadPermits(db: Db): Promise<void> {
    const names = [...this.#lacksNames]
    if (names.length === 0) return
    for (const row of await db.rows('select name, process, n, until from permits where name = any($1)', [
      names.map(written),
    ])) {
      const permit = { name: text(row[0]), process: text(row[1]), n: number(row[2]), until: number(row[3]) }
      this.#permits.load(JSON.stringify([permit.name, permit.process]), permit)
    }
    for (const name of names) this.#permitNames.add(name)
  }

  writes(): readonly Statement[] {
    const processes = [...this.#processes.changes].flatMap(([id, row]): readonly Statement[] =>
      row === undefined ? [] : [[PUT_PROCESS, [written(id), row.at, row.request, row.answer]]],
    )
    const permits = this.#permits.kept.map((permit) => ({
      ...permit,
      name: written(permit.name),
      process: written(permit.process),
    }))
    const pauses = [...this.#pauses.changes].flatMap(([flow, pause]) =>
      pause === undefined
        ? []
        : [{ flow: written(flow), reason: written(pause.reason), by: written(pause.by), since: pause.since }],
    )
    const pressure = [...this.#pressure.changes].flatMap(([flow, row]) =>
      row === undefined ? [] : [{ flow: written(flow), level: row.level, at: row.at, raised_at: row.raisedAt }],
    )
    const replays = [...this.#replays.changes].flatMap(([key, at]) => {
      const [replay, event] = JSON.parse(key) as [string, number]
      return at === undefined ? [] : [{ replay: written(replay), event, at }]
    })
    const givenBack = this.#permits.removed.map((key): Statement => {
      const [name = '', process = ''] = JSON.parse(key) as readonly string[]
      return ['delete from permits where name = $1 and process = $2', [written(name), written(process)]]
    })
    return [
      ...processes,
      ...givenBack,
      ...withJson(PUT_PERMIT, permits),
      ...withJson(PUT_PAUSE, pauses),
      ...deleteBy('pauses where flow', this.#pauses.removed.map(written)),
      ...withJson(PUT_PRESSURE, pressure),
      ...withJson(PUT_REPLAY, replays),
      ...upTo('delete from processes where at <= $1', this.#processesBefore),
      ...upTo('delete from replays where at <= $1', this.#replaysBefore),
    ]
  }
}

function upTo(sql: string, moment: Millis | undefined): readonly Statement[] {
  return moment === undefined ? [] : [[sql, [moment]]]
}
