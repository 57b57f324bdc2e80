// One store, one clock and the names of the events a test uses, so that each test reads as the story it tells.
import assert from 'node:assert/strict'
import type { Millis } from '../../clock.ts'
import { laneId } from '../../model/identity.ts'
import type { Attempt, Lane } from '../../model/lane.ts'
import type { LaneEnd, Outcome } from '../../model/settle.ts'
import type {
  Appended,
  EventRecord,
  Filter,
  FindReply,
  LaneSteer,
  Lease,
  LetterRecord,
  NewEvent,
  RecordKind,
  Records,
  RenewReply,
  RetentionPolicy,
  Settled,
  SteerReply,
  Store,
  TurnCall,
  TurnReply,
  UpkeepReply,
} from '../contract/index.ts'
import type { HandClock, Harness } from './harness.ts'
import { claimOf, done, keeping, LEASE, newEvent, type ClaimWords, type EventWords } from './vocabulary.ts'

export type Rule = (name: string, test: (t: Stage) => Promise<void>) => void

/** Tests of one guarantee. */
export type Suite = (rule: Rule) => void

type Steered = SteerReply['results'][number]
type Renewed = RenewReply['results'][number]

export interface SettleWords extends Partial<LaneEnd> {
  readonly process?: string
  readonly attempt?: Attempt
  readonly publish?: readonly NewEvent[]
}

export class Stage {
  readonly clock: HandClock
  readonly #harness: Harness
  readonly #opened: Store[] = []
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()
  readonly #requests = new Map<string, number>()
  store: Store
  /** The epoch of the routes that appends say they were routed by. */
  routes = 0

  private constructor(harness: Harness, clock: HandClock, store: Store) {
    this.#harness = harness
    this.clock = clock
    this.store = store
    this.#opened.push(store)
  }

  static async open(harness: Harness): Promise<Stage> {
    const clock = harness.clock()
    const stage = new Stage(harness, clock, await harness.fresh(clock))
    stage.routes = (await stage.store.stats()).routes
    return stage
  }

