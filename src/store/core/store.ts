// `TableStore` implements the store contract over tables: each method is one commit. Each store brings its tables and its
// `Committer`.
import type { Clock, Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import { isCursor } from '../contract/records.ts'
import type * as contract from '../contract/index.ts'
import type { FeedEntry, Hint, RecordKind, Reply, StatsReply, Store } from '../contract/index.ts'
import { appendEvents } from './append.ts'
import { writeDocs } from './docs.ts'
import { renewLeases } from './leases.ts'
import { leasePermits, updatePressure, regulate, reserve } from './limits.ts'
import { placeItems, claimUnrouted } from './unrouted.ts'
import { purge } from './purge.ts'
import { steer } from './steer.ts'
import type { Tables } from './tables.ts'
import { settleAndClaim } from './settle-and-claim.ts'
import { INITIAL_CURSORS, maintainBatch, type ScanCursors } from './maintain.ts'
import { CommitContext, type NewFeedEntry } from './commit-context.ts'

/** `TransactionBody` only reads and writes the given tables and has no other effect, so a store may run it more than once. */
export type TransactionBody<T> = (tables: Tables, now: Millis) => T

/** `LaneReadScope` says which lanes a read visits. A store may have deferred writes of the other lanes. */
export type LaneReadScope = 'all' | 'first of a queue' | 'none'

/** `DirectResult` is what a call results in besides its writes. */
export interface DirectResult<R> {
  readonly reply: R
  readonly feedEntries: readonly NewFeedEntry[]
  readonly hints: readonly Hint[]
}

/**
 * `DirectCalls` decides calls without the rules. Each returns undefined, and has changed nothing, if only the rules can decide the
 * call.
 */
export interface DirectCalls {
  append(call: contract.AppendCall): Promise<DirectResult<contract.AppendReply> | undefined>
  settleAndClaim(call: contract.SettleAndClaimCall): Promise<DirectResult<contract.SettleAndClaimReply> | undefined>
  /** Whether the settlement needs no rules, as far as the process knows. */
  isPlain(settlement: contract.Settlement): boolean
  /** Remembers the runs that a call has claimed by the rules. */
  noteClaimed(leases: readonly contract.LeasedRun[]): void
  /** Forgets runs that have ended, or that only the rules can settle. */
  forgetRuns(runs: readonly { readonly token: number }[]): void
}

/** `Committer` makes the work of a call durable and atomic. */
export interface Committer {
  /** Runs `work` in a commit, and resolves when the result would survive a crash. Calls of the same time may share a commit. */
  write<T>(work: TransactionBody<T>): Promise<T>
  /** Like `write`, for arriving events. A store that is full rejects only these, and may assume that most of them are new. */
  writeArrivals?<T>(work: TransactionBody<T>): Promise<T>
  /** The calls that the store may decide without the rules. */
  readonly direct?: DirectCalls
  read<T>(work: TransactionBody<T>, lanes: LaneReadScope): Promise<T>
  /** Returns what every reply carries, without reading a row. */
  readClockAndEpoch(): Promise<Reply>
  close(): Promise<void>
  readonly durable: StatsReply['durable']
  /** Sends hints to other processes and receives their hints. Hints may get lost. */
  readonly hints?: {
    send(hints: readonly Hint[]): void
    listen(listener: (hint: Hint) => void): void
  }
  /** Exchanges feed entries with processes that have live views open. It may leave some out. */
  readonly activityFeed?: {
    publish(notes: readonly NewFeedEntry[]): void
    readOthers(): Promise<readonly (NewFeedEntry | 'missed')[]>
  }
}

export class TableStore implements Store {
  readonly #committer: Committer
  readonly #clock: Clock
  readonly #feed = new ChangeFeed()
  readonly #listeners = new Set<(hint: Hint) => void>()
  #cursors: ScanCursors = INITIAL_CURSORS

  constructor(parts: { readonly commits: Committer; readonly clock: Clock }) {
    this.#committer = parts.commits
    this.#clock = parts.clock
  }

  append(call: contract.AppendCall): Promise<contract.AppendReply> {
    const { direct } = this.#committer
    return direct === undefined ? this.#appendByRules(call) : this.#appendDirectly(direct, call)
  }

  async #appendDirectly(direct: DirectCalls, call: contract.AppendCall): Promise<contract.AppendReply> {
    const result = await direct.append(call)
    return result === undefined ? this.#appendByRules(call) : this.#announce(result)
  }

  #appendByRules(call: contract.AppendCall): Promise<contract.AppendReply> {
    return this.#write((work) => {
      // Only arriving events are rejected. Stored events must still run, because their completion is how the store gets room.
      const bytes = call.events.reduce((sum, event) => sum + event.body.length + event.request.length, 0)
      if (!work.tables.hasRoomFor(bytes)) return noRoom()
      return { results: appendEvents(work, call) }
    }, 'arrivals')
  }

  claimUnrouted(call: contract.ClaimUnroutedCall): Promise<contract.ClaimUnroutedReply> {
    return this.#write((work) => claimUnrouted(work, call))
  }

  place(call: contract.PlaceCall): Promise<contract.PlaceReply> {
    return this.#write((work) => ({ results: placeItems(work, call) }))
  }

  settleAndClaim(call: contract.SettleAndClaimCall): Promise<contract.SettleAndClaimReply> {
    const { direct } = this.#committer
    return direct === undefined ? this.#settleAndClaimByRules(call) : this.#settleAndClaimInParts(direct, call)
  }

  #settleAndClaimByRules(call: contract.SettleAndClaimCall): Promise<contract.SettleAndClaimReply> {
    return this.#write((work) => settleAndClaim(work, call))
  }

  /** A few settlements that need the rules must not slow down the others, so they are a call of their own. */
  async #settleAndClaimInParts(
    direct: DirectCalls,
    call: contract.SettleAndClaimCall,
  ): Promise<contract.SettleAndClaimReply> {
    const isPlain = call.settle.map((one) => direct.isPlain(one))
    if (isPlain.every((one) => one === isPlain[0]) || hasRepeatedLane(call))
      return this.#settleAndClaimDirectly(direct, call)
    const of = (which: boolean): typeof call.settle => call.settle.filter((_, at) => isPlain[at] === which)
    const byRules = { ...call, process: `${call.process}/rules`, settle: of(false), claim: [] }
    const [rare, plain] = [
      await this.#settleAndClaimDirectly(direct, byRules),
      await this.#settleAndClaimDirectly(direct, { ...call, settle: of(true) }),
    ]
    return mergeReplies(isPlain, rare, plain)
  }

  async #settleAndClaimDirectly(
    direct: DirectCalls,
    call: contract.SettleAndClaimCall,
  ): Promise<contract.SettleAndClaimReply> {
    const result = await direct.settleAndClaim(call)
    if (result !== undefined) return this.#announce(result)
    const reply = await this.#settleAndClaimByRules(call)
    direct.forgetRuns(call.settle)
    direct.noteClaimed(reply.claimed)
    return reply
  }

  renew(call: contract.RenewCall): Promise<contract.RenewReply> {
    this.#committer.direct?.forgetRuns(call.runs.filter(({ commit }) => commit))
    return this.#write((work) => ({ results: renewLeases(work, call) }))
  }

  leasePermits(call: contract.LeasePermitsCall): Promise<contract.LeasePermitsReply> {
    return this.#write((work) => ({ granted: leasePermits(work, call) }))
  }

  steer(call: contract.SteerCall): Promise<contract.SteerReply> {
    return this.#write((work) => ({ results: steer(work, call) }))
  }

  purge(call: contract.PurgeCall): Promise<contract.PurgeReply> {
    return this.#write((work) => purge(work, call))
  }

  reserve(call: contract.ReserveCall): Promise<contract.ReserveReply> {
    return this.#write((work) => ({ results: reserve(work, call) }))
  }

  regulate(call: contract.RegulateCall): Promise<contract.RegulateReply> {
    return this.#write((work) => regulate(work, call))
  }

  updatePressure(call: contract.UpdatePressureCall): Promise<contract.UpdatePressureReply> {
    return this.#write((work) => ({ levels: updatePressure(work, call) }))
  }

  async maintain(call: contract.MaintainCall): Promise<contract.MaintainReply> {
    const ends = this.#clock.monotonic() + call.budget
    const did = { events: 0, runs: 0, deadLetters: 0, lanes: 0 }
    for (;;) {
      const piece = await this.#write((work) => maintainBatch(work, call.policy, this.#cursors))
      this.#cursors = piece.cursors
      did.events += piece.counts.events
      did.runs += piece.counts.runs
      did.deadLetters += piece.counts.deadLetters
      did.lanes += piece.counts.lanes
      if (!piece.more || this.#clock.monotonic() >= ends)
        return { now: piece.now, routes: piece.routes, counts: did, more: piece.more }
    }
  }

  listen(listener: (hint: Hint) => void): () => void {
    if (this.#listeners.size === 0) this.#committer.hints?.listen((hint) => this.#emitHint(hint))
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    await this.#committer.close()
  }

  readDocs(call: contract.ReadDocsCall): Promise<contract.ReadDocsReply> {
    return this.#read((tables) => {
      if (call.ids !== undefined) {
        return { docs: call.ids.flatMap((id) => tables.docs.get(call.kind, id) ?? []), next: undefined }
      }
      const docs = tables.docs.page(call.kind, call.after, call.n)
      return { docs, next: docs.length < call.n ? undefined : docs.at(-1)?.id }
    }, 'none')
  }

  writeDocs(call: contract.WriteDocsCall): Promise<contract.WriteDocsReply> {
    return this.#write((work) => writeDocs(work, call))
  }

  find<K extends RecordKind>(call: contract.FindCall<K>): Promise<contract.FindReply<K>> {
    if (!isCursor(call.cursor)) return Promise.reject(wrongCursor())
    return this.#read((tables) => tables.records.find(call))
  }

  get<K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<contract.GetReply<K>> {
    return this.#read((tables) => ({ item: tables.records.get(call.kind, call.id) }))
  }

  count(call: contract.CountCall): Promise<contract.CountReply> {
    if (!isCursor(call.cursor)) return Promise.reject(wrongCursor())
    return this.#read((tables) => tables.records.count(call))
  }

  stats(): Promise<StatsReply> {
    const { durable } = this.#committer
    return this.#read((tables, now) => ({ ...tables.records.stats(now), durable }), 'first of a queue')
  }

  readBodies(call: { readonly events: readonly string[] }): Promise<contract.ReadBodiesReply> {
    return this.#read(
      (tables) => ({
        bodies: call.events.map((id) => {
          const event = tables.events.findById(id)
          return event === undefined || event.purgedHash !== '' ? undefined : event.body
        }),
      }),
      'none',
    )
  }

  /** `readFeed` is called several times a second by live views, so it must not force a store to flush deferred writes. */
  async readFeed(call: { readonly after: number; readonly n: number }): Promise<contract.ReadFeedReply> {
    const { activityFeed: onlookers } = this.#committer
    if (onlookers !== undefined) this.#feed.add(await onlookers.readOthers())
    return { ...(await this.#committer.readClockAndEpoch()), ...this.#feed.readAfter(call.after, call.n) }
  }

  /**
   * Runs `act` in a commit. An error that `act` returns, instead of throwing it, has written nothing, and undoes nothing in the
   * same commit.
   */
  async #write<T>(
    act: (work: CommitContext) => T | SluiceError,
    what: 'arrivals' | 'changes' = 'changes',
  ): Promise<T & Reply> {
    const piece: TransactionBody<readonly [(T & Reply) | SluiceError, CommitContext]> = (tables, now) => {
      const context = new CommitContext(tables, now)
      const result = act(context)
      return [result instanceof SluiceError ? result : { ...result, now, routes: tables.routes() }, context]
    }
    const commits = this.#committer
    const [reply, work] =
      what === 'arrivals' && commits.writeArrivals !== undefined
        ? await commits.writeArrivals(piece)
        : await commits.write(piece)
    if (reply instanceof SluiceError) throw reply
    return this.#announce({ reply, feedEntries: work.feedEntries, hints: work.hints })
  }

  /** Shows what was written to live views and listeners. */
  #announce<R>({ reply, feedEntries, hints }: DirectResult<R>): R {
    this.#feed.add(feedEntries)
    this.#committer.activityFeed?.publish(feedEntries)
    for (const hint of hints) this.#emitHint(hint)
    this.#committer.hints?.send(hints)
    return reply
  }

  /** A failing listener must not undo what is stored. */
  #emitHint(hint: Hint): void {
    for (const listener of this.#listeners) {
      try {
        listener(hint)
      } catch {
        // The listener handles its own errors: nothing may depend on a hint.
      }
    }
  }

  #read<T>(act: TransactionBody<T>, lanes: LaneReadScope = 'all'): Promise<T & Reply> {
    return this.#committer.read((tables, now) => ({ ...act(tables, now), now, routes: tables.routes() }), lanes)
  }
}

