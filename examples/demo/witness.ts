// Puts what the engine says into the demo's own words: how runs begin and end, and with which events.
import type { Clock, Millis, Run, Sluice, Store } from 'sluice'
import { FLOW, LEASE } from './flow.ts'
import type { SeenEvent, Tell } from './life.ts'

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
  /** How long each user waited in line for the latest turn. */
  readonly #late = new Map<string, Millis>()
  /** By run. */
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
    app.on('run.claimed', ({ key, late }) => void this.#late.set(key, late))
    app.on('run.done', (run) => {
      tell({ kind: 'done', ...this.#ended(run), calls: run.counts['calls'] ?? 0, ms: run.ms })
    })
    app.on('run.retry', (run) => {
      const { attempt, error, after } = run
      tell({ kind: 'retry', ...this.#ended(run), attempt, error, after })
    })
    app.on('run.dead', (run) => {
      const { attempt, error } = run
      tell({ kind: 'dead', ...this.#ended(run), attempt, error })
    })
    for (const name of ['run.snoozed', 'run.deferred'] as const) {
      app.on(name, (run) => tell({ kind: 'released', ...this.#ended(run) }))
    }
    app.on('run.lost', (run) => tell({ kind: 'lost', ...this.#ended(run) }))
  }

  /** Everything that has come was told. */
  async seenAll(): Promise<void> {
    await this.#receiving
  }

  async #received(id: string): Promise<void> {
    const { item } = await this.#store.get({ kind: 'events', id })
    if (item === undefined) return
    const user = item.subject
    const lane = await this.#app.admin.lanes.get(FLOW, user)
    const at = this.#clock.now()
    const waiting = lane?.waiting ?? 0
    const dueIn = Math.max(0, (lane?.window ?? at) - at)
    this.#tell({ kind: 'received', at, user, id, waiting, dueIn, running: lane?.run !== undefined })
  }

  /** For the handler to call: it alone knows the events of its run one by one. */
  async begun({ id, key: user, attempt, events: all }: Run): Promise<void> {
    const events = all.map((event) => ({ id: event.id, arrived: event.arrived ?? 0 }))
    this.#inHand.set(id, events)
    const lane = await this.#app.admin.lanes.get(FLOW, user)
    // Lanes are held to their order by the millisecond, so that it has to be the claim's own, as its lease tells it.
    const at = lane?.run === undefined ? this.#clock.now() : lane.run.until - LEASE
    this.#tell({ kind: 'claimed', at, user, due: at - (this.#late.get(user) ?? 0), attempt, events })
  }

  #ended({ run, key }: { readonly run: string; readonly key: string }): Ended {
    const events = this.#inHand.get(run) ?? []
    this.#inHand.delete(run)
    return { at: this.#clock.now(), user: key, events }
  }
}