  async close(): Promise<void> {
    for (const store of this.#opened.toReversed()) await store.close()
  }

  /** An empty store beside this one. */
  async another(): Promise<Store> {
    const store = await this.#harness.fresh(this.clock)
    this.#opened.push(store)
    return store
  }

  /** Another caller of the same data. */
  async second(): Promise<Store> {
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
  event(name: string, words: EventWords = {}): NewEvent {
    const known = words.id ?? this.#ids.get(name)
    const event = newEvent(name, known === undefined ? words : { ...words, id: known }, this.clock.now())
    this.#ids.set(name, event.id)
    this.#names.set(event.id, name)
    return event
  }

  id(name: string): string {
    const id = this.#ids.get(name)
    assert.ok(id, `an event was named ${name}`)
    return id
  }

  names(of: Pick<Lease, 'events'> | readonly string[]): readonly string[] {
    const ids = 'events' in of ? of.events.map((event) => event.id) : of
    return ids.map((id) => this.#names.get(id) ?? id)
  }

  async send(...events: readonly NewEvent[]): Promise<readonly Appended[]> {
    const { results } = await this.store.append({ routes: this.routes, events })
    assert.equal(results.length, events.length, 'an answer for each event')
    return results
  }

  async append(name: string, words: EventWords = {}): Promise<Appended> {
    return only(await this.send(this.event(name, words)))
  }

  /** Several events of the same words, each in a commit of its own, in this order. */
  async appendEach(names: readonly string[], words: EventWords = {}): Promise<void> {
    for (const name of names) assert.equal((await this.append(name, words)).kind, 'stored')
  }

  // Turns

  async turn(words: Partial<TurnCall> = {}): Promise<TurnReply> {
    const process = words.process ?? 'p1'
    const request = words.request ?? (this.#requests.get(process) ?? 0) + 1
    this.#requests.set(process, request)
    const { routes } = this
    return this.store.turn({ settle: [], claim: [], budget: 64_000_000, routes, ...words, process, request })
  }

  async claim({ process, budget, ...words }: ClaimWords = {}): Promise<readonly Lease[]> {
    const call = { claim: [claimOf(words)], ...(process && { process }), ...(budget !== undefined && { budget }) }
    return (await this.turn(call)).claimed
  }

  /** The one run that is ready. */
  async next(words: ClaimWords = {}): Promise<Lease> {
    return only(await this.claim(words))
  }

  async nothing(words: ClaimWords = {}): Promise<void> {
    assert.deepEqual((await this.claim(words)).map(keyOf), [], 'nothing is ready')
  }

  /** The one run that is ready after this long, and not a millisecond before. */
  async dueIn(delay: Millis, words: ClaimWords = {}): Promise<Lease> {
    assert.ok(delay > 0, 'what is due at once is asked for with next')
    this.clock.advance(delay - 1)
    await this.nothing(words)
    this.clock.advance(1)
    return this.next(words)
  }

  async settle(run: Lease, outcome: Outcome, words: SettleWords = {}): Promise<Settled> {
    const { process, whileRunning = 'window', keep = 0, attempt, publish = [] } = words
    const settle = [{ lane: run.lane, token: run.token, outcome, whileRunning, keep, attempt, publish }]
    return only((await this.turn({ settle, ...(process && { process }) })).settled)
  }

  /** Settles a run that must still be live. */
  async end(run: Lease, outcome: Outcome = done, words: SettleWords = {}): Promise<void> {
    assert.equal(await this.settle(run, outcome, words), 'ok')
  }

  /** Runs one lane after the other until nothing is ready, and says whose turn it was. */
  async drain(words: ClaimWords = {}): Promise<readonly string[]> {
    const served: string[] = []
    for (let runs = await this.claim({ ...words, slots: 1 }); runs.length > 0;) {
      for (const run of runs) {
        served.push(run.key)
        await this.end(run)
      }
      runs = await this.claim({ ...words, slots: 1 })
    }
    return served
  }

  async renew(run: Lease, words: { readonly lease?: Millis; readonly commit?: boolean } = {}): Promise<Renewed> {
    const { lease = LEASE, commit = false } = words
    const runs = [{ lane: run.lane, token: run.token, commit }]
    return only((await this.store.renew({ lease, runs })).results)
  }

  /** Lets the lease of everything that runs end. */
  lapse(lease: Millis = LEASE): void {
    this.clock.advance(lease)
  }

  // People

  async steer(key: string, act: LaneSteer | 'run-now' | 'cancel' | 'unhold' | 'drop'): Promise<Steered> {
    const call = {
      what: 'lanes',
      ids: [laneId('flow', key)],
      act: typeof act === 'string' ? { kind: act } : act,
    } as const
    return only((await this.store.steer(call)).results)
  }

  async hold(key: string, duration: Millis): Promise<Steered> {
    return this.steer(key, { kind: 'hold', reason: 'looking', by: 'ada', for: duration })
  }

  async steerDead(id: string, act: 'retry' | 'drop' | 'unblock'): Promise<Steered> {
    return only((await this.store.steer({ what: 'dead', ids: [id], act })).results)
  }

  async pause(flow = 'flow'): Promise<Steered> {
    const act = { kind: 'pause', reason: 'deploy', by: 'ada' } as const
    return only((await this.store.steer({ what: 'flows', ids: [flow], act })).results)
  }

  async resume(flow = 'flow'): Promise<Steered> {
    return only((await this.store.steer({ what: 'flows', ids: [flow], act: { kind: 'resume' } })).results)
  }

  /** Upkeep until it has nothing more to do. */
  async upkeep(policy: Partial<RetentionPolicy> = {}): Promise<UpkeepReply['did']> {
    let sum = { events: 0, runs: 0, letters: 0, lanes: 0 }
    for (let more = true, calls = 0; more; calls++) {
      assert.ok(calls < 1_000, 'upkeep comes to an end')
      const reply = await this.store.upkeep({ budget: 1_000, policy: keeping(policy) })
      const { did } = reply
      more = reply.more
      sum = {
        events: sum.events + did.events,
        runs: sum.runs + did.runs,
        letters: sum.letters + did.letters,
        lanes: sum.lanes + did.lanes,
      }
    }
    return sum
  }

  // Records

  async lane(key: string, flow = 'flow'): Promise<Lane | undefined> {
    return (await this.store.get({ kind: 'lanes', id: laneId(flow, key) })).item
  }

  async letter(id: string): Promise<LetterRecord | undefined> {
    return (await this.store.get({ kind: 'dead', id })).item
  }

  async record(name: string): Promise<EventRecord | undefined> {
    return (await this.store.get({ kind: 'events', id: this.id(name) })).item
  }

  /** Every page, in order. */
  async all<K extends RecordKind>(kind: K, filter: Filter = {}, n = 100): Promise<readonly Records[K][]> {
    const items: Records[K][] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: FindReply<K> = await this.store.find({ kind, filter, cursor, n })
      items.push(...page.items)
      assert.notEqual(page.next, cursor, 'a page leads on')
      cursor = page.next
    }
    return items
  }
}

export function only<T>(items: readonly T[]): T {
  assert.equal(items.length, 1, 'exactly one')
  return items[0] as T
}

/** Where the order says nothing. */
export function sorted<T>(items: readonly T[]): readonly T[] {
  return items.toSorted((one, other) => (String(one) < String(other) ? -1 : 1))
}

function keyOf(run: Lease): string {
  return run.key
}

export function keys(runs: readonly Lease[]): readonly string[] {
  return runs.map(keyOf)
}
