// Lanes in a transaction: locked by their ids in one order; those that are claimed are never waited for.
import { NEVER, type Millis } from '../../clock.ts'
import { HEALTHY, isEmpty, type Lane, type Line } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { LaneTable, PlacedEvent, PlaceRow, ReadyQuery } from '../rules/tables.ts'
import type { Beliefs } from './beliefs.ts'
import { GroupTurns } from './group-turns.ts'
import { standingLaneOf, STANDING_COLUMNS } from './lane-rows.ts'
import { byId, laneWrites, type LaneWrite } from './lane-writes.ts'
import type { LineFloors } from './line-floors.ts'
import type { OwnClaims } from './own-claims.ts'
import { deleteBy, Keyed, Questions, type Db, type Part, type Statement } from './part.ts'
import { frontsOf, headsOf, headsThrough, readyLanes, type AskedLine, type Head, type OfLine } from './look-at-lines.ts'
import { byTurn, ReadyLines, SOON, type Found } from './ready-lines.ts'
import { Standings, type Standing } from './standings.ts'
import { number, written, type Row } from './values.ts'

const BY_ID = `select ${STANDING_COLUMNS} from lanes where id = any($1) order by id`
/** Those that are as this process believes are only named: no other write has the number of one. */
const locked = (how: 'for update' | 'for update nowait'): string => `select of_it.*, l.rev
  from (${BY_ID} ${how}) l left join lateral (select l.*) of_it on l.rev not in (select unnest($2::bigint[]))`
const LOCKED = locked('for update')
const NOWAIT = locked('for update nowait')
const STALE = `select ${STANDING_COLUMNS} from lanes where keep_until <= $1 limit $2 for update skip locked`
const CROWDED = `select tenant, count(*) from lanes where flow = $1 and tenant <> '' and waiting > 0 and lease is null
  group by tenant having count(*) > $2`
const OLDEST = `select ${STANDING_COLUMNS} from lanes where flow = $1 and tenant = $2 and waiting > 0 and lease is null
  order by row limit $3 for update skip locked`

type HeadQuestion = [flow: string, line: Line, times: number]

interface LanesParts {
  /** Undefined: it is told when the server has said it. */
  readonly now: Millis | undefined
  /** Locked with the first that are named. */
  readonly first: readonly LaneId[]
  readonly floors: LineFloors
  readonly claims: OwnClaims
  readonly beliefs: Beliefs
  /** The server is not asked. */
  readonly isGuess: boolean
  /** The place that is to be kept with a lane. */
  readonly inRow: (lane: Lane) => PlaceRow | undefined
  /** Is told of events that came along. */
  readonly know: (event: PlacedEvent) => void
}

export class PostgresLanes implements LaneTable, Part {
  readonly #lanes = new Keyed<Lane>()
  readonly #standings = new Standings()
  readonly #ready = new ReadyLines()
  readonly #heads = new Questions<HeadQuestion, Head>()
  readonly #stale = new Questions<[now: Millis, n: number], readonly LaneId[]>()
  readonly #beyond = new Questions<[flow: string, most: number], readonly LaneId[]>()
  readonly #turns: GroupTurns
  readonly #begun = new Set<LaneId>()
  #isLocking = false
  #now: Millis | undefined

  /** All that were named so far. */
  named: readonly LaneId[] = []
  #first: readonly LaneId[]
  readonly #floors: LineFloors
  readonly #claims: OwnClaims

  readonly #beliefs: Beliefs
  readonly #isGuess: boolean
  readonly #inRow: LanesParts['inRow']
  readonly #know: LanesParts['know']
  /** As they were written last. */
  #written: readonly LaneWrite[] = []