/** Of two settlements of one lane, the first counts: their order must stay. */
function hasRepeatedLane({ settle }: contract.SettleAndClaimCall): boolean {
  return new Set(settle.map(({ lane }) => lane)).size < settle.length
}

/** `mergeReplies` returns the reply to a call that was made in two parts. */
function mergeReplies(
  isPlain: readonly boolean[],
  rare: contract.SettleAndClaimReply,
  plain: contract.SettleAndClaimReply,
): contract.SettleAndClaimReply {
  const [ofRare, ofPlain] = [rare.settled.values(), plain.settled.values()]
  const settled = isPlain.map((one) => (one ? ofPlain : ofRare).next().value ?? 'lost')
  const places = isPlain.flatMap((one, at) => (one ? [] : at))
  const unstored = rare.unstored.map((one) => ({ ...one, settle: places[one.settle] ?? 0 }))
  return { ...plain, settled, unstored }
}

/** The cursor may come from an untrusted caller. Without this check, a database server would fail on it and expose its error text. */
function wrongCursor(): SluiceError {
  return new SluiceError('REQUEST_INVALID', 'cursor must be the next of a page, or empty for the first page.')
}

function noRoom(): SluiceError {
  const fix = 'Raise maxBytes, or keep finished work for a shorter time. Acknowledged events are kept.'
  return new SluiceError('STORE_FULL', 'The store has reached maxBytes.', undefined, fix)
}

const CAPACITY = 4_096

/** `ChangeFeed` is a ring buffer of the latest changes, for live views. A reader that is too slow learns that it missed some. */
class ChangeFeed {
  /** `missed` marks changes of another process that did not arrive. */
  readonly #ring: (NewFeedEntry | 'missed' | undefined)[] = Array.from({ length: CAPACITY })
  #last = 0

  add(notes: readonly (NewFeedEntry | 'missed')[]): void {
    for (const note of notes) {
      this.#last++
      this.#ring[this.#last % CAPACITY] = note
    }
  }

  readAfter(seq: number, n: number): { changes: FeedEntry[]; next: number; skipped: boolean } {
    const oldest = Math.max(1, this.#last - CAPACITY + 1)
    const from = Math.max(seq + 1, oldest)
    const changes: FeedEntry[] = []
    let skipped = from > seq + 1
    let next = Math.max(seq, from - 1)
    for (; next < this.#last && changes.length < n; next++) {
      const note = this.#ring[(next + 1) % CAPACITY]
      if (note === 'missed') skipped = true
      else if (note !== undefined) changes.push({ ...note, seq: next + 1 })
    }
    return { changes, next, skipped }
  }
}
