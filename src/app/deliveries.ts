// `Deliveries` connects the parts of delivering: a delivery is a flow with one lane per endpoint, and its handler posts batches.
import { waitAtMost, type Clock, type Millis } from '../clock.ts'
import { BreakerStore } from '../deliver/health/breaker-store.ts'
import {
  deliver,
  type DeliveryBatch,
  type DeliveryDependencies,
  type DeliveryReport,
  type DeliveryResult,
} from '../deliver/delivery.ts'
import { failureTexts, toEnding, type DeliveryProgress } from '../deliver/delivery-ending.ts'
import type { ReaderDependencies } from '../deliver/endpoint-cache.ts'
import { EndpointDocs } from '../deliver/endpoint-docs.ts'
import { parseEndpointDefaults, type EndpointDefaults } from '../deliver/endpoint.ts'
import { ENDPOINT_ARGUMENTS } from '../deliver/endpoint-arguments.ts'
import { Endpoints } from '../deliver/endpoints.ts'
import { HistoryStore } from '../deliver/health/history-store.ts'
import type { EndpointRateGate, SendDependencies, Transport } from '../deliver/send-batch.ts'
import { purgeAnswers } from '../deliver/purge-answers.ts'
import { Subscriptions } from '../deliver/subscriptions.ts'
import type { BodyFunction } from '../deliver/forms/message.ts'
import { createDeliverySchedule, type DeliverySchedule } from '../deliver/retry-schedule.ts'
import type { ScriptThreads } from '../deliver/transform/threads.ts'
import { TRANSFORM_ARGUMENTS, Transforms } from '../deliver/transform/transforms.ts'
import { TransformVersions } from '../deliver/transform/versions.ts'
import { createLimit, type LimitDependencies } from '../limit/limit.ts'
import type { Duration } from '../model/duration.ts'
import { parseDeliverySettings, type ResolvedDeliverySettings, type DeliverySettings } from '../deliver/options.ts'
import { EndpointHistories } from './endpoint-history.ts'
import type { ReplayRecord } from '../admin/replay-record.ts'
import { EndpointLanes, type EndpointLanesDependencies } from './endpoint-lanes.ts'
import { SluiceError } from '../errors.ts'
import { TARGET_ENDPOINT_ATTRIBUTE, type EventInput } from '../model/event.ts'
import type { FailedAttempt, Flow } from '../model/flow.ts'
import type { Lane } from '../model/lane.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { createMatcher, isOperatorNews } from '../flow/globs.ts'
import { withArgumentChecks, assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { Settings } from './options.ts'
import { createEvent } from '../model/new-event.ts'
import type { Publisher } from '../publish/publisher.ts'
import type { EndpointEvents } from '../publish/publish.ts'
import type { Ending } from '../model/endings.ts'
import type { HandledRun, Run } from '../run/run.ts'
import { createFlow, type FlowOptions } from '../flow/options.ts'
import type { EventSelector } from '../flow/selection.ts'
import { RateLimitDeferred } from '../limit/run-context.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { createEncryptedTexts, type EncryptedTexts } from '../crypto/encrypted-texts.ts'
import type { PurgeTarget } from '../store/contract/index.ts'
import type { MaintenanceTask } from '../maintain/maintenance.ts'

export interface DeliveryOptions<On extends EventSelector = EventSelector> extends Pick<
  FlowOptions<Run, On>,
  'on' | 'where' | 'window' | 'debounce' | 'batch' | 'maxEvents' | 'maxBytes' | 'concurrency' | 'keep'
> {
  /** The exact delays between attempts. Default: 5 s, 30 s, 2 m, 5 m, then every 15 m up to 75 h in total, ±20 %. */
  readonly retry?: readonly Duration[]
  /** For fields that a registration leaves out. An endpoint gets the events of every delivery, so only one may have defaults. */
  readonly defaults?: EndpointDefaults
  /** Builds the body of each batch, instead of the form of the endpoint. */
  readonly body?: BodyFunction
}

export interface DeliveriesDependencies extends ReaderDependencies {
  readonly clock: Clock
  readonly now: () => Millis
  readonly keyring: Keyring
  readonly settings: DeliverySettings
  readonly admin: EndpointLanesDependencies['admin']
  readonly limits: LimitDependencies
  readonly publisher: Publisher
  readonly publishStep: (of: ReplayRecord) => Promise<unknown>
  readonly emit: AnyListener
  readonly count: DeliveryDependencies['count']
  /** Under `sluice/testing`: the agent that replaces the guarded one. */
  readonly testAgent: () => Transport['agent'] | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof DeliveryOptions>([
  'on',
  'where',
  'window',
  'debounce',
  'batch',
  'maxEvents',
  'maxBytes',
  'concurrency',
  'keep',
  'retry',
  'body',
  'defaults',
])
/** The time that remains after the deadline of a POST for our own work. */
const DEADLINE_MARGIN: Millis = 10_000
const ENDPOINT_LIMIT = 'sluice.endpoint'
/** A batch whose slot is further away than a run can wait is deferred, which uses no attempt. */
const MAX_WAIT: Duration = '1s'
const HOURLY: Millis = 3_600_000
const ENGINE_ACTOR = 'sluice'

export class Deliveries {
  readonly endpoints: Endpoints
  readonly backlog: EndpointHistories
  readonly #deps: DeliveriesDependencies
  readonly #settings: ResolvedDeliverySettings
  readonly #docs: EndpointDocs
  readonly #lanes: EndpointLanes
  readonly #breakers: BreakerStore
  readonly #histories: HistoryStore
  readonly #subscriptions: Subscriptions
  readonly #deliveries = new Map<string, Pick<Flow, 'matches' | 'maxAttempts' | 'globs'>>()
  readonly #delivery: DeliveryDependencies
  #defaults: { readonly delivery?: string; readonly fields: EndpointDefaults } = { fields: {} }
  #threads: Promise<ScriptThreads> | undefined
  #transport: Promise<Transport & { readonly close: () => Promise<void> }> | undefined

  constructor(deps: DeliveriesDependencies) {
    const { store, clock, now, keyring, publisher, emit } = deps
    this.#deps = deps
    const settings = (this.#settings = parseDeliverySettings(deps.settings))
    const docs = (this.#docs = new EndpointDocs(deps))
    let texts: EncryptedTexts | undefined
    const readTexts = async (): Promise<EncryptedTexts> => (texts ??= createEncryptedTexts(await store(), keyring))
    const breakers = (this.#breakers = new BreakerStore({ store, clock, docs }))
    const histories = (this.#histories = new HistoryStore({ store, clock, docs, texts: readTexts }))
    const subscriptions = (this.#subscriptions = new Subscriptions(docs))
    const deliveries = this.#deliveries
    const lanes = (this.#lanes = new EndpointLanes({ store, admin: deps.admin, deliveries, docs, breakers }))
    const sender: SendDependencies = {
      clock,
      now,
      guardRules: settings.rules,
      openTransport: () => this.#openTransport(),
      atEndpointRate: this.#atEndpointRate,
      deadline: settings.deadline,
      userAgent: settings.userAgent,
      transform: (message) => this.endpoints.transforms.apply(message),
      origin: settings.proof.kind === 'cloudevents' ? settings.proof.origin : undefined,
    }
    const defaults = (): EndpointDefaults => this.#defaults.fields
    const backlog = (this.backlog = new EndpointHistories({ ...deps, docs, subscriptions, lanes, deliveries }))
    const transforms = this.#createTransforms()
    const stored = { store, now, keyring, settings, docs, subscriptions, breakers, histories }
    const parts = { ...stored, sender, lanes, deliveries, backlog, transforms }
    this.endpoints = withArgumentChecks(new Endpoints({ ...parts, defaults }), 'endpoints', ENDPOINT_ARGUMENTS)
    const publish = (event: EventInput): Promise<unknown> => publisher.publish([event])
    const { count } = deps
    this.#delivery = { ...sender, endpoints: this.endpoints, breakers, histories, emit, count, publish }
  }

  /** The epoch of the endpoint list that routes events; Infinity without deliveries. */
  get epoch(): number {
    return this.#deliveries.size === 0 ? Infinity : this.#subscriptions.epoch
  }

  async refresh(): Promise<void> {
    if (this.#deliveries.size > 0) await this.#subscriptions.refresh()
  }

  flow<On extends EventSelector>(name: string, options: DeliveryOptions<On>): Flow {
    assertKnownOptions(options, OPTIONS, `delivery(${JSON.stringify(name)}).`)
    const { retry: delays, body: build, defaults, ...rest } = options
    if (build !== undefined && typeof build !== 'function')
      throw invalidOption(`delivery(${JSON.stringify(name)}).body must be a function of the events and the endpoint.`)
    const schedule = createDeliverySchedule(delays, `${name}.retry`)
    const made: Flow = createFlow<HandledRun, On>(name, {
      ...rest,
      // An event published to one endpoint names it; only the delivery that carries the event returns the endpoint as a key.
      key: (event) =>
        event.targetEndpoint === undefined || this.#findCarrier(event) === name
          ? this.#subscriptions.matching(event)
          : [],
      timeout: this.#settings.deadline + DEADLINE_MARGIN,
      run: (run) => this.#run(run, { schedule, build }),
    })
    if (defaults !== undefined) this.#setDefaults(name, defaults)
    const wants = createDeliveryMatcher(made)
    this.#deliveries.set(name, { matches: wants, maxAttempts: schedule.tries, globs: made.globs })
    return {
      ...made,
      isDelivery: true,
      // A delivery skips an event without subscribed endpoints.
      matches: (event) => wants(event) && this.#subscriptions.matching(event).length > 0,
      holdsBack: (id) => this.#subscriptions.sentHistory.has(id),
      maxAttempts: schedule.tries,
      retryDelay: (failed) => nextDelay(schedule, failed),
    }
  }

  #setDefaults(name: string, given: EndpointDefaults): void {
    const option = `delivery(${JSON.stringify(name)}).defaults`
    const { delivery: other } = this.#defaults
    if (other !== undefined) {
      throw invalidOption(
        `${option} must be set on one delivery only; got another on ${JSON.stringify(other)}. An endpoint gets the events of both.`,
      )
    }
    this.#defaults = { delivery: name, fields: parseEndpointDefaults(given, option) }
  }

  /** Returns the events addressed to this endpoint only, and the flows that deliver them. */
  readonly toEndpoint = async (id: string, events: readonly EventInput[]): Promise<EndpointEvents> => {
    const found = (await this.#docs.read(id)).value
    if (found === undefined) throw unreachableEndpoint(id, 'which is neither a flow nor an endpoint')
    if (found.proof === 'pending') throw unreachableEndpoint(id, 'which is not proven yet')
    const flows = new Set<string>()
    for (const event of events) {
      const made = new FlowEvent(createEvent(event, { now: this.#deps.now(), dedupeFor: 0 }))
      const { tenant = '', type } = made
      const [ownTenant, eventTenant] = [found.tenant, tenant].map((name) => JSON.stringify(name))
      if (tenant !== found.tenant)
        throw unreachableEndpoint(id, `which is of the tenant ${ownTenant}, and the event is of ${eventTenant}`)
      const carrier = this.#findCarrier(made)
      if (carrier === undefined)
        throw unreachableEndpoint(id, `and no delivery of this app takes ${JSON.stringify(type)}`)
      flows.add(carrier)
    }
    const addressed = events.map((event) => ({
      ...event,
      attributes: { ...event.attributes, [TARGET_ENDPOINT_ATTRIBUTE]: id },
    }))
    return { flows, events: addressed }
  }

  /** The first delivery that takes an event for one endpoint carries it, so that the endpoint gets it once. */
  #findCarrier(event: FlowEvent): string | undefined {
    for (const [name, { matches: wants }] of this.#deliveries) if (wants(event)) return name
    return undefined
  }

  maintenanceTasks(settings: Pick<Settings, 'keepEvents'>): readonly MaintenanceTask[] {
    return [this.#disabledEndpointsTask(settings), this.backlog.task]
  }

  /** Drops the waiting events of endpoints that were disabled long ago and not enabled again. */
  #disabledEndpointsTask({ keepEvents }: Pick<Settings, 'keepEvents'>): MaintenanceTask {
    const keep = keepEvents[''] ?? Infinity
    return {
      name: 'disabled endpoints',
      run: async () => {
        if (this.#deliveries.size === 0) return HOURLY
        for await (const id of this.#breakers.disabledBefore(this.#deps.now() - keep)) await this.#lanes.drop(id)
        return HOURLY
      },
    }
  }

  /** Purges the stored responses of endpoints to the purged events. */
  async purgeAnswers(target: PurgeTarget): Promise<void> {
    const deliveries = [...this.#deliveries.keys()]
    await purgeAnswers({ store: this.#deps.store, docs: this.#docs, histories: this.#histories, deliveries }, target)
  }

  isHeldBack(lane: Lane): Promise<boolean> {
    return this.#lanes.isHeldBack(lane)
  }

  async retried(lanes: readonly { readonly flow: string; readonly key: string }[]): Promise<void> {
    for (const { flow: name, key } of lanes)
      if (this.#deliveries.has(name)) await this.#lanes.probe(name, key, this.#deps.now())
  }

  /** `close` waits at most this long for the store. */
  async close(most: Millis): Promise<void> {
    await waitAtMost(this.#deps.clock, this.#histories.flush(), most)
    await (await this.#transport)?.close()
    await (await this.#threads)?.close()
  }

  async #run(run: HandledRun, policy: DeliveryPolicy): Promise<Ending> {
    const nextAttempt = (asked = 0): Millis | undefined => {
      const now = this.#deps.now()
      const elapsed = run.failingSince === 0 ? 0 : now - run.failingSince
      const least = nextDelay(policy.schedule, { failures: run.attempt, elapsed, random: 0, requestedDelay: asked })
      return least === undefined ? undefined : now + least
    }
    // A failing store or a missing key is not the endpoint's fault.
    const report = await this.#deliver(run, policy.build, nextAttempt).catch((error: unknown): DeliveryReport => {
      if (error instanceof RateLimitDeferred) throw error
      return { result: { kind: 'broken', error }, rest: run.events, tried: 0 }
    })
    const { result } = report
    if (result.kind === 'ours' || result.kind === 'broken') this.#noteOwnFailure(run, result)
    if (result.kind === 'retry' && result.detail !== undefined) run.log.warn(`It was not delivered: ${result.detail}`)
    const isLast = result.kind === 'retry' && nextAttempt(result.after) === undefined
    return toEnding(report, run.events, isLast)
  }

  /** `#noteOwnFailure` adds an entry to the endpoint's history. It counts as no attempt and only explains the missing delivery. */
  #noteOwnFailure({ id, flow, key, attempt, signal, log }: Run, outcome: OwnFailure): void {
    // A stopping process reports the abort elsewhere.
    if (signal.aborted) return
    this.#deps.count(flow, 'own-failure')
    const [shown, whole] = outcome.kind === 'ours' ? [outcome.reason, outcome.reason] : failureTexts(outcome.error)
    log.warn(`It was not delivered, by no fault of the endpoint: ${whole}`)
    const [at, error] = [this.#deps.now(), `Not the endpoint's fault: ${shown}`]
    const nothing = { ms: 0, status: undefined, answer: '', latency: 0, isLast: false }
    this.#histories.note(key, { run: id, attempt, at, error, ...nothing, isOurs: true })
  }

  async #deliver(
    run: HandledRun,
    build: BodyFunction | undefined,
    nextAttempt: DeliveryBatch['nextAttempt'],
  ): Promise<DeliveryReport> {
    const { id, flow, key, attempt, replay, events, signal } = run
    const { sent } = (run.state ?? {}) as Partial<DeliveryProgress>
    const extend = (): void => run.extend(this.#settings.deadline + DEADLINE_MARGIN)
    const which = { endpoint: key, name: flow, run: id, attempt, replay, events }
    const batch = { ...which, sent, build, signal, extend, nextAttempt }
    const report = await deliver(this.#delivery, batch)
    const { result } = report
    if (result.kind === 'held' || result.kind === 'disable')
      await this.#lanes.holdOne(flow, key, { reason: result.reason, by: ENGINE_ACTOR })
    return report
  }

  /** The endpoint's own rate is a limit like any other. */
  readonly #atEndpointRate: EndpointRateGate = ({ id, rate }, call, signal) => {
    if (rate === null) return call()
    const limit = createLimit(ENDPOINT_LIMIT, { ...rate, maxWait: MAX_WAIT }, this.#deps.limits).per(id)
    return limit.run(call, signal === undefined ? {} : { signal })
  }

  #createTransforms(): Transforms {
    const { store, clock, now } = this.#deps
    const threads = (): Promise<ScriptThreads> =>
      (this.#threads ??= import('../deliver/transform/threads.ts').then((module) => new module.ScriptThreads()))
    const parts = { store, clock, now, docs: this.#docs, versions: new TransformVersions(store), threads }
    return withArgumentChecks(new Transforms(parts), 'endpoints.transforms', TRANSFORM_ARGUMENTS)
  }

  #openTransport(): Promise<Transport> {
    const { clock, testAgent } = this.#deps
    this.#transport ??= (async () => {
      const [{ guardedAgent }, { post }] = await Promise.all([
        import('../deliver/http/guard.ts'),
        import('../deliver/http/post.ts'),
      ])
      const agent = testAgent() ?? guardedAgent({ clock, ...this.#settings.rules })
      return { post, agent, close: () => agent.destroy() }
    })()
    return this.#transport
  }
}

/** A delivery takes received events only if a glob names their source. Its predicate sees events that the app published only. */
function createDeliveryMatcher(made: Flow): Flow['matches'] {
  if (made.globs === undefined) return (event) => !event.received && !isOperatorNews(event) && made.matches(event)
  const matchesName = createMatcher(made.globs, `${made.name}.on`, 'published')
  return (event) => matchesName(event) && made.matches(event)
}

interface DeliveryPolicy {
  readonly schedule: DeliverySchedule
  readonly build: BodyFunction | undefined
}

type OwnFailure = Extract<DeliveryResult, { kind: 'ours' | 'broken' }>

function unreachableEndpoint(id: string, why: string): SluiceError {
  return new SluiceError('EVENT_INVALID', `to names ${JSON.stringify(id)}, ${why}; nothing was stored.`)
}

/** `nextDelay` ends after the scheduled number of attempts, even if all of them came early. */
function nextDelay(schedule: DeliverySchedule, failed: FailedAttempt): Millis | undefined {
  return failed.failures >= schedule.tries ? undefined : schedule.delay(failed)
}
