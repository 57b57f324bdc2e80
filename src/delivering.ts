// Delivering, put together: a delivery is a flow with a lane for each endpoint, and its handler posts.
import { within, type Clock, type Millis } from './clock.ts'
import { Breakers } from './deliver/breakers.ts'
import { CLOSED } from './deliver/breaker.ts'
import { deliver, whyHeld, type Delivered } from './deliver/deliver.ts'
import { EndpointDocs } from './deliver/endpoint-docs.ts'
import { ENDPOINTS } from './deliver/endpoint-arguments.ts'
import { Endpoints } from './deliver/endpoints.ts'
import type { Fared } from './deliver/health.ts'
import { Histories } from './deliver/histories.ts'
import { NO_HISTORY } from './deliver/history.ts'
import { OwnTokens } from './deliver/own-tokens.ts'
import type { Paced, PostingParts, Way } from './deliver/posting.ts'
import { Proving } from './deliver/proving.ts'
import { stuckBatches } from './deliver/stuck.ts'
import { Subscriptions } from './deliver/subscriptions.ts'
import { deliverySchedule, type DeliverySchedule } from './deliver/schedule.ts'
import { makeLimit, type LimitParts } from './limit/limit.ts'
import { checked } from './model/arguments.ts'
import type { Duration } from './model/duration.ts'
import { deliveryNumbers, type DeliveryNumbers, type DeliverySettings } from './delivery-settings.ts'
import { EndpointLanes, type EndpointLanesParts } from './endpoint-lanes.ts'
import { SluiceError } from './errors.ts'
import { ADDRESSEE } from './model/event.ts'
import type { EventInput } from './model/event-input.ts'
import type { FailedTry, Flow } from './model/flow.ts'
import { FlowEvent } from './model/flow-event.ts'
import { onlyKnown } from './model/options.ts'
import type { AnyListener } from './observe/events.ts'
import type { Settings } from './options.ts'
import { newEvent } from './receive/new-event.ts'
import type { Publisher } from './receive/publisher.ts'
import type { ToEndpoint } from './receive/publishing.ts'
import { done, drop, givenBack, partial, PermanentError, retry, type Ending } from './run/endings.ts'
import type { HandledRun, Run } from './run/run.ts'
import { flow, type FlowOptions } from './schedule/flow.ts'
import { PutOff } from './scope.ts'
import type { Seal } from './seal.ts'
import type { Store } from './store/contract/index.ts'
import type { Chore } from './upkeep/upkeep.ts'

export interface DeliveryOptions extends Pick<FlowOptions<Run>, 'on' | 'window' | 'concurrency' | 'keep'> {
  /** Delays between tries, literally. Unless said: 5 s, 30 s, 2 m, 5 m, then every 15 m until 75 h in all, ±20 %. */
  readonly retry?: readonly Duration[]
}

export interface DeliveringParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly now: () => Millis
  readonly routesHeard: () => number
  readonly seal: Seal
  readonly settings: DeliverySettings
  readonly operated: EndpointLanesParts['operated']
  readonly limits: LimitParts
  readonly publisher: Publisher
  readonly emit: AnyListener
}

const OPTIONS: ReadonlySet<string> = new Set<keyof DeliveryOptions>(['on', 'window', 'concurrency', 'keep', 'retry'])
/** Beyond its deadline a POST is over; what comes after it is our own. */
const AFTER_DEADLINE: Millis = 10_000
/** Of a failure of ours: soon. */
const OURS: Duration = '5s'
const ENDPOINT_LIMIT = 'sluice.endpoint'
/** Within the time of a run: a batch whose turn is later is put off until then, and costs no try. */
const MOST_WAIT: Duration = '1s'
const HOURLY: Millis = 3_600_000
const BY_US = 'sluice'
const FAILING = 'The endpoint fails; another batch tries it.'

export class Delivering {
  readonly endpoints: Endpoints
  readonly #parts: DeliveringParts
  readonly #docs: EndpointDocs
  readonly #lanes: EndpointLanes
  readonly #breakers: Breakers
  readonly #histories: Histories
  readonly #subscriptions: Subscriptions
  readonly #deliveries = new Map<string, Pick<Flow, 'wants' | 'tries'>>()
  readonly #numbers: DeliveryNumbers
  #way: Promise<Way & { readonly close: () => Promise<void> }> | undefined

