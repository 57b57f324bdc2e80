// The tables of the store as one transaction has them: what is at hand, what is lacking, and what was changed.
import type { Millis } from '../../clock.ts'
import type { Identity, LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { PlacedEvent, PlaceRow, Tables } from '../rules/tables.ts'
import type { Beliefs } from './beliefs.ts'
import { PostgresDocs } from './docs.ts'
import { PostgresEvents } from './events.ts'
import { PostgresLanes } from './lanes.ts'
import { PostgresLetters } from './letters.ts'
import { PostgresLimits } from './limits.ts'
import type { LineFloors } from './line-floors.ts'
import { Locks } from './locks.ts'
import { PostgresMarks } from './marks.ts'
import { Numbers } from './numbers.ts'
import { PostgresOutbox } from './outbox.ts'
import type { OwnClaims } from './own-claims.ts'
import type { Db, Part, Statement } from './part.ts'
import { PostgresPlaces } from './places.ts'
import { PostgresRecords } from './records.ts'
import { PostgresRuns } from './runs.ts'
import { PostgresSmall } from './small-tables.ts'
import { number, text } from './values.ts'

const ROUTES = 'routes'
const SAME_ROUTES = 'select must_be((select routes from meta), $1)'
const ROUTES_NOW = 'select routes from meta'
const NOW = 'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
/** What comes after it in the transaction goes by this moment. */
const MOMENT = `select routes, set_config('sluice.at', (${NOW})::text, true)::bigint from meta`

interface TransactionTables extends Tables {
  again(): void
  readonly isLacking: boolean
  load(db: Db): Promise<void>
  writes(): readonly Statement[]
  /** The moment of the transaction; undefined before anything was loaded. */
  readonly now: Millis | undefined
}

export interface TableParts {
  readonly name: string
  readonly space: string
  /** Undefined: the server says it. */
  readonly now: Millis | undefined
  /** Where lines begin, as far as this process knows. */
  readonly floors: LineFloors
  readonly claims: OwnClaims
  /** Lanes to be locked with the first that are named. */
  readonly first: readonly string[]
  readonly beliefs: Beliefs
  /** Nothing is asked: what is not believed is lacking, and then there is no guess. */
  readonly isGuess: boolean
}

export class PostgresTables implements TransactionTables {
  readonly name: string
  readonly draw: () => number
  readonly lanes: PostgresLanes
  readonly #isGuess: boolean
  readonly #locks: Locks
  readonly #floors: LineFloors
  readonly #beliefs: Beliefs
  readonly #numbers: Numbers
  // Most transactions touch few of these: each is made when one does.
  #places: PostgresPlaces | undefined
  #events: PostgresEvents | undefined
  #runs: PostgresRuns | undefined
  #letters: PostgresLetters | undefined
  #marks: PostgresMarks | undefined
  #limits: PostgresLimits | undefined
  #small: PostgresSmall | undefined
  #docs: PostgresDocs | undefined
  #outbox: PostgresOutbox | undefined
  #records: PostgresRecords | undefined
  #now: Millis | undefined
  #routes: number | undefined
  #raised = 0

  constructor(parts: TableParts) {
    const { name, first, floors, claims, beliefs, isGuess, now, space } = parts
    this.name = name
    this.#isGuess = isGuess
    this.#beliefs = beliefs
    this.#numbers = new Numbers(beliefs.reserve, isGuess)
    this.draw = this.#numbers.draw
    const inRow = (lane: Lane): PlaceRow | undefined => this.places.inRow(lane)
    const know = (event: PlacedEvent): void => this.events.know(event)
    this.lanes = new PostgresLanes({ now, first, floors, claims, beliefs, isGuess, inRow, know })
    if (isGuess) this.#routes = beliefs.routes
    this.#floors = floors
    this.#now = now
    this.#locks = new Locks(space)
  }

  get places(): PostgresPlaces {
    return (this.#places ??= new PostgresPlaces((lane) => this.lanes.stored(lane)))
  }

  get events(): PostgresEvents {
    return (this.#events ??= new PostgresEvents(this.draw, this.#isGuess))
  }

  get runs(): PostgresRuns {
    return (this.#runs ??= new PostgresRuns(this.name))
  }

  get letters(): PostgresLetters {
    return (this.#letters ??= new PostgresLetters())
  }

  get marks(): PostgresMarks {
    return (this.#marks ??= new PostgresMarks())
  }

  get limits(): PostgresLimits {
    return (this.#limits ??= new PostgresLimits(this.#locks))
  }

  get small(): PostgresSmall {
    return (this.#small ??= new PostgresSmall(this.#locks))
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

  get now(): Millis | undefined {
    return this.#now
  }

  expect(lanes: readonly LaneId[], identities: readonly Identity[]): void {
    for (const lane of lanes) this.lanes.get(lane)
    for (const identity of identities) this.events.byIdentity(identity)
  }

  hasRoomFor(): boolean {
    return true
  }

  /** Who stores by the routes keeps them still; who writes documents may be about to change them. */
  routes(): number {
    if (!this.#locks.holds('docs')) this.#locks.hold(ROUTES, 'shared')
    return (this.#routes ?? 0) + this.#raised
  }

  raiseRoutes(): void {
    this.#locks.hold(ROUTES, 'alone')
    this.#raised++
  }

  /** In the order in which they are loaded and written. */
  get #parts(): readonly Part[] {
    const all = [
      this.lanes,
      this.#places,
      this.#events,
      this.#runs,
      this.#letters,
      this.#marks,
      this.#limits,
      this.#small,
      this.#docs,
      this.#outbox,
      this.#records,
    ]
    return all.filter((part) => part !== undefined)
  }

  again(): void {
    for (const part of this.#parts) part.again()
    this.#locks.again()
    this.#numbers.again()
    this.#raised = 0
  }

  get isLacking(): boolean {
    return this.#locks.isLacking || this.cannotBeGuessed
  }

  /** Locks can be taken with the guess. */
  get cannotBeGuessed(): boolean {
    return (
      this.#now === undefined ||
      this.#routes === undefined ||
      this.#numbers.isLacking ||
      this.#parts.some((part) => part.isLacking)
    )
  }

  /** In the one order in which all transactions lock: names, lanes, then what belongs to them. */
  async load(db: Db): Promise<void> {
    const mayBeOthers = this.#routes === undefined || this.#locks.isLacking
    await Promise.all([
      this.#locks.load(db),
      this.lanes.lock(db),
      this.#now === undefined ? this.#begin(db) : mayBeOthers ? this.#readRoutes(db) : undefined,
      ...this.#parts.map((part) => part.load(db)),
      db.readOnly ? undefined : this.#numbers.load(db),
    ])
    if (this.#now !== undefined) this.lanes.happened(this.#now)
  }

  async #readRoutes(db: Db): Promise<void> {
    const [row] = await db.rows(ROUTES_NOW)
    this.#routes = number(row?.[0])
  }

  /** The moment of the transaction: after its locks. */
  async #begin(db: Db): Promise<void> {
    const [[row]] = await Promise.all([db.rows(MOMENT), this.#floors.look(db)])
    this.#routes = number(row?.[0])
    this.#now = number(row?.[1])
    this.#floors.happened(this.#now)
    this.#beliefs.happened(this.#now)
  }

  /** All that was guessed, for the server to refuse. */
  async send(db: Db, writes: readonly Statement[]): Promise<void> {
    await Promise.all([
      this.#locks.load(db),
      db.rows(SAME_ROUTES, [this.#routes]),
      ...writes.map(([sql, values]) => db.rows(sql, values)),
      db.rows(NOW).then(([row]) => this.#beliefs.happened(number(row?.[0]))),
      this.#numbers.load(db),
    ])
  }

  /** What was decided here is what the process believes from now on. */
  teach(): void {
    this.#numbers.giveBack()
    this.lanes.teach()
    if (this.#routes !== undefined) this.#beliefs.routes = this.#routes + this.#raised
  }

  writes(): readonly Statement[] {
    const raised: Statement = ['update meta set routes = routes + $1', [this.#raised]]
    return [...(this.#raised > 0 ? [raised] : []), ...this.#parts.flatMap((part) => part.writes())]
  }
}

export async function nameOf(db: Db): Promise<string> {
  return text((await db.rows('select name from meta'))[0]?.[0])
}
