// `Witness` turns the events that the app emits into the demo's log: how runs begin and end, and with which events.
import type { Clock, Millis, Run, Sluice, Store } from 'sluice'
import { BY_HAND, FLOW, LEASE, TASKS } from './flow.ts'
import type { SeenEvent, Tell } from './life.ts'

/** Events of other sources are those that the demo publishes itself. */
const EDITS: ReadonlySet<string> = new Set([TASKS, BY_HAND])

interface Ended {
  readonly at: Millis
  readonly user: string
  readonly events: readonly SeenEvent[]
}

export interface WitnessParts {
  readonly store: Store
  readonly clock: Clock
  readonly tell: Tell
}

export class Witness {
  readonly #app: Sluice
  readonly #clock: Clock
  readonly #tell: Tell
  /** How long the lane of each user was ready before its latest claim. */
  readonly #late = new Map<string, Millis>()
  /** The events of each live run. */
  readonly #inHand = new Map<string, readonly SeenEvent[]>()

  readonly #store: Store
  #receiving: Promise<unknown> = Promise.resolve()

  constructor(app: Sluice, { store, clock, tell }: WitnessParts) {
    this.#app = app
    this.#store = store
    this.#clock = clock
    this.#tell = tell
    app.on('event.received', ({ event }) => {
      this.#receiving = Promise.all([this.#receiving, this.#received(event)])
    })
    app.on('run.claimed', ({ flow, key, late }) => {
      if (flow === FLOW) this.#late.set(key, late)
    })
    app.on('run.done', (run) => {
      if (run.flow === FLOW) tell({ kind: 'done', ...this.#ended(run), calls: run.counts['calls'] ?? 0, ms: run.ms })
    })
    app.on('run.retry', (run) => {
      const { flow, attempt, error, after } = run
      if (flow === FLOW) tell({ kind: 'retry', ...this.#ended(run), attempt, error, after })
    })
    app.on('run.dead', (run) => {
      const { flow, attempt, error } = run
      if (flow === FLOW) tell({ kind: 'dead', ...this.#ended(run), attempt, error })
    })
    for (const name of ['run.snoozed', 'run.deferred'] as const) {
      app.on(name, (run) => {
        if (run.flow === FLOW) tell({ kind: 'released', ...this.#ended(run) })
      })
    }
    app.on('run.lost', (run) => {
      if (run.flow === FLOW) tell({ kind: 'lost', ...this.#ended(run) })
    })
  }

  /** `seenAll` resolves when every received event is in the log. */
  async seenAll(): Promise<void> {
    await this.#receiving
  }

  async #received(id: string): Promise<void> {
    const { item } = await this.#store.get({ kind: 'events', id })
    if (item === undefined || !EDITS.has(item.source)) return
    const user = item.subject
    const lane = await this.#app.admin.lanes.get(FLOW, user)
    const at = this.#clock.now()
    const waiting = lane?.waiting ?? 0
    const dueIn = Math.max(0, (lane?.window ?? at) - at)
    this.#tell({ kind: 'received', at, user, id, waiting, dueIn, running: lane?.run !== undefined })
  }

  /** The handler calls `begun`, because only the run knows its events. */
  async begun({ id, key: user, attempt, events: all }: Run): Promise<void> {
    const events = all.map((event) => ({ id: event.id, arrived: event.arrived ?? 0 }))
    this.#inHand.set(id, events)
    const lane = await this.#app.admin.lanes.get(FLOW, user)
    // The check of the order needs the time of the claim itself, which follows from the lease.
    const at = lane?.run === undefined ? this.#clock.now() : lane.run.until - LEASE
    this.#tell({ kind: 'claimed', at, user, due: at - (this.#late.get(user) ?? 0), attempt, events })
  }

  #ended({ run, key }: { readonly run: string; readonly key: string }): Ended {
    const events = this.#inHand.get(run) ?? []
    this.#inHand.delete(run)
    return { at: this.#clock.now(), user: key, events }
  }
}