  constructor(parts: DeliveringParts) {
    const { store, seal, settings } = parts
    this.#parts = parts
    this.#numbers = deliveryNumbers(settings)
    const { proof, registrations } = this.#numbers
    const docs = (this.#docs = new EndpointDocs(parts))
    const fared = { ...parts, gone: (ids: readonly string[]) => docs.gone(ids) }
    this.#breakers = new Breakers(fared)
    this.#lanes = new EndpointLanes({
      store,
      operated: parts.operated,
      deliveries: () => this.#deliveries.keys(),
      breakers: this.#breakers,
      isHeld: (id) => this.#isHeld(id),
    })
    this.#histories = new Histories(fared)
    this.#subscriptions = new Subscriptions(docs)
    const tokens = new OwnTokens(store)
    const posting = (): PostingParts => this.#posting()
    const endpoints = new Endpoints({
      store,
      now: parts.now,
      docs,
      subscriptions: this.#subscriptions,
      breakers: this.#breakers,
      histories: this.#histories,
      posting,
      fared: (ids, now) => this.#fared(ids, now),
      tokens,
      proving: new Proving({ docs, proof, posting }),
      registrations,
      forget: async (id) => {
        await this.#lanes.unhold(id)
        await this.#breakers.forget(id)
        await this.#histories.forget(id)
        await tokens.forget(id)
      },
      seal,
      rules: settings,
      deliveries: this.#deliveries,
      lanes: this.#lanes,
    })
    this.endpoints = checked(endpoints, 'endpoints', ENDPOINTS)
  }

  /** Of the list by which events are routed; Infinity while there is nothing to route. */
  get epoch(): number {
    return this.#deliveries.size === 0 ? Infinity : this.#subscriptions.epoch
  }

  async refresh(): Promise<void> {
    if (this.#deliveries.size > 0) await this.#subscriptions.refresh()
  }

  flow(name: string, options: DeliveryOptions): Flow {
    onlyKnown(options, OPTIONS, `delivery(${JSON.stringify(name)}).`)
    const { retry: delays, ...rest } = options
    const schedule = deliverySchedule(delays, `${name}.retry`)
    const made: Flow = flow<HandledRun>(name, {
      ...rest,
      // One that is for an endpoint comes by its name, and is asked for here whether this delivery is the one to carry it.
      key: (event) =>
        event.addressee === undefined || this.#carrierOf(event) === name ? this.#subscriptions.of(event) : [],
      timeout: this.#numbers.deadline + AFTER_DEADLINE,
      run: (run) => this.#run(run, schedule),
    })
    this.#deliveries.set(name, { wants: (event) => made.wants(event), tries: schedule.tries })
    return {
      ...made,
      // An event that nobody has subscribed to is none of its business.
      wants: (event) => made.wants(event) && this.#subscriptions.of(event).length > 0,
      tries: schedule.tries,
      delay: (failed) => delayOf(schedule, failed),
    }
  }

  /** The same events, for this endpoint alone, and the flows that carry them there. */
  readonly toEndpoint = async (id: string, events: readonly EventInput[]): Promise<ToEndpoint> => {
    const found = (await this.#docs.one(id)).kept
    if (found === undefined) throw unreachable(id, 'which is neither a flow nor an endpoint')
    if (found.proof === 'pending') throw unreachable(id, 'which is not proven yet')
    const flows = new Set<string>()
    for (const event of events) {
      const made = new FlowEvent(newEvent(event, { now: this.#parts.now(), dedupeFor: 0 }))
      const { tenant = '', type } = made
      const [its, theirs] = [found.tenant, tenant].map((name) => JSON.stringify(name))
      if (tenant !== found.tenant) throw unreachable(id, `which is of the tenant ${its}, and the event is of ${theirs}`)
      const carrier = this.#carrierOf(made)
      if (carrier === undefined) throw unreachable(id, `and no delivery of this app takes ${JSON.stringify(type)}`)
      flows.add(carrier)
    }
    const addressed = events.map((event) => ({ ...event, attributes: { ...event.attributes, [ADDRESSEE]: id } }))
    return { flows, events: addressed }
  }

  /** Of what is for one endpoint: the first delivery that takes it, so that it comes once. */
  #carrierOf(event: FlowEvent): string | undefined {
    for (const [name, { wants }] of this.#deliveries) if (wants(event)) return name
    return undefined
  }

  /** What waits for an endpoint that was disabled so long ago, and that nobody has enabled again, goes. */
  chore({ keepEvents }: Pick<Settings, 'keepEvents'>): Chore {
    const keep = keepEvents[''] ?? Infinity
    return {
      name: 'disabled endpoints',
      work: async () => {
        if (this.#deliveries.size === 0) return HOURLY
        for await (const id of this.#breakers.disabledBefore(this.#parts.now() - keep)) await this.#lanes.drop(id)
        return HOURLY
      },
    }
  }

  /** A store that does not answer keeps nobody for longer than this. */
  async close(most: Millis): Promise<void> {
    await within(this.#parts.clock, this.#histories.write(), most)
    await (await this.#way)?.close()
  }

  async #run(run: HandledRun, schedule: DeliverySchedule): Promise<Ending> {
    // A store that does not answer, or a key that is missing, is no fault of the endpoint.
    const outcome = await this.#delivered(run, schedule).catch((error: unknown): Delivered => {
      if (error instanceof PutOff) throw error
      return { kind: 'broken', error }
    })
    if (outcome.kind === 'ours' || outcome.kind === 'broken') this.#noteOurs(run, outcome)
    return endingOf(outcome)
  }

  /** No attempt, and nothing that counts: but whoever looks why nothing comes finds it. */
  #noteOurs({ id, key, attempt, signal, log }: Run, outcome: Ours): void {
    // Who stops says so elsewhere.
    if (signal.aborted) return
    const [shown, whole] = outcome.kind === 'ours' ? [outcome.reason, outcome.reason] : textsOf(outcome.error)
    log.warn(`It was not delivered, by no fault of the endpoint: ${whole}`)
    const [at, error] = [this.#parts.now(), `Not the endpoint's fault: ${shown}`]
    const nothing = { ms: 0, status: undefined, answer: '', latency: 0, isLast: false }
    this.#histories.note(key, { run: id, attempt, at, error, ...nothing, isOurs: true })
  }

  async #delivered(run: HandledRun, schedule: DeliverySchedule): Promise<Delivered> {
    const { now, emit, publisher } = this.#parts
    const delivered = await deliver(
      {
        ...this.#posting(),
        endpoints: this.endpoints,
        breakers: this.#breakers,
        histories: this.#histories,
        emit,
        publish: (event) => publisher.publish([event]),
      },
      {
        endpoint: run.key,
        name: run.flow,
        run: run.id,
        attempt: run.attempt,
        events: run.events,
        signal: run.signal,
        next: (asked = 0) => {
          const elapsed = run.failingSince === 0 ? 0 : now() - run.failingSince
          const least = delayOf(schedule, { failures: run.attempt, elapsed, chance: 0, asked })
          return least === undefined ? undefined : now() + least
        },
      },
    )
    if (delivered.kind === 'held' || delivered.kind === 'disable')
      await this.#lanes.holdOne(run.flow, run.key, { reason: delivered.reason, by: BY_US })
    return delivered
  }

  async #isHeld(id: string): Promise<boolean> {
    const [{ kept }, breakers] = await Promise.all([this.#docs.one(id), this.#breakers.all([id])])
    return kept !== undefined && (whyHeld(kept) !== undefined || breakers.get(id)?.kind === 'disabled')
  }

  #posting(): PostingParts {
    const { clock, now, settings } = this.#parts
    const { deadline, proof, userAgent } = this.#numbers
    const origin = proof.kind === 'cloudevents' ? proof.origin : undefined
    const common = { clock, now, rules: settings, way: () => this.#wayOut(), paced: this.#paced }
    return { ...common, deadline, userAgent, origin }
  }

  /** A limit like any other, of the endpoint's own. */
  readonly #paced: Paced = ({ id, rate }, call, signal) => {
    if (rate === null) return call()
    const limit = makeLimit(ENDPOINT_LIMIT, { ...rate, maxWait: MOST_WAIT }, this.#parts.limits).per(id)
    return limit.run(call, signal === undefined ? {} : { signal })
  }

  async #fared(ids: readonly string[], now: Millis): Promise<(id: string) => Fared> {
    const [breakers, histories, stuck] = await Promise.all([
      this.#breakers.all(ids),
      this.#histories.of(ids),
      stuckBatches(await this.#parts.store(), [...this.#deliveries.keys()], ids),
    ])
    return (id) => ({
      breaker: breakers.get(id) ?? CLOSED,
      history: histories.get(id) ?? NO_HISTORY,
      stuck: stuck.get(id) ?? 0,
      now,
    })
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
}

type Ours = Extract<Delivered, { kind: 'ours' | 'broken' }>

/** For a subscriber, and for us: what a store says names files and hosts. */
function textsOf(error: unknown): readonly [shown: string, whole: string] {
  const whole = error instanceof Error ? error.message : String(error)
  return [`${error instanceof SluiceError ? error.code : 'Something failed'}; the log says more.`, whole]
}

function endingOf(outcome: Delivered): Ending {
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
      return givenBack({ after: outcome.after, why: FAILING })
    case 'ours':
      return givenBack({ after: OURS, why: outcome.reason })
    case 'broken':
      return givenBack({ after: OURS, why: textsOf(outcome.error)[0] })
    case 'disable':
    case 'held':
      // Its lane is held, or was let go since, and then it is due.
      return givenBack({ after: 0, why: outcome.reason })
  }
}

function unreachable(id: string, why: string): SluiceError {
  return new SluiceError('EVENT_INVALID', `to names ${JSON.stringify(id)}, ${why}; nothing was stored.`)
}

/** No more tries than it says there are, however soon each was. */
function delayOf(schedule: DeliverySchedule, failed: FailedTry): Millis | undefined {
  return failed.failures >= schedule.tries ? undefined : schedule.delay(failed)
}
