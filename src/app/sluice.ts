// `Sluice` is the composition root, which connects all parts. An app is declared first and started then.
import { Alerting } from './alerting.ts'
import { withDevFormat } from './dev-mode.ts'
import { Deliveries, type DeliveryOptions } from './deliveries.ts'
import type { Endpoints } from '../deliver/endpoints.ts'
import { SwappableClock, systemClock, waitAtMost, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Api } from '../api/api.ts'
import type { RouteHandler, RouteOptions } from '../http/app-route.ts'
import type { ListenOptions } from '../http/server.ts'
import type { DashboardContext } from '../http/dashboard.ts'
import type { FetchContext } from '../http/web-fetch.ts'
import { LimitMeter } from '../limit/meter.ts'
import { closeLimits, createLimit, type Limit, type LimitOptions, type LimitDependencies } from '../limit/limit.ts'
import { assertArguments, invalidOption as invalid } from '../validate/options.ts'
import type { EventInput, PublishResult } from '../model/event.ts'
import type { Flow } from '../model/flow.ts'
import { Emitter } from '../observe/emitter.ts'
import { explain, type ExplainDependencies, type Explanation } from '../observe/explain/explain.ts'
import { createAppLog, type AppLog } from '../observe/log/log.ts'
import type { AlertOptions } from '../admin/alerts.ts'
import { readStats } from '../admin/stats.ts'
import { Metrics } from '../observe/metrics/metrics.ts'
import { StatsRecorder } from '../observe/stats/recorder.ts'
import type { ReplayRecord } from '../admin/replay-record.ts'
import { resumeReplays } from '../admin/replays.ts'
import { withTrace } from '../observe/trace/context.ts'
import { Traces } from '../observe/trace/spans.ts'
import { describeWork } from './explaining.ts'
import { StoreHandle } from './store-handle.ts'
import { createAdmin, type Admin } from '../admin/admin.ts'
import { alertFlow, delayedFlow, everyFlow, replayFlow, createReplayStep } from './internal-flows.ts'
import { parseSettings, type HandledFlowOptions, type Settings, type SluiceOptions } from './options.ts'
import { createSchedule, parseTimeZone, type Schedule } from '../publish/cron.ts'
import { Publisher } from '../publish/publisher.ts'
import { prepareRunEvents, publishEvents, type PublishDependencies, type PublishOptions } from '../publish/publish.ts'
import type { Routes } from '../publish/route.ts'
import { RoutingTime } from '../publish/route.ts'
import type { Source } from '../receive/source.ts'
import type { SourceOptions } from '../receive/source-options.ts'
import { Receiving, type ListeningApp } from './receiving.ts'
import type { Handler, Run } from '../run/run.ts'
import { createFlow } from '../flow/options.ts'
import type { EventSelector } from '../flow/selection.ts'
import { parseEncryptionKeys, Keyring } from '../crypto/keyring.ts'
import type { ProductionSetup } from './production-checks.ts'
import { getStoreKind, computeStoreId } from '../store/open.ts'
import type { TestControls, TestHooks } from './test-hooks.ts'
import { Runtime } from './runtime.ts'

let enterTest: (app: Sluice, test: TestHooks) => TestControls

export class Sluice {
  /** `admin` holds everything that operators read and steer. The admin API and the command line call the same members. */
  readonly admin: Admin
  /** The endpoints that deliveries post to. */
  readonly endpoints: Endpoints
  /** For the checks before a start in production. */
  readonly productionSetup: () => ProductionSetup
  readonly #events = new Emitter()
  #settings: Settings
  readonly #clock: SwappableClock
  readonly #flows = new Map<string, Flow>()
  readonly #schedules: Schedule[] = []
  readonly #alerting: Alerting
  readonly #recorder: StatsRecorder
  readonly #metrics: Metrics
  readonly #deliveries: Deliveries
  readonly #limits = new Map<string, Limit>()
  readonly #limitDependencies: LimitDependencies
  readonly #storeHandle: StoreHandle
  readonly #publisher: Publisher
  readonly #traces: Traces
  readonly #receiving: Receiving
  readonly #pressureLevels = new Map<string, number>()
  readonly #routingTime: RoutingTime
  readonly #log: AppLog
  #api: Promise<Api> | undefined
  #runtime: Runtime | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #isDrained = false
  #test: TestHooks | undefined

