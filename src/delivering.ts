// Delivering, put together: a delivery is a flow with a lane for each endpoint, and its handler posts.
import type { Clock, Millis } from './clock.ts'
import type { GuardRules } from './deliver/addresses.ts'
import { Breakers } from './deliver/breakers.ts'
import { deliver, type Delivered, type Way } from './deliver/deliver.ts'
import { Endpoints } from './deliver/endpoints.ts'
import { deliverySchedule, type DeliverySchedule } from './deliver/schedule.ts'
import { millis, type Duration } from './model/duration.ts'
import type { Flow } from './model/flow.ts'
import { onlyKnown } from './model/options.ts'
import type { AnyListener } from './observe/events.ts'
import type { Lanes } from './operate/lanes.ts'
import { again, done, drop, partial, PermanentError, retry, type Ending } from './run/endings.ts'
import type { Run } from './run/run.ts'
import { flow, type FlowOptions } from './schedule/flow.ts'
import type { Seal } from './seal.ts'
import type { FindReply, Store } from './store/contract/index.ts'

export interface DeliveryOptions extends Pick<FlowOptions<Run>, 'on' | 'window' | 'concurrency' | 'keep'> {
  /** Delays between tries, literally. Unless said: 5 s, 30 s, 2 m, 5 m, then every 15 m until 75 h in all, ±20 %. */
  readonly retry?: readonly Duration[]
}

/** Of all deliveries of an app. */
export interface DeliverySettings extends GuardRules {
  /** For one POST, from the lookup of its name to the last byte of its answer: 30 s unless said. */
  readonly deadline?: Duration
  readonly userAgent?: string
}

export interface DeliveringParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly now: () => Millis
  readonly seal: Seal
  readonly settings: DeliverySettings
  readonly lanes: () => Lanes
  readonly emit: AnyListener
}

const OPTIONS: ReadonlySet<string> = new Set<keyof DeliveryOptions>(['on', 'window', 'concurrency', 'keep', 'retry'])
const SETTINGS: ReadonlySet<string> = new Set<keyof DeliverySettings>(['allowLoopback', 'deadline', 'userAgent'])
const DEADLINE: Duration = '30s'
/** Beyond its deadline a POST is over; what comes after it is our own. */
const AFTER_DEADLINE: Millis = 10_000
/** Of a failure of ours: soon. */
const OURS: Duration = '5s'
/** Who lets it go makes it due at once. */
const HELD: Duration = '1m'
const BY_US = 'sluice'
const PAGE = 1_000

export class Delivering {
  readonly endpoints: Endpoints
  readonly #parts: DeliveringParts
  readonly #breakers: Breakers
  readonly #names: string[] = []
  readonly #deadline: Millis
  #way: Promise<Way & { readonly close: () => Promise<void> }> | undefined

  constructor(parts: DeliveringParts) {
    const { store, seal, settings } = parts
    onlyKnown(settings, SETTINGS, 'new Sluice: delivery.')
    this.#parts = parts
    this.#deadline = millis(settings.deadline ?? DEADLINE, 'delivery.deadline')
    this.#breakers = new Breakers(store)
    this.endpoints = new Endpoints({
      store,
      seal,
      rules: settings,
      deliveries: () => this.#names,
      lanes: {
        hold: (id, reason, by) => this.#each((lanes, name) => lanes.hold(name, id, { reason, by })),
        letGo: (id) => this.#letGo(id),
        drop: (id) => this.#drop(id),
        runAll: () => this.#runAll(),
      },
    })
  }

  /** Of the list by which events are routed; Infinity while there is nothing to route. */
  get epoch(): number {
    return this.#names.length === 0 ? Infinity : this.endpoints.epoch
  }

