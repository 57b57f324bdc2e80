// The contract over tables: every member is one piece of work in one commit. Each store brings its tables and its commits.
import type { Clock, Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type {
  AppendCall,
  AppendReply,
  BodiesReply,
  CountCall,
  CountReply,
  FeedReply,
  FindCall,
  FindReply,
  GetReply,
  Hint,
  PermitsCall,
  PermitsReply,
  PlaceCall,
  PlaceReply,
  PressureCall,
  PressureReply,
  PurgeCall,
  PurgeReply,
  ReadDocsCall,
  ReadDocsReply,
  RecordKind,
  RegulateCall,
  RegulateReply,
  RenewCall,
  RenewReply,
  Reply,
  ReserveCall,
  ReserveReply,
  StatsReply,
  SteerCall,
  SteerReply,
  Store,
  TurnCall,
  TurnReply,
  UnroutedCall,
  UnroutedReply,
  UpkeepCall,
  UpkeepReply,
  WriteDocsCall,
  WriteDocsReply,
} from '../contract/index.ts'
import { append } from './append.ts'
import { writeDocs } from './docs.ts'
import { Feed } from './feed.ts'
import { renew } from './leases.ts'
import { permits, pressure, regulate, reserve } from './limits.ts'
import { placeItems, unrouted } from './marks.ts'
import { purge } from './purge.ts'
import { steer } from './steer.ts'
import type { Tables } from './tables.ts'
import { settleAndClaim } from './turn.ts'
import { NOTHING_LOOKED_AT, upkeepPiece, type Looked } from './upkeep.ts'
import { Work, type Note } from './work.ts'

/** Reads and writes only the tables it is given, and has no other effect: a store may have it done more than once. */
export type Piece<T> = (tables: Tables, now: Millis) => T

/** Which lanes are looked at: a store may have put off writing the others. */
export type LanesRead = 'all' | 'first of a line' | 'none'

/** How the work of a call becomes durable and atomic. */
export interface Commits {
  /** Does the work in a commit; resolves when it would survive a crash. Work of one moment may share a commit. */
  write<T>(work: Piece<T>): Promise<T>
  /** The same as `write` for what arrives: most of it is new, so that a store may go by that, and begin anew if it is not. */
  writeArrivals?<T>(work: Piece<T>): Promise<T>
  read<T>(work: Piece<T>, lanes: LanesRead): Promise<T>
  /** What every reply carries, without a look at any row. */
  moment(): Promise<Reply>
  close(): Promise<void>
  readonly durable: StatsReply['durable']
  /** To and from other processes; lossy. */
  readonly hints?: {
    send(hints: readonly Hint[]): void
    hear(tell: (hint: Hint) => void): void
  }
  /** Shows what happens here to who looks on in other processes, and what happens there; may leave some out. */
  readonly onlookers?: {
    show(notes: readonly Note[]): void
    seen(): Promise<readonly (Note | 'missed')[]>
  }
}

export class TableStore implements Store {
  readonly #commits: Commits
  readonly #clock: Clock
  readonly #feed = new Feed()
  readonly #ears = new Set<(hint: Hint) => void>()
  #lookedAt: Looked = NOTHING_LOOKED_AT

  constructor(parts: { readonly commits: Commits; readonly clock: Clock }) {
    this.#commits = parts.commits
    this.#clock = parts.clock
  }

  append(call: AppendCall): Promise<AppendReply> {
    return this.#write((work) => {
      // Only arrivals are turned away: what is in the store must still run, for that is how it gets room.
      const bytes = call.events.reduce((sum, event) => sum + event.body.length + event.request.length, 0)
      if (!work.tables.hasRoomFor(bytes)) return new SluiceError('STORE_FULL', 'There is no room within maxBytes.')
      return { results: append(work, call) }
    }, 'arrivals')
  }

  unrouted(call: UnroutedCall): Promise<UnroutedReply> {
    return this.#write((work) => unrouted(work, call))
  }

  place(call: PlaceCall): Promise<PlaceReply> {
    return this.#write((work) => ({ results: placeItems(work, call) }))
  }

  turn(call: TurnCall): Promise<TurnReply> {
    return this.#write((work) => settleAndClaim(work, call))
  }

  renew(call: RenewCall): Promise<RenewReply> {
    return this.#write((work) => ({ results: renew(work, call) }))
  }

  permits(call: PermitsCall): Promise<PermitsReply> {
    return this.#write((work) => ({ granted: permits(work, call) }))
  }

  steer(call: SteerCall): Promise<SteerReply> {
    return this.#write((work) => ({ results: steer(work, call) }))
  }

  purge(call: PurgeCall): Promise<PurgeReply> {
    return this.#write((work) => purge(work, call))
  }

  reserve(call: ReserveCall): Promise<ReserveReply> {
    return this.#write((work) => ({ results: reserve(work, call) }))
  }

  regulate(call: RegulateCall): Promise<RegulateReply> {
    return this.#write((work) => regulate(work, call))
  }

  pressure(call: PressureCall): Promise<PressureReply> {
    return this.#write((work) => ({ levels: pressure(work, call) }))
  }

  async upkeep(call: UpkeepCall): Promise<UpkeepReply> {
    const ends = this.#clock.monotonic() + call.budget
    const did = { events: 0, runs: 0, letters: 0, lanes: 0 }
    for (;;) {
      const piece = await this.#write((work) => upkeepPiece(work, call.policy, this.#lookedAt))
      this.#lookedAt = piece.after
      did.events += piece.did.events
      did.runs += piece.did.runs
      did.letters += piece.did.letters
      did.lanes += piece.did.lanes
      if (!piece.more || this.#clock.monotonic() >= ends)
        return { now: piece.now, routes: piece.routes, did, more: piece.more }
    }
  }

  listen(hear: (hint: Hint) => void): () => void {
    if (this.#ears.size === 0) this.#commits.hints?.hear((hint) => this.#tell(hint))
    this.#ears.add(hear)
    return () => void this.#ears.delete(hear)
  }

  async close(): Promise<void> {
    this.#ears.clear()
    await this.#commits.close()
  }

  readDocs(call: ReadDocsCall): Promise<ReadDocsReply> {
    return this.#read((tables) => {
      if (call.ids !== undefined) {
        return { docs: call.ids.flatMap((id) => tables.docs.get(call.kind, id) ?? []), next: undefined }
      }
      const docs = tables.docs.page(call.kind, call.after, call.n)
      return { docs, next: docs.length < call.n ? undefined : docs.at(-1)?.id }
    }, 'none')
  }

  writeDocs(call: WriteDocsCall): Promise<WriteDocsReply> {
    return this.#write((work) => writeDocs(work, call))
  }

  find<K extends RecordKind>(call: FindCall<K>): Promise<FindReply<K>> {
    return this.#read((tables) => tables.records.find(call))
  }

  get<K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<GetReply<K>> {
    return this.#read((tables) => ({ item: tables.records.get(call.kind, call.id) }))
  }

  count(call: CountCall): Promise<CountReply> {
    return this.#read((tables) => tables.records.count(call))
  }

  stats(): Promise<StatsReply> {
    const { durable } = this.#commits
    return this.#read((tables, now) => ({ ...tables.records.stats(now), durable }), 'first of a line')
  }

  bodies(call: { readonly events: readonly string[] }): Promise<BodiesReply> {
    return this.#read(
      (tables) => ({
        bodies: call.events.map((id) => {
          const event = tables.events.byId(id)
          return event === undefined || event.purgedHash !== '' ? undefined : event.body
        }),
      }),
      'none',
    )
  }

  /** Asked several times a second by whoever watches: it must not make a store put in order what it has put off. */
  async feed(call: { readonly after: number; readonly n: number }): Promise<FeedReply> {
    const { onlookers } = this.#commits
    if (onlookers !== undefined) this.#feed.add(await onlookers.seen())
    return { ...(await this.#commits.moment()), ...this.#feed.after(call.after, call.n) }
  }

  /** An error that is answered, not thrown, has written nothing, and undoes nothing of what shares its commit. */
  async #write<T>(act: (work: Work) => T | SluiceError, what: 'arrivals' | 'changes' = 'changes'): Promise<T & Reply> {
    const piece: Piece<readonly [(T & Reply) | SluiceError, Work]> = (tables, now) => {
      const made = new Work(tables, now)
      const answer = act(made)
      return [answer instanceof SluiceError ? answer : { ...answer, now, routes: tables.routes() }, made]
    }
    const commits = this.#commits
    const [reply, work] =
      what === 'arrivals' && commits.writeArrivals !== undefined
        ? await commits.writeArrivals(piece)
        : await commits.write(piece)
    if (reply instanceof SluiceError) throw reply
    this.#feed.add(work.notes)
    this.#commits.onlookers?.show(work.notes)
    for (const hint of work.hints) this.#tell(hint)
    this.#commits.hints?.send(work.hints)
    return reply
  }

  /** What was stored is stored, whatever a listener makes of the news. */
  #tell(hint: Hint): void {
    for (const hear of this.#ears) {
      try {
        hear(hint)
      } catch {
        // Its own affair: nothing may depend on a hint.
      }
    }
  }

  #read<T>(act: Piece<T>, lanes: LanesRead = 'all'): Promise<T & Reply> {
    return this.#commits.read((tables, now) => ({ ...act(tables, now), now, routes: tables.routes() }), lanes)
  }
}
