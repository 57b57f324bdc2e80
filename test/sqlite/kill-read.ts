// Reads the file through its tables and not through the store, so that a bug in the store cannot hide itself here.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

export interface LaneSeen {
  readonly id: string
  /** The lane's own counters. */
  readonly waiting: number
  readonly inRun: number
  /** The events in the lane, running and waiting. */
  readonly events: readonly string[]
}

interface RecordSeen {
  readonly kind: string
  readonly lane: string
  readonly events: readonly string[]
}

interface DeadLetterSeen extends RecordSeen {
  readonly id: string
  readonly reason: string
}

interface PushedSeen {
  readonly row: number
  readonly tail: number
  readonly waiting: number
  readonly events: readonly number[]
}

type Cells = readonly (string | number | null | Uint8Array)[]

export class Look {
  readonly #db: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()

  /** Works beside a process that uses the file, or after one that died, and disturbs neither. */
  constructor(file: string) {
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  }

  close(): void {
    this.#db.close()
  }

  bodyOf(event: string): Uint8Array | undefined {
    return this.#all('select body from events where id = ?', event)[0]?.[0] as Uint8Array | undefined
  }

  eventIds(): readonly string[] {
    return this.#all('select id from events').map(([id]) => String(id))
  }

  lanes(): readonly LaneSeen[] {
    const pushed = this.#pushedBack()
    return this.#all('select row, id, tail, waiting, here, rest from lanes').map(
      ([row, id, tail, waiting, here, rest]) => {
        const later = (pushed.get(Number(row)) ?? []).filter((entry) => entry.tail > Number(tail))
        const lists = this.#all('select rank, list from places where lane = ? order by rank, pos', Number(row))
        const far = lists.flatMap(([rank, list]) => eventsIn(String(list), rank === 0 ? takenIn(String(here)) : -1))
        const run = (JSON.parse(String(rest ?? '{}')) as { run?: { events: number } }).run
        return {
          id: String(id),
          waiting: later.at(-1)?.waiting ?? Number(waiting),
          inRun: run?.events ?? 0,
          events: this.#ids([...far, ...near(String(here)), ...later.flatMap((entry) => entry.events)]),
        }
      },
    )
  }

  /** By row of the lane: the deferred writes that its row does not have yet, in order. */
  #pushedBack(): ReadonlyMap<number, readonly PushedSeen[]> {
    const entries = this.#all('select list from pushed_back order by n').flatMap(([list]) => String(list).split(';'))
    return Map.groupBy(entries.map(pushedIn), (entry) => entry.row)
  }

  deadLetters(): readonly DeadLetterSeen[] {
    return this.#all('select id, reason, lane, places from letters').map(([id, reason, lane, places]) => ({
      id: String(id),
      kind: 'dead',
      reason: String(reason),
      lane: String(lane),
      events: this.#ids((JSON.parse(String(places)) as { event: number }[]).map((place) => place.event)),
    }))
  }

  /** The record of an ended run. */
  record(run: string): RecordSeen | undefined {
    const n = Number.parseInt(run.slice(run.lastIndexOf('-') + 1), 36)
    return this.#all('select kind, lane, events from runs where n = ?', n).map((row) => this.#record(row))[0]
  }

  records(): readonly RecordSeen[] {
    return this.#all('select kind, lane, events from runs').map((row) => this.#record(row))
  }

  /** Runs that could not be found by their lanes: in no list, and too old for a process to look for them. */
  unlisted(): readonly number[] {
    return this.#all(`select n from runs where n < (select value from meta where name = 'listed')
      and not exists (select 1 from lane_runs s where s.lane = runs.lane and s.run = n)`).map(([n]) => Number(n))
  }

  integrity(): string {
    return this.#all('pragma integrity_check').join('; ')
  }

  #record([kind, lane, events]: Cells): RecordSeen {
    const list = String(events)
    return { kind: String(kind), lane: String(lane), events: this.#ids(list === '' ? [] : list.split(',').map(Number)) }
  }

  #ids(rows: readonly number[]): readonly string[] {
    return rows.map((row) => String(this.#all('select id from events where seq = ?', row)[0]?.[0]))
  }

  #all(sql: string, ...values: SQLInputValue[]): readonly Cells[] {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.#db.prepare(sql)
      statement.setReturnArrays(true)
      this.#prepared.set(sql, statement)
    }
    return statement.all(...values) as unknown as readonly Cells[]
  }
}

/** `inspect` opens the file and reads it once. */
export function inspect(file: string, act: (look: Look) => void): void {
  const look = new Look(file)
  try {
    act(look)
  } finally {
    look.close()
  }
}

/** `<how many elsewhere>;<how many here>;<pos>,<event>,<size>,<cap>,…` */
function near(here: string): readonly number[] {
  return eventsIn(here.split(';')[2] ?? '')
}

/** `<row>,<tail>,<waiting>,` five more numbers of the lane, then `<pos>,<event>,<size>,<cap>,…` */
function pushedIn(entry: string): PushedSeen {
  const cells = entry.split(',')
  const [row = 0, tail = 0, waiting = 0] = cells.map(Number)
  return { row, tail, waiting, events: eventsIn(cells.slice(8).join(',')) }
}

/** The events after a position. */
function eventsIn(list: string, after = -1): readonly number[] {
  const cells = list.split(',').map(Number)
  return cells.flatMap((cell, at) => (at % 4 === 1 && (cells[at - 1] ?? 0) > after ? [cell] : []))
}

/** `<elsewhere>/<taken up to>;…`, or `<elsewhere>;…` */
function takenIn(here: string): number {
  return Number(/^\d+\/(\d+);/.exec(here)?.[1] ?? -1)
}
