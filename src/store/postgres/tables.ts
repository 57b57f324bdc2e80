// `PostgresTables` holds the tables of the store as one transaction sees them: loaded rows, misses and changes.
import type { Millis } from '../../clock.ts'
import type { EventIdentity, LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { WaitingPlacement, Tables } from '../core/tables.ts'
import { PostgresDocs } from './docs.ts'
import { PostgresEvents } from './events.ts'
import { PostgresLanes } from './lanes.ts'
import { PostgresDeadLetters } from './dead-letters.ts'
import { PostgresLimits } from './limits.ts'
import type { ScanStarts } from './scan-start.ts'
import { AdvisoryLocks } from './locks.ts'
import { PostgresUnrouted } from './unrouted.ts'
import { TransactionCounter } from './counter.ts'
import { PostgresOutbox } from './outbox.ts'
import type { Db, TransactionTable, Statement } from './row-cache.ts'
import { PostgresPlacements } from './placements.ts'
import { PostgresRecords } from './records.ts'
import { PostgresRuns } from './runs.ts'
import { PostgresSmallTables } from './small-tables.ts'
import { number, text } from './values.ts'

const ROUTES = 'routes'
const ROUTES_NOW = 'select routes from meta'
const NOW = 'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
/** Sets the time of the transaction; later statements of the transaction read it. */
const SET_NOW = `select routes, set_config('sluice.at', (${NOW})::text, true)::bigint from meta`

export interface PostgresTablesDependencies {
  readonly name: string
  readonly lockNamespace: string
  /** Undefined to use the server's clock. */
  readonly now: Millis | undefined
  /** Where scans of the deadline index begin, as far as this process knows. */
  readonly scanStarts: ScanStarts
  /** Lanes to lock together with the first ones that the rules read. */
  readonly lockFirst: readonly string[]
}

export class PostgresTables implements Tables {
  readonly name: string
  readonly draw: () => number
  readonly lanes: PostgresLanes
  readonly #locks: AdvisoryLocks
  readonly #scanStarts: ScanStarts
  readonly #counter = new TransactionCounter()
  // Most transactions touch few tables, so each is created on first use.
  #placements: PostgresPlacements | undefined
  #events: PostgresEvents | undefined
  #runs: PostgresRuns | undefined
  #deadLetters: PostgresDeadLetters | undefined
  #unrouted: PostgresUnrouted | undefined
  #limits: PostgresLimits | undefined
  #small: PostgresSmallTables | undefined
  #docs: PostgresDocs | undefined
  #outbox: PostgresOutbox | undefined
  #records: PostgresRecords | undefined
  #now: Millis | undefined
  #routes: number | undefined
  #raised = 0

  constructor(dependencies: PostgresTablesDependencies) {
    const { name, lockFirst, scanStarts, now, lockNamespace } = dependencies
    this.name = name
    this.draw = this.#counter.draw
    const getInlinePlacement = (lane: Lane): WaitingPlacement | undefined => this.placements.getInlinePlacement(lane)
    this.#locks = new AdvisoryLocks(lockNamespace)
    const locks = this.#locks
    this.lanes = new PostgresLanes({
      name,
      now,
      lockFirst,
      scanStarts,
      getInlinePlacement,
      locks,
    })
    this.#scanStarts = scanStarts
    this.#now = now
  }

  get placements(): PostgresPlacements {
    return (this.#placements ??= new PostgresPlacements((lane) => this.lanes.getPosition(lane)))
  }

  get events(): PostgresEvents {
    return (this.#events ??= new PostgresEvents(this.draw))
  }

  get runs(): PostgresRuns {
    return (this.#runs ??= new PostgresRuns(this.name))
  }

  get deadLetters(): PostgresDeadLetters {
    return (this.#deadLetters ??= new PostgresDeadLetters())
  }

  get unrouted(): PostgresUnrouted {
    return (this.#unrouted ??= new PostgresUnrouted())
  }

  get limits(): PostgresLimits {
    return (this.#limits ??= new PostgresLimits(this.#locks))
  }

  get small(): PostgresSmallTables {
    return (this.#small ??= new PostgresSmallTables(this.#locks))
  }

  get docs(): PostgresDocs {
    return (this.#docs ??= new PostgresDocs(this.#locks))
  }

  get outbox(): PostgresOutbox {
    return (this.#outbox ??= new PostgresOutbox(this.#locks))
  }

  get records(): PostgresRecords {
    return (this.#records ??= new PostgresRecords(this.name))
  }

  /** The time of the transaction; undefined before the first load. */
  get now(): Millis | undefined {
    return this.#now
  }

  prefetch(lanes: readonly LaneId[], identities: readonly EventIdentity[]): void {
    for (const lane of lanes) this.lanes.get(lane)
    for (const identity of identities) this.events.findByIdentity(identity)
  }

  hasRoomFor(): boolean {
    return true
  }

  /**
   * A transaction that routes events takes a shared lock on the routes. A transaction that writes documents skips it, because
   * it may be about to change the routes.
   */
  routes(): number {
    if (!this.#locks.isHeld('docs')) this.#locks.require(ROUTES, 'shared')
    return (this.#routes ?? 0) + this.#raised
  }

  raiseRoutes(): void {
    this.#locks.require(ROUTES, 'alone')
    this.#raised++
  }

  /** The tables in the order in which they are loaded and written. */
  get #tables(): readonly TransactionTable[] {
    const all = [
      this.lanes,
      this.#placements,
      this.#events,
      this.#runs,
      this.#deadLetters,
      this.#unrouted,
      this.#limits,
      this.#small,
      this.#docs,
      this.#outbox,
      this.#records,
    ]
    return all.filter((table) => table !== undefined)
  }

  resetPass(): void {
    for (const table of this.#tables) table.resetPass()
    this.#locks.resetPass()
    this.#counter.resetPass()
    this.#raised = 0
  }

  get hasMisses(): boolean {
    return (
      this.#locks.hasPending ||
      this.#now === undefined ||
      this.#routes === undefined ||
      this.#counter.hasMisses ||
      this.#tables.some((table) => table.hasMisses)
    )
  }

  /** `load` locks in the order of all transactions: names, lanes, then what belongs to the lanes. */
  async load(db: Db): Promise<void> {
    const others = this.#tables.filter((table) => table !== this.lanes)
    const isAlone = !this.#locks.hasPending && others.every((table) => !table.hasMisses)
    const mayHaveChanged = this.#routes === undefined || this.#locks.hasPending
    await Promise.all([
      this.#locks.load(db),
      this.lanes.lock(db),
      this.#now === undefined ? this.#readNow(db) : mayHaveChanged ? this.#readRoutes(db) : undefined,
      this.lanes.load(db, isAlone),
      ...others.map((table) => table.load(db)),
      db.readOnly ? undefined : this.#counter.load(db),
    ])
    if (this.#now !== undefined) this.lanes.setNow(this.#now)
  }

  async #readRoutes(db: Db): Promise<void> {
    const [row] = await db.query(ROUTES_NOW)
    this.#routes = number(row?.[0])
  }

  /** `readNow` reads the time of the transaction, after its locks. */
  async #readNow(db: Db): Promise<void> {
    const [[row]] = await Promise.all([db.query(SET_NOW), this.#scanStarts.checkSnapshots(db)])
    this.#routes = number(row?.[0])
    this.#now = number(row?.[1])
    this.#scanStarts.setNow(this.#now)
  }

  buildWrites(): readonly Statement[] {
    const raised: Statement = ['update meta set routes = routes + $1', [this.#raised]]
    return [...(this.#raised > 0 ? [raised] : []), ...this.#tables.flatMap((table) => table.buildWrites())]
  }
}

export async function readStoreName(db: Db): Promise<string> {
  return text((await db.query('select name from meta'))[0]?.[0])
}