  async refresh(): Promise<void> {
    if (this.#names.length > 0) await this.endpoints.refresh()
  }

  flow(name: string, options: DeliveryOptions): Flow {
    onlyKnown(options, OPTIONS, `delivery(${JSON.stringify(name)}).`)
    const { retry: delays, ...rest } = options
    const schedule = deliverySchedule(delays, `${name}.retry`)
    const made = flow<Run>(name, {
      ...rest,
      key: (event) => this.endpoints.wanting(event),
      timeout: this.#deadline + AFTER_DEADLINE,
      run: (run) => this.#run(run, schedule),
    })
    this.#names.push(name)
    return {
      ...made,
      // An event that nobody has subscribed to is none of its business.
      wants: (event) => made.wants(event) && this.endpoints.wanting(event).length > 0,
      tries: schedule.tries,
      delay: (failures, chance, asked) => delayOf(schedule, { failures, chance, asked }),
    }
  }

  async close(): Promise<void> {
    await (await this.#way)?.close()
  }

  async #run(run: Run, schedule: DeliverySchedule): Promise<Ending> {
    // A store that does not answer, or a key that is missing, is no fault of the endpoint.
    const outcome = await this.#delivered(run, schedule).catch((error: unknown): Delivered => ({
      kind: 'ours',
      reason: error instanceof Error ? error.message : String(error),
    }))
    return this.#ending(run, outcome)
  }

  #delivered(run: Run, schedule: DeliverySchedule): Promise<Delivered> {
    const { clock, now, settings, emit } = this.#parts
    return deliver(
      {
        endpoints: this.endpoints,
        breakers: this.#breakers,
        clock,
        now,
        rules: settings,
        way: () => this.#wayOut(),
        deadline: this.#deadline,
        userAgent: settings.userAgent ?? 'Sluice',
        emit,
      },
      {
        endpoint: run.key,
        name: run.flow,
        run: run.id,
        events: run.events,
        signal: run.signal,
        next: (asked = 0) => {
          const least = delayOf(schedule, { failures: run.attempt, chance: 0, asked })
          return least === undefined ? undefined : now() + least
        },
      },
    )
  }

  async #ending(run: Run, outcome: Delivered): Promise<Ending> {
    switch (outcome.kind) {
      case 'delivered':
        return done
      case 'partly':
        return partial({ failed: outcome.failed.map((id) => ({ id, reason: outcome.reason })) })
      case 'retry':
        return retry({ after: outcome.after ?? 0, reason: outcome.reason })
      case 'dead':
        throw new PermanentError(outcome.reason)
      case 'removed':
        return drop('The endpoint was removed.')
      case 'wait':
        return again({ after: outcome.after })
      case 'ours':
        run.log.warn(`It was not delivered, by no fault of the endpoint: ${outcome.reason}`)
        return again({ after: OURS })
      case 'disable':
      case 'held':
        // What waits for it waits on, and costs no try.
        await this.#parts.lanes().hold(run.flow, run.key, { reason: outcome.reason, by: BY_US })
        return again({ after: HELD })
    }
  }

  #wayOut(): Promise<Way> {
    const { clock, settings } = this.#parts
    this.#way ??= (async () => {
      const [{ guardedAgent }, { post }] = await Promise.all([
        import('./deliver/guard.ts'),
        import('./deliver/post.ts'),
      ])
      const agent = guardedAgent({ clock, ...settings })
      return { post, agent, close: () => agent.destroy() }
    })()
    return this.#way
  }

  async #each(act: (lanes: Lanes, name: string) => Promise<unknown>): Promise<void> {
    for (const name of this.#names) await act(this.#parts.lanes(), name)
  }

  /** A person has looked after it: it is tried at once, whatever its breaker says. */
  async #letGo(id: string): Promise<void> {
    await this.#breakers.forget(id)
    await this.#each(async (lanes, name) => {
      await lanes.unhold(name, id)
      await lanes.runNow(name, id)
    })
  }

  async #runAll(): Promise<number> {
    const store = await this.#parts.store()
    let triggered = 0
    await this.#each(async (lanes, name) => {
      for (let cursor: string | undefined = ''; cursor !== undefined;) {
        const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow: name }, cursor, n: PAGE })
        for (const { id, run, hold, waiting, due } of page.items) {
          const isOpen = run === undefined && hold === undefined && waiting > 0 && due > page.now
          if (isOpen && (await lanes.steer(id, { kind: 'run-now' })) === 'ok') triggered++
        }
        cursor = page.next
      }
    })
    return triggered
  }

  async #drop(id: string): Promise<number> {
    let dropped = 0
    await this.#each(async (lanes, name) => {
      const lane = await lanes.get(name, id)
      if ((await lanes.drop(name, id)) === 'ok') dropped += lane?.waiting ?? 0
    })
    await this.#breakers.forget(id)
    return dropped
  }
}

interface Failed {
  readonly failures: number
  readonly chance: number
  readonly asked: Millis
}

/** How long it has gone on is told by the number of tries. */
function delayOf(schedule: DeliverySchedule, failed: Failed): Millis | undefined {
  return failed.failures >= schedule.tries ? undefined : schedule.delay({ ...failed, elapsed: 0 })
}