  constructor(options: SluiceOptions) {
    this.#settings = parseSettings(options)
    this.#clock = new SwappableClock(options.clock ?? systemClock)
    this.#log = createAppLog(this.#events, withDevFormat(options.log), this.#clock)
    this.#traces = new Traces(options.traces)
    const keyring = new Keyring(parseEncryptionKeys(options.encryptionKey, process.env))
    const { keepBytes, keepEvents, isAdminOpen, servesDashboard, dedupeFor } = this.#settings
    this.#storeHandle = new StoreHandle(options.store, {
      clock: this.#clock,
      keyring,
      encrypted: () => this.#receiving,
      process: () => this.#settings.process,
      flows: this.#flows,
      emit: this.#events.emit,
      meterStore: (opened) => this.#metrics.meterStore(opened),
    })
    const { store, registry, diskUsed, overlaps } = this.#storeHandle
    const common = { store, clock: this.#clock, now: () => this.#now(), emit: this.#events.emit }
    const meter = new LimitMeter(this.#clock)
    this.#recorder = new StatsRecorder({ ...common, events: this.#events })
    this.#metrics = new Metrics({
      ...common,
      events: this.#events,
      flows: () => this.#flows.keys(),
      countRefused: () => this.#receiving.countRefused(),
      maxBytes: keepBytes,
      diskUsed,
    })
    const fetch: typeof globalThis.fetch = (...args) => (this.#test?.outgoing ?? globalThis).fetch(...args)
    this.#limitDependencies = { ...common, fetch, meter }
    this.#routingTime = new RoutingTime(this.#clock, common.emit)
    const publisher = (this.#publisher = new Publisher({ ...common, ...this.#routeTable, dedupeFor, overlaps }))
    this.#receiving = new Receiving({
      ...common,
      publisher,
      keyring,
      addressRate: this.#settings.addressRate,
      api: () => (this.#api ??= this.#adminApi()),
      servesDashboard,
      traces: this.#traces,
      storeId: () => computeStoreId(this.#storeHandle.address),
    })
    const stats = { ...common, recorder: this.#recorder, keepEvents, meter }
    this.#alerting = new Alerting({
      ...common,
      storeHandle: this.#storeHandle,
      publisher,
      stats,
      // The largest number means that the store is unbounded.
      keepBytes: keepBytes < Number.MAX_SAFE_INTEGER ? keepBytes : undefined,
    })
    this.admin = createAdmin({
      ...stats,
      registry,
      keyring,
      retryUnrouted: () => this.#runtime?.placeUnroutedSoon(),
      publishStep: this.#publishReplayStep,
      flows: this.#flows,
      limits: this.#limits,
      sources: this.#receiving.admin,
      deliveries: () => this.#deliveries,
      alerts: this.#alerting.alerts,
      stats: (asked, scan) => readStats({ ...stats, scan }, asked),
      metrics: () => this.#metrics.render(),
      work: () => this.#describeWork(),
    })
    this.#deliveries = new Deliveries({
      ...common,
      settings: options.delivery ?? {},
      limits: this.#limitDependencies,
      publisher,
      publishStep: this.#publishReplayStep,
      knownRoutesEpoch: () => this.#storeHandle.storeClock.routesEpoch,
      keyring,
      admin: () => this.admin,
      testAgent: () => this.#test?.outgoing?.agent,
      count: (flow, outcome) => this.#metrics.recordDelivery(flow, outcome),
    })
    this.endpoints = this.#deliveries.endpoints
    this.productionSetup = () => ({
      hasDeliveries: this.#deliveries.epoch !== Infinity,
      hasKey: keyring.hasKey,
      allowLoopback: options.delivery?.allowLoopback === true,
      isAdminOpen,
    })
    this.#declare(delayedFlow(common.now, this.#receiving))
    const [limits, endpoints] = [this.#limitDependencies, this.#deliveries.backlog]
    const replays = { flows: this.#flows, limits, endpoints, publishStep: this.#publishReplayStep }
    this.#declare(replayFlow({ ...common, ...this.#routeTable, ...replays }))
    this.#events.on('event.unrouted', () => this.#runtime?.placeUnroutedSoon())
  }

  /** `on` calls the listener each time the app emits the event. It returns a function that removes the listener. */
  readonly on: Emitter['on'] = (name, listener) => this.#events.on(name, listener)

  /** `onAny` calls the listener with every event that the app emits. It returns a function that removes the listener. */
  readonly onAny: Emitter['onAny'] = (listener) => this.#events.onAny(listener)

  /** `once` resolves with the next event of that name. */
  readonly once: Emitter['once'] = (name) => this.#events.once(name)

  /** `flow` declares what happens to some events. */
  flow<On extends EventSelector>(name: string, options: HandledFlowOptions<On>): this {
    return this.#declare(createFlow(name, options))
  }

  /** `delivery` declares a flow that posts signed batches of events to the endpoints that want them, one at a time and in order. */
  delivery<On extends EventSelector>(name: string, options: DeliveryOptions<On>): this {
    return this.#declare(this.#deliveries.flow(name, options))
  }

  /** `limit` declares a rate that flows and processes share. */
  limit(name: string, options: LimitOptions): Limit {
    if (this.#limits.has(name)) throw invalid(`there are two limits named ${JSON.stringify(name)}; keep the first.`)
    const limit = createLimit(name, options, this.#limitDependencies)
    this.#limits.set(name, limit)
    return limit
  }

  /** `every` runs the handler by an interval (`'5m'`) or a cron expression. Each tick causes one run over all processes. */
  every(name: string, when: string, run: Handler, options: { readonly timeZone?: string } = {}): this {
    this.#schedules.push(createSchedule(name, when, parseTimeZone(name, options)))
    return this.#declare(everyFlow(name, run))
  }

  /** `alert` declares a condition that notifies people when it has held for a while, and again when it is over. */
  alert(name: string, options: AlertOptions & { readonly notify?: Parameters<typeof alertFlow>[1] }): this {
    this.#alerting.declare(name, options)
    return options.notify === undefined ? this : this.#declare(alertFlow(name, options.notify))
  }

  /** `publish` resolves once the events would survive a crash, with the result of each event. */
  async publish(
    event: EventInput | readonly EventInput[],
    options: PublishOptions = {},
  ): Promise<readonly PublishResult[]> {
    if (this.#isDrained) throw new SluiceError('APP_STOPPED', 'The app was stopped.')
    const list = Array.isArray(event) ? (event as readonly EventInput[]) : [event as EventInput]
    await this.#storeHandle.store()
    return publishEvents(this.#publishing, list.map(withTrace), options)
  }

  /** `explain` returns where the events of a key are and what they wait for, in one sentence. */
  async explain(flow: string, key: string): Promise<Explanation> {
    assertArguments([flow, key], { flow: 'text', key: 'text' }, 'explain: ')
    return explain(await this.#describeWork(), flow, key)
  }

  async #describeWork(): Promise<ExplainDependencies> {
    const [store, registry] = [await this.#storeHandle.store(), await this.#storeHandle.registry()]
    return describeWork({ store, registry, flows: this.#flows, worker: this.#runtime?.worker })
  }

  /** `source` declares a source of requests. It verifies the sender of each request before anything is stored. */
  source(name: string, source: Source, options: SourceOptions = {}): this {
    if (this.#starting !== undefined) throw invalid(`source ${JSON.stringify(name)} must be declared before start.`)
    this.#receiving.source(name, source, options)
    return this
  }

  /** `route` adds a page or an API of the app's own. `/alerts/:id` has a parameter; a path that ends with * matches all below it. */
  route<Path extends string>(method: string, path: Path, handle: RouteHandler<Path>, options?: RouteOptions): this {
    this.#receiving.route(method, path, handle, options)
    return this
  }

  /** `fetch` is a web-standard handler for the sources and routes, which any framework can mount. */
  readonly fetch = (request: Request, context: FetchContext = {}): Promise<Response> =>
    this.#receiving.fetch(request, context)

  /** `dashboard` is a web-standard handler for the dashboard, which a host app can mount at any path and behind its own sign-in. */
  readonly dashboard = (request: Request, context: DashboardContext = {}): Promise<Response> =>
    this.#receiving.dashboard(request, context)

  /** `listen` serves sources and routes. It resolves once the server accepts requests. */
  listen(options: ListenOptions = {}): Promise<ListeningApp> {
    if (this.#stopping !== undefined) return Promise.reject(new SluiceError('APP_STOPPED', 'The app was stopped.'))
    return this.#receiving.listen(options)
  }

  /** `start` starts to work on due lanes. */
  start(): Promise<void> {
    if (this.#stopping !== undefined) return Promise.reject(new SluiceError('APP_STOPPED', 'The app was stopped.'))
    return (this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    }))
  }

  async #start(): Promise<void> {
    const [store, known] = [await this.#storeHandle.store(), await this.#storeHandle.registry()]
    await known.announceServed()
    await this.#deliveries.refresh()
    const tasks = [{ name: 'stats', run: this.#recorder.fold }, ...this.#deliveries.maintenanceTasks(this.#settings)]
    // The steps that can fail run before any work starts.
    await resumeReplays(store, this.#publishReplayStep)
    const working = new Runtime({
      store,
      watchesOutbox: this.#test?.watchesOutbox === true,
      registry: known,
      ...this.#routeTable,
      preparePublication: (events, run, from) => prepareRunEvents(this.#publishing, events, run, from),
      clock: this.#clock,
      storeClock: this.#storeHandle.storeClock,
      flows: this.#flows,
      schedules: this.#schedules,
      settings: this.#settings,
      publisher: this.#publisher,
      onPressure: (flow, level) => void this.#pressureLevels.set(flow, level),
      emit: this.#events.emit,
      log: this.#log.forRun,
      onLag: (ms) => this.#metrics.recordLag(ms),
      tasks: [...this.#alerting.maintenanceTasks(store, this.#settings.process), ...tasks],
      minPollInterval: this.#test?.minPollInterval,
    })
    await working.start()
    this.#runtime = working
  }

  static {
    enterTest = (app, test) => app.#enterTest(test)
  }

  #enterTest(test: TestHooks): TestControls {
    if (this.#storeHandle.isOpen) throw invalid('testApp needs an app that has not been used yet; create a new one.')
    this.#test = test
    this.#clock.swap(test.clock)
    this.#storeHandle.address = test.store
    this.#settings = { ...this.#settings, poll: test.minPollInterval, minWakeUpInterval: 0 }
    return {
      hasFlow: (name) => this.#flows.has(name),
      crash: () => {
        this.#runtime?.crash()
        this.#runtime = undefined
        this.#starting = undefined
        this.#settings = { ...this.#settings, process: `${this.#settings.process}'` }
      },
    }
  }

  /** `stop` drains: it starts no runs, waits for the live ones, aborts them after `shutdownTimeout`, and gives back what it can. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop())
  }

  async #stop(): Promise<void> {
    void this.#api?.then((api) => api.close())
    // Neither a slow sender nor an unreachable store may keep the process alive.
    await waitAtMost(this.#clock, this.#receiving.stop(), this.#settings.shutdownTimeout)
    this.#log.close()
    await this.#starting?.catch(() => {})
    const working = this.#runtime
    this.#runtime = undefined
    await working?.stop()
    await waitAtMost(this.#clock, closeLimits(this.#limitDependencies), this.#settings.abortTimeout)
    // The handlers of live runs may publish until here.
    this.#isDrained = true
    await waitAtMost(this.#clock, this.#publisher.drained(), this.#settings.abortTimeout)
    await this.#recorder.stop()
    await this.#deliveries.close(this.#settings.abortTimeout)
    await this.#storeHandle.close(this.#settings.abortTimeout)
  }

  #declare(flow: Flow): this {
    if (this.#starting !== undefined) throw invalid(`flow ${JSON.stringify(flow.name)} must be declared before start.`)
    if (this.#flows.has(flow.name)) throw invalid(`there are two flows named ${JSON.stringify(flow.name)}; rename one.`)
    const traced = (one: Run): unknown => this.#traces.traceRun(one, flow.run as (one: Run) => unknown)
    const watched = (one: never): unknown => (this.#test === undefined ? traced(one) : this.#test.watch(one, traced))
    this.#flows.set(flow.name, { ...flow, run: watched })
    return this
  }

  /** The flows and endpoints that route all events. The epoch is the older one of the two (L18). */
  readonly #routeTable = {
    routes: (): Routes => ({
      flows: [...this.#flows.values()],
      foreign: this.#storeHandle.loadedRegistry?.foreign ?? [],
      pressureLevel: (flow) => this.#pressureLevels.get(flow) ?? 0,
      measure: this.#routingTime.measure,
    }),
    routesEpoch: (): number => Math.min(this.#storeHandle.loadedRegistry?.epoch ?? 0, this.#deliveries.epoch),
    refreshRoutes: async (): Promise<void> => {
      await (await this.#storeHandle.registry()).refresh()
      await this.#deliveries.refresh()
    },
  }

  get #publishing(): PublishDependencies {
    const [{ routes }, { toEndpoint }, { dedupeFor }] = [this.#routeTable, this.#deliveries, this.#settings]
    const { outbox } = this.#storeHandle
    return { publisher: this.#publisher, routes, now: () => this.#now(), toEndpoint, dedupeFor, outbox }
  }

  readonly #publishReplayStep = (of: ReplayRecord): Promise<unknown> => this.#publisher.publish([createReplayStep(of)])

  #now(): Millis {
    return this.#storeHandle.storeClock.now()
  }

  /** Created on first use, because only some apps need it. */
  async #adminApi(): Promise<Api> {
    const { Api } = await import('../api/api.ts')
    return new Api(this, {
      keys: this.admin.keys,
      store: this.#storeHandle.store,
      clock: this.#clock,
      isMetricsPublic: this.#settings.openMetrics,
      isOpen: this.#settings.isAdminOpen,
      emit: this.#events.emit,
      storeKind: () => getStoreKind(this.#storeHandle.address),
    })
  }
}

/** The hook through which `sluice/testing` replaces clock and store and observes runs. It works only before the app is used. */
export const attachTest = (app: Sluice, test: TestHooks): TestControls => enterTest(app, test)
