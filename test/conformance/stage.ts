// `Stage` holds one store, one clock and the names of the events of a test, so that each test reads as a story.
import assert from 'node:assert/strict'
import type { Millis } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import type { Attempt, Lane } from '../../src/model/lane.ts'
import type { RunEndOptions, RunOutcome } from '../../src/model/settle.ts'
import type {
  AppendResult,
  EventRecord,
  RecordFilter,
  FindReply,
  LaneAction,
  LeasedRun,
  DeadLetterRecord,
  EventToStore,
  RecordKind,
  RecordTypes,
  RenewReply,
  RetentionPolicy,
  SettleResult,
  SteerReply,
  Store,
  SettleAndClaimCall,
  SettleAndClaimReply,
  MaintainReply,
} from '../../src/store/contract/index.ts'
import type { ManualClock, Harness } from './harness.ts'
import {
  createClaimRequest,
  done,
  createRetentionPolicy,
  LEASE,
  createEventToStore,
  type ClaimOverrides,
  type EventOverrides,
} from './builders.ts'

export type Rule = (name: string, test: (t: ConformanceStage) => Promise<void>) => void

/** Groups the tests of one guarantee. */
export type Suite = (rule: Rule) => void

type SteerResult = SteerReply['results'][number]
type RenewResult = RenewReply['results'][number]

export interface SettleOverrides extends Partial<RunEndOptions> {
  readonly process?: string
  readonly attempt?: Attempt
  readonly publish?: readonly EventToStore[]
  readonly announceDeadAfter?: number
}

export class ConformanceStage {
  readonly clock: ManualClock
  readonly #harness: Harness
  readonly #opened: Store[] = []
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()
  readonly #requests = new Map<string, number>()
  store: Store
  /** The epoch of the routes that appends carry. */
  routes = 0

  private constructor(harness: Harness, clock: ManualClock, store: Store) {
    this.#harness = harness
    this.clock = clock
    this.store = store
    this.#opened.push(store)
  }

  static async open(harness: Harness): Promise<ConformanceStage> {
    const clock = harness.clock()
    const stage = new ConformanceStage(harness, clock, await harness.fresh(clock))
    stage.routes = (await stage.store.stats()).routes
    return stage
  }