  constructor({ now, first, floors, claims, beliefs, isGuess, inRow, know }: LanesParts) {
    this.#now = now
    this.#inRow = inRow
    this.#know = know
    this.#first = first
    this.#floors = floors
    this.#claims = claims
    this.#beliefs = beliefs
    this.#isGuess = isGuess
    this.#turns = new GroupTurns({
      all: () => this.#lanes.values(),
      stored: () => this.#lanes.storedKeys,
      load: (rows) => this.#find(rows),
    })
  }

  /** As the server has it, if it has this very one. */
  stored(lane: Lane): Standing | undefined {
    const standing = this.#standings.stored(lane.id)
    return standing?.lane.row === lane.row ? standing : undefined
  }

  get(id: LaneId): Lane | undefined {
    if (this.#isGuess && !this.#lanes.knows(id)) this.#believe(id, this.#beliefs.lane(id))
    return this.#lanes.get(id)
  }

  /** One that nobody here knows is taken for new. */
  #believe(id: LaneId, standing: Standing | undefined): void {
    this.#lanes.load(id, standing?.lane)
    if (standing !== undefined) this.#standings.believe(standing)
  }

  put(lane: Lane): void {
    this.#lanes.put(lane.id, lane)
  }

  begun(_before: Lane, lane: Lane): void {
    this.#begun.add(lane.id)
    this.put(lane)
  }

  remove(lane: Lane): void {
    this.#lanes.remove(lane.id)
  }

  ready(query: ReadyQuery): readonly Lane[] {
    const { flow, line, now, n } = query
    const known = [...this.#lanes.values()].filter(
      (lane) => lane.flow === flow && lane.line === line && lane.due <= now,
    )
    const first = this.#ready.upTo(query, known.toSorted(byTurn)).slice(0, n)
    if (first.length < n) this.#ready.ask(query)
    return first
  }

  inTurn(query: Parameters<LaneTable['inTurn']>[0]): readonly Lane[] {
    return this.#turns.inTurn(query)
  }

  tookTurn(lane: Lane, turn: number, now: Millis): void {
    this.#turns.tookTurn(lane, turn, now)
  }

  forgetTurns(before: Millis, now: Millis, n: number): number {
    return this.#turns.forget(before, now, n)
  }

  head(flow: string, lines: readonly Line[]): Millis | undefined {
    // Where as many are ready as are asked for, nobody will ask.
    if (this.#claims.isLong(flow) && this.#ready.isAsked(flow)) return undefined
    const own = [...this.#lanes.values()].filter((lane) => lane.flow === flow && lines.includes(lane.line))
    const known = own.reduce((least, lane) => Math.min(least, lane.due), NEVER)
    const due = Math.min(known, ...lines.map((line) => this.#headOf(flow, line)))
    return due === NEVER ? undefined : due
  }

  /** Of those that nobody here has looked at: the others may stand elsewhere by now. */
  #headOf(flow: string, line: Line): Millis {
    let lapses = NEVER
    for (let times = 0; ; times++) {
      const head = this.#heads.ask(flow, line, times)
      if (head === undefined) return NEVER
      lapses = Math.min(lapses, head.lapses)
      const unknown = head.lanes.filter(({ id }) => !this.#lanes.knows(id))
      const { due, isSure } = earliest(unknown)
      if (isSure || head.isAll) return Math.min(due, lapses)
      if (times > 0 && unknown.length > 0) return Math.min(due, lapses, unknown.at(-1)?.rings ?? NEVER)
    }
  }

  stale(now: Millis, n: number): readonly Lane[] {
    const ids = now === SOON ? [] : (this.#stale.ask(now, n) ?? [])
    return this.#of(ids).filter((lane) => isEmpty(lane, now))
  }

  beyond(flow: string, most: number, now: Millis): readonly Lane[] {
    const ids = this.#beyond.ask(flow, most) ?? []
    return this.#of(ids).filter((lane) => lane.run === undefined && lane.window > now)
  }

  #of(ids: readonly LaneId[]): readonly Lane[] {
    return ids.flatMap((id) => this.#lanes.get(id) ?? [])
  }

  again(): void {
    this.#lanes.again()
    this.#begun.clear()
    for (const questions of this.#asked) questions.again()
    this.#turns.again()
  }

  get isLacking(): boolean {
    return this.#lanes.isLacking || this.#asked.some((questions) => questions.isLacking) || this.#turns.isLacking
  }

  get #asked(): readonly Pick<Questions<[], unknown>, 'again' | 'isLacking'>[] {
    return [this.#ready, this.#heads, this.#stale, this.#beyond]
  }

  /** Those that were named. Locked before anything that belongs to them is read. */
  async lock(db: Db): Promise<void> {
    const ids = [...new Set([...this.#lanes.lacking(), ...this.#first])].toSorted()
    this.#first = []
    this.#isLocking = ids.length > 0
    if (ids.length === 0) return
    // Whoever holds lanes and comes back for more is out of the order in which all lock: it waits for nobody.
    const held = this.#lanes.storedKeys
    this.named = [...held, ...ids]
    for (const id of ids) this.#lanes.load(id, undefined)
    if (db.readOnly) this.#load(await db.rows(BY_ID, [ids]))
    else await this.#lock(db, held.length > 0 ? NOWAIT : LOCKED, ids)
  }

  async #lock(db: Db, sql: string, ids: readonly LaneId[]): Promise<void> {
    const believed = new Map<number, Standing>()
    for (const id of ids) {
      const standing = this.#beliefs.lane(id)
      if (standing !== undefined) believed.set(standing.rev, standing)
    }
    const others: Row[] = []
    for (const row of await db.rows(sql, [ids, [...believed.keys()]])) {
      const standing = believed.get(number(row.at(-1)))
      if (standing === undefined) others.push(row)
      else this.#believe(standing.lane.id, standing)
    }
    this.#load(others)
  }

  happened(now: Millis): void {
    this.#now = now
    this.#ready.happened(now)
  }

  /** Those that are found by their deadlines. */
  async load(db: Db): Promise<void> {
    await Promise.all([
      // Before those that are asked for count as answered.
      this.#heads.loadTogether((questions) => this.#findHeads(db, questions)),
      this.#ready.load((queries) => this.#findReady(db, queries)),
      // How many of a group run is known once those are here that this transaction may end.
      this.#isLocking ? undefined : this.#turns.load(db),
      this.#stale.load(async (now, n) => this.#load(await db.rows(STALE, [now, n]))),
      this.#beyond.load(async (flow, most) => {
        const crowded = await db.rows(CROWDED, [written(flow), most])
        const found = crowded.map(([tenant, count]) => db.rows(OLDEST, [written(flow), tenant, number(count) - most]))
        return (await Promise.all(found)).flatMap((rows) => this.#load(rows))
      }),
    ])
  }

  async #findReady(db: Db, queries: readonly ReadyQuery[]): Promise<readonly Found[]> {
    // Ever more at once, where many stand too early.
    const asked = this.#asking(queries, ({ n }) => n + 2 * this.#standings.early)
    const look = { without: this.#lanes.storedKeys, at: this.#now }
    const [found] = await Promise.all([readyLanes(db, asked, look), this.#learnFronts(db, asked)])
    return asked.map(({ flow, line, most }, n) => {
      const { lanes, events } = found[n] ?? { lanes: [], events: [] }
      for (const event of events) this.#know(event)
      const rings = this.#find(lanes).flatMap((id) => this.#standings.stored(id)?.ring ?? [])
      if (line === HEALTHY) this.#claims.found(flow, rings.length === most)
      // In the order in which they stood, though one may have been moved while it was waited for.
      return { last: rings.at(-1), isAll: rings.length < most }
    })
  }

  async #findHeads(db: Db, questions: readonly HeadQuestion[]): Promise<readonly Head[]> {
    const lines = questions.map(([flow, line]) => ({ flow, line }))
    const asked = this.#asking(lines, ({ flow, line }) => this.#ready.asked(flow, line) + 1)
    const look = { without: this.#lanes.knownKeys, at: this.#now }
    if (questions.some(([, , times]) => times > 0)) return headsThrough(db, asked, look)
    const others = asked.filter(({ flow, line }) => this.#ready.asked(flow, line) === 0)
    const [heads] = await Promise.all([headsOf(db, asked, look), this.#learnFronts(db, others)])
    return heads
  }

  #asking<L extends OfLine>(lines: readonly L[], most: (line: L) => number): readonly AskedLine[] {
    return lines.map((one) => {
      const { flow, line } = one
      return { flow, line, from: this.#floors.from(flow, line), most: most(one) }
    })
  }

  async #learnFronts(db: Db, asked: readonly AskedLine[]): Promise<void> {
    if (!this.#floors.areUsed || asked.length === 0) return
    const fronts = await frontsOf(db, asked)
    for (const [n, { flow, line, from }] of asked.entries()) this.#floors.found(flow, line, from, fronts[n])
  }

  #load(rows: readonly Row[]): readonly LaneId[] {
    return rows.map((row) => {
      const lane = standingLaneOf(row)
      this.#lanes.load(lane.id, lane)
      this.#standings.load(lane, row)
      return lane.id
    })
  }

  /** Come upon by where they stand. */
  #find(rows: readonly Row[]): readonly LaneId[] {
    const ids = this.#load(rows)
    for (const id of ids) this.#standings.found(id)
    return ids
  }

  writes(): readonly Statement[] {
    const { kept, removed } = this.#lanes
    const sorted = kept.toSorted(byId)
    const writes = sorted.map((lane) => this.#standings.next(lane, this.#inRow(lane), this.#begun.has(lane.id)))
    this.#floors.written(writes.map(({ standing }) => ({ ...standing.lane, ...standing.ring })))
    this.#written = writes
    const passed = this.#ready.areKnown ? this.#claims.looked() : []
    return [
      ...deleteBy('lanes where id', removed),
      ...laneWrites(writes),
      ...this.#standings.putRight(passed, (id) => this.#lanes.changes.has(id)),
      ...this.#turns.writes(),
    ]
  }

  /** What was written is so: it is committed, or will not have been. */
  teach(): void {
    const beliefs = this.#beliefs
    for (const { standing, stays, begins } of this.#written) {
      beliefs.learn(standing)
      const { id } = standing.lane
      if (begins) this.#claims.begun(id)
      else if (!stays) this.#claims.moved(id)
    }
    for (const id of this.#lanes.removed) {
      beliefs.forget(id)
      this.#claims.moved(id)
    }
  }

  forget(): void {
    for (const { standing } of this.#written) this.#beliefs.forget(standing.lane.id)
  }
}

/** Of lanes in the order in which they stand. Those behind one that does not stand too early are due after it. */
function earliest(lanes: Head['lanes']): { readonly due: Millis; readonly isSure: boolean } {
  let least = NEVER
  for (const { due, rings } of lanes) {
    least = Math.min(least, due)
    if (due === rings) return { due: least, isSure: true }
  }
  return { due: least, isSure: false }
}