  async close(): Promise<void> {
    for (const store of this.#opened.toReversed()) await store.close()
  }

  /** An empty store beside this one. */
  async openEmptyStore(): Promise<Store> {
    const store = await this.#harness.fresh(this.clock)
    this.#opened.push(store)
    return store
  }

  /** Another client of the same data. */
  async openSecondCaller(): Promise<Store> {
    if (this.#harness.second === undefined) return this.store
    const store = await this.#harness.second(this.store)
    this.#opened.push(store)
    return store
  }

  async reopen(): Promise<void> {
    const opened = await this.#harness.reopen?.(this.store, this.clock)
    assert.ok(opened, 'the harness can reopen')
    this.store = opened
    this.#opened.splice(0, 1, this.store)
  }

  // Events

  /** The same name is the same event: its id is drawn once. */
  event(name: string, words: EventOverrides = {}): EventToStore {
    const known = words.id ?? this.#ids.get(name)
    const event = createEventToStore(name, known === undefined ? words : { ...words, id: known }, this.clock.now())
    this.#ids.set(name, event.id)
    this.#names.set(event.id, name)
    return event
  }

  id(name: string): string {
    const id = this.#ids.get(name)
    assert.ok(id, `an event was named ${name}`)
    return id
  }

  names(of: Pick<LeasedRun, 'events'> | readonly string[]): readonly string[] {
    const ids = 'events' in of ? of.events.map((event) => event.id) : of
    return ids.map((id) => this.#names.get(id) ?? id)
  }

  async appendEvents(...events: readonly EventToStore[]): Promise<readonly AppendResult[]> {
    const { results } = await this.store.append({ routes: this.routes, events })
    assert.equal(results.length, events.length, 'an answer for each event')
    return results
  }

  async append(name: string, words: EventOverrides = {}): Promise<AppendResult> {
    return assertSingle(await this.appendEvents(this.event(name, words)))
  }

  /** Several events with the same options, each in a commit of its own, in this order. */
  async appendEach(names: readonly string[], words: EventOverrides = {}): Promise<void> {
    for (const name of names) assert.equal((await this.append(name, words)).kind, 'stored')
  }

  // Claims and settlements

  async settleAndClaim(words: Partial<SettleAndClaimCall> = {}): Promise<SettleAndClaimReply> {
    const process = words.process ?? 'p1'
    const request = words.request ?? (this.#requests.get(process) ?? 0) + 1
    this.#requests.set(process, request)
    const { routes } = this
    return this.store.settleAndClaim({ settle: [], claim: [], budget: 64_000_000, routes, ...words, process, request })
  }

  async claim({ process, budget, ...words }: ClaimOverrides = {}): Promise<readonly LeasedRun[]> {
    const call = {
      claim: [createClaimRequest(words)],
      ...(process && { process }),
      ...(budget !== undefined && { budget }),
    }
    return (await this.settleAndClaim(call)).claimed
  }

  /** Claims the one run that is ready. */
  async claimOne(words: ClaimOverrides = {}): Promise<LeasedRun> {
    return assertSingle(await this.claim(words))
  }

  async assertNothingReady(words: ClaimOverrides = {}): Promise<void> {
    assert.deepEqual((await this.claim(words)).map(getKey), [], 'nothing is ready')
  }

  /** Claims the one run that is ready after this long, and not a millisecond before. */
  async claimOneAfter(delay: Millis, words: ClaimOverrides = {}): Promise<LeasedRun> {
    assert.ok(delay > 0, 'for an event that is due at once, use next')
    this.clock.advance(delay - 1)
    await this.assertNothingReady(words)
    this.clock.advance(1)
    return this.claimOne(words)
  }

  async settle(run: LeasedRun, outcome: RunOutcome, words: SettleOverrides = {}): Promise<SettleResult> {
    const { process, whileRunning = 'window', keep = 0, attempt, publish = [], announceDeadAfter } = words
    const notice = announceDeadAfter === undefined ? {} : { announceDeadAfter }
    const ended = { whileRunning, keep, attempt, publish, ...notice }
    const settle = [{ lane: run.lane, token: run.token, outcome, ...ended }]
    return assertSingle((await this.settleAndClaim({ settle, ...(process && { process }) })).settled)
  }

  /** Settles a run that must still be live. */
  async settleOk(run: LeasedRun, outcome: RunOutcome = done, words: SettleOverrides = {}): Promise<void> {
    assert.equal(await this.settle(run, outcome, words), 'ok')
  }

  /** Runs one lane after the other until nothing is ready, and returns their order. */
  async drain(words: ClaimOverrides = {}): Promise<readonly string[]> {
    const served: string[] = []
    for (let runs = await this.claim({ ...words, maxRuns: 1 }); runs.length > 0;) {
      for (const run of runs) {
        served.push(run.key)
        await this.settleOk(run)
      }
      runs = await this.claim({ ...words, maxRuns: 1 })
    }
    return served
  }

  async renew(
    run: LeasedRun,
    words: { readonly lease?: Millis; readonly commit?: boolean } = {},
  ): Promise<RenewResult> {
    const { lease = LEASE, commit = false } = words
    const runs = [{ lane: run.lane, token: run.token, commit }]
    return assertSingle((await this.store.renew({ lease, runs })).results)
  }

  /** Lets the leases of all live runs expire. */
  expireLeases(lease: Millis = LEASE): void {
    this.clock.advance(lease)
  }

  // Operators

  async steer(key: string, act: LaneAction | 'run-now' | 'cancel' | 'unhold' | 'drop'): Promise<SteerResult> {
    const call = {
      what: 'lanes',
      ids: [laneId('flow', key)],
      act: typeof act === 'string' ? { kind: act } : act,
    } as const
    return assertSingle((await this.store.steer(call)).results)
  }

  async hold(key: string, duration: Millis): Promise<SteerResult> {
    return this.steer(key, { kind: 'hold', reason: 'looking', by: 'ada', for: duration })
  }

  async steerDeadLetter(id: string, act: 'retry' | 'drop' | 'unblock'): Promise<SteerResult> {
    return assertSingle((await this.store.steer({ what: 'dead', ids: [id], act })).results)
  }

  async pause(flow = 'flow'): Promise<SteerResult> {
    const act = { kind: 'pause', reason: 'deploy', by: 'ada' } as const
    return assertSingle((await this.store.steer({ what: 'flows', ids: [flow], act })).results)
  }

  async resume(flow = 'flow'): Promise<SteerResult> {
    return assertSingle((await this.store.steer({ what: 'flows', ids: [flow], act: { kind: 'resume' } })).results)
  }

  /** Runs maintenance until nothing is left to do. */
  async maintain(policy: Partial<RetentionPolicy> = {}): Promise<MaintainReply['counts']> {
    let sum = { events: 0, runs: 0, deadLetters: 0, lanes: 0 }
    for (let more = true, calls = 0; more; calls++) {
      assert.ok(calls < 1_000, 'maintenance must end')
      const reply = await this.store.maintain({ budget: 1_000, policy: createRetentionPolicy(policy) })
      const { counts: did } = reply
      more = reply.more
      sum = {
        events: sum.events + did.events,
        runs: sum.runs + did.runs,
        deadLetters: sum.deadLetters + did.deadLetters,
        lanes: sum.lanes + did.lanes,
      }
    }
    return sum
  }

  // Records

  async getLane(key: string, flow = 'flow'): Promise<Lane | undefined> {
    return (await this.store.get({ kind: 'lanes', id: laneId(flow, key) })).item
  }

  async getDeadLetter(id: string): Promise<DeadLetterRecord | undefined> {
    return (await this.store.get({ kind: 'dead', id })).item
  }

  async getEventRecord(name: string): Promise<EventRecord | undefined> {
    return (await this.store.get({ kind: 'events', id: this.id(name) })).item
  }

  /** Returns all pages, in order. */
  async findAll<K extends RecordKind>(kind: K, filter: RecordFilter = {}, n = 100): Promise<readonly RecordTypes[K][]> {
    const items: RecordTypes[K][] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: FindReply<K> = await this.store.find({ kind, filter, cursor, n })
      items.push(...page.items)
      assert.notEqual(page.next, cursor, 'a page leads on')
      cursor = page.next
    }
    return items
  }
}

export function assertSingle<T>(items: readonly T[]): T {
  assert.equal(items.length, 1, 'exactly one')
  return items[0] as T
}

/** For comparisons in which the order does not matter. */
export function sorted<T>(items: readonly T[]): readonly T[] {
  return items.toSorted((one, other) => (String(one) < String(other) ? -1 : 1))
}

function getKey(run: LeasedRun): string {
  return run.key
}

export function getKeys(runs: readonly LeasedRun[]): readonly string[] {
  return runs.map(getKey)
}
