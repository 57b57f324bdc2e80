// The composition root: the one file that knows all the parts. An app is declared first, then started.
import { Alerting } from './alerting.ts'
import { Delivering, type DeliveryOptions } from './delivering.ts'
import type { Endpoints } from './deliver/endpoints.ts'
import { ClockInUse, systemClock, within, type Millis } from './clock.ts'
import { SluiceError } from './errors.ts'
import type { Api } from './api/api.ts'
import type { RouteHandler } from './http/own-route.ts'
import type { ListenOptions } from './http/server.ts'
import type { FetchContext } from './http/web-fetch.ts'
import { endLimits, makeLimit, type Limit, type LimitOptions, type LimitParts } from './limit/limit.ts'
import { mustFit } from './model/arguments.ts'
import type { EventInput } from './model/event-input.ts'
import type { Flow } from './model/flow.ts'
import type { FlowEvent } from './model/flow-event.ts'
import { Emitter } from './observe/events.ts'
import { explain, type Explanation } from './observe/explain.ts'
import { runLogs } from './observe/log.ts'
import type { AlertOptions, Alerts } from './operate/alerts.ts'
import { Figures } from './operate/figures.ts'
import type { ReplayRecord } from './operate/replay-record.ts'
import { goOnWithReplays } from './operate/replays.ts'
import { withTrace } from './observe/trace-context.ts'
import { Traces } from './observe/traces.ts'
import { Opening } from './opening.ts'
import { operating, type Operating } from './operating.ts'
import { alertFlow, delayedFlow, replayFlow, replayStep } from './own-flows.ts'
import { settingsOf, type Settings, type SluiceOptions } from './options.ts'
import { EVERY, schedule, zoneOf, type Schedule } from './receive/every.ts'
import { Publisher, type Published } from './receive/publisher.ts'
import { publishing, type PublishOptions } from './receive/publishing.ts'
import type { Routes } from './receive/route.ts'
import { RoutingTime } from './receive/routing-time.ts'
import type { Source } from './receive/source.ts'
import type { SourceOptions } from './receive/declared-source.ts'
import type { RefusedRequest } from './receive/refused-requests.ts'
import { Receiving, type ListeningApp } from './receiving.ts'
import type { Ending } from './run/endings.ts'
import type { Run } from './run/run.ts'
import { flow as checkedFlow, type FlowOptions } from './schedule/flow.ts'
import { masterKeys, Seal } from './seal.ts'
import { setUpOf, type SetUp } from './set-up.ts'
import { outboxOf } from './store/open.ts'
import { storeMark } from './store-mark.ts'
import type { Crashable, UnderTest } from './under-test.ts'
import { Working } from './working.ts'

type Handler = (run: Run) => Ending | void | Promise<Ending | void>

let enterTest: (app: Sluice, test: UnderTest) => Crashable

export class Sluice {
  readonly events: Emitter = new Emitter()
  declare readonly deadLetters: Operating['deadLetters']
  declare readonly lanes: Operating['lanes']
  declare readonly flows: Operating['flows']
  declare readonly replays: Operating['replays']
  declare readonly keys: Operating['keys']
  /** Under which secrets and payloads are sealed, and how that is exchanged. */
  declare readonly masterKey: Operating['masterKey']
  declare readonly audit: Operating['audit']
  readonly alerts: Alerts
  /** Whom deliveries go to. */
  readonly endpoints: Endpoints
  /** Events as they are stored; `events` is what happens. */
  declare readonly stored: Operating['stored']
  /** Those that have ended. */
  declare readonly runs: Operating['runs']
  declare readonly limits: Operating['limits']
  /** What can be done to a way in. */
  declare readonly sources: Operating['sources']
  /** Removes the data of a key, a tenant or an event, wherever it is; what runs with it is told, and settles nothing. */
  declare readonly purge: Operating['purge']
  /** How much came, how long it took and how much failed over a window, and how much waits now. */
  readonly stats: Figures['stats']
  /** For who decides whether it may run so. */
  readonly setUp: () => SetUp
  /** The text for Prometheus. */
  readonly metrics: Figures['metrics']
  #settings: Settings
  readonly #clock: ClockInUse
  readonly #flows = new Map<string, Flow>()
  readonly #schedules: Schedule[] = []
  readonly #alerting: Alerting
  readonly #figures: Figures
  readonly #delivering: Delivering
  readonly #limits = new Map<string, Limit>()
  readonly #limitParts: LimitParts
  readonly #opening: Opening
  readonly #publisher: Publisher
  readonly #traces: Traces
  readonly #receiving: Receiving
  readonly #levels = new Map<string, number>()
  readonly #routing: RoutingTime
  readonly #log: ReturnType<typeof runLogs>
  #api: Promise<Api> | undefined
  #working: Working | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #test: UnderTest | undefined

  constructor(options: SluiceOptions) {
    this.#settings = settingsOf(options)
    this.#clock = new ClockInUse(options.clock ?? systemClock)
    this.#log = runLogs(this.events, options.log ?? {}, this.#clock)
    this.#traces = new Traces(options.traces)
    const { emit } = this.events
    const seal = new Seal(masterKeys(options.key, process.env))
    this.#opening = new Opening(options.store, {
      clock: this.#clock,
      seal,
      isSealed: (source) => this.#receiving.isSealed(source),
      process: () => this.#settings.process,
      flows: this.#flows,
      emit,
      metered: (opened) => this.#figures.metered(opened),
    })
    const { store, known } = this.#opening
    const common = { store, clock: this.#clock, now: () => this.#now(), emit }
    this.#figures = new Figures({
      ...common,
      events: this.events,
      flows: () => this.#flows.keys(),
      refusals: () => this.#receiving.refusals(),
      maxBytes: this.#settings.keepBytes,
      diskUsed: this.#opening.diskUsed,
    })
    this.stats = this.#figures.stats
    this.metrics = this.#figures.metrics
    this.#limitParts = { store, clock: this.#clock, emit, fetch: (...args) => globalThis.fetch(...args) }
    this.#routing = new RoutingTime(this.#clock, emit)
    this.#publisher = new Publisher({
      ...common,
      ...this.#routed,
      dedupeFor: this.#settings.dedupeFor,
    })
    this.#receiving = new Receiving({
      ...common,
      publisher: this.#publisher,
      seal,
      addressRate: this.#settings.addressRate,
      api: () => (this.#api ??= this.#adminApi()),
      traces: this.#traces,
      storeMark: () => storeMark(this.#opening.address),
    })
    const step = this.#replayStep
    const retried = (): void => this.#working?.placeSoon(true)
    const sources = { declared: () => this.#receiving.sources, receiving: this.#receiving }
    const declared = { flows: this.#flows, limits: this.#limits, sources }
    const parts: Operating = operating({ store, emit, known, seal, retried, replayStep: step, ...declared })
    // All of them, under the names that they have there.
    Object.assign(this, parts)
    this.#alerting = new Alerting({
      clock: this.#clock,
      opening: this.#opening,
      publisher: this.#publisher,
      emit,
      figures: this.#figures,
    })
    this.alerts = this.#alerting.alerts
    const delivering = { settings: options.delivery ?? {}, limits: this.#limitParts, publisher: this.#publisher }
    const routesHeard = (): number => this.#opening.time.routes
    this.#delivering = new Delivering({ ...common, ...delivering, routesHeard, seal, operated: () => this })
    this.endpoints = this.#delivering.endpoints
    this.setUp = () => setUpOf({ seal, settings: options.delivery, delivering: this.#delivering })
    this.#declare(delayedFlow(() => this.#now()))
    const replayed = { store, flows: this.#flows, limits: this.#limitParts, step, emit }
    this.#declare(replayFlow({ ...replayed, ...this.#routed }))
    this.events.on('event.unrouted', () => this.#working?.placeSoon(false))
  }

  /** What should happen to some events. */
  flow(name: string, options: FlowOptions<Run> & { readonly run: Handler }): this {
    return this.#declare(checkedFlow(name, options))
  }

  /** Batches of events to all endpoints that want them, signed, one at a time and in order to each. */
  delivery(name: string, options: DeliveryOptions): this {
    return this.#declare(this.#delivering.flow(name, options))
  }

  /** A rate that flows and processes share. */
  limit(name: string, options: LimitOptions): Limit {
    if (this.#limits.has(name)) throw invalid(`there are two limits named ${JSON.stringify(name)}; keep the first.`)
    const limit = makeLimit(name, options, this.#limitParts)
    this.#limits.set(name, limit)
    return limit
  }

  /** `'5m'`, or a cron expression. However many processes tick, one run comes of each tick. */
  every(name: string, when: string, run: Handler, options: { readonly timeZone?: string } = {}): this {
    this.#schedules.push(schedule(name, when, zoneOf(name, options)))
    const on = (event: FlowEvent): boolean => event.source === EVERY && event.type === name
    const flow = checkedFlow<Run>(`every/${name}`, { on, key: () => name, take: 'last', run })
    return this.#declare({ ...flow, internal: true })
  }

  /** Something people are to hear of: when it is so for a while, and again when it is over. */
  alert(name: string, options: AlertOptions & { readonly notify?: Handler }): this {
    this.#alerting.declare(name, options)
    return options.notify === undefined ? this : this.#declare(alertFlow(name, options.notify))
  }

  /** Resolves when the events would survive a crash; says of each what became of it. */
  async publish(
    event: EventInput | readonly EventInput[],
    options: PublishOptions = {},
  ): Promise<readonly Published[]> {
    if (this.#stopping !== undefined) throw new SluiceError('APP_STOPPED', 'The app was stopped.')
    const list = Array.isArray(event) ? (event as readonly EventInput[]) : [event as EventInput]
    await this.#opening.store()
    const { dedupeFor } = this.#settings
    const { toEndpoint } = this.#delivering
    const parts = { publisher: this.#publisher, routes: this.#routed.routes, now: () => this.#now(), toEndpoint }
    const outbox = outboxOf(this.#opening.address)
    return publishing({ ...parts, dedupeFor, outbox }, list.map(withTrace), options)
  }

  /** One true sentence on where a key's events are and what they wait for. */
  async explain(flow: string, key: string): Promise<Explanation> {
    mustFit([flow, key], { flow: 'text', key: 'text' }, 'explain: ')
    const [store, known] = [await this.#opening.store(), await this.#opening.known()]
    const engine = this.#working?.engine
    return explain(
      {
        store,
        flows: this.#flows,
        served: (name) => (engine !== undefined && this.#flows.has(name)) || known.servedAt(name) !== undefined,
        waitingFor: (run) => engine?.waitingFor(run),
        processFull: () => engine?.isFull() === true,
        lingers: (lane) => engine?.lingers(lane) === true,
      },
      flow,
      key,
    )
  }

  /** A way in for requests: who they are from is proved before anything is stored. */
  source(name: string, source: Source, options: SourceOptions = {}): this {
    if (this.#starting !== undefined)
      throw invalid(`source ${JSON.stringify(name)} comes after start; declare it before.`)
    this.#receiving.source(name, source, options)
    return this
  }

  /** A page or an API of the app's own beside its sources. A path that ends with * is all below it. */
  route(method: string, path: string, handle: RouteHandler): this {
    this.#receiving.route(method, path, handle)
    return this
  }

  /** The last requests that a source refused, in any process, newest first; of `''` those to no source. */
  refused(source: string): Promise<readonly RefusedRequest[]> {
    return this.sources.refused(source)
  }

  /** The receiving part as a web-standard handler, to be mounted in any framework. */
  readonly fetch = (request: Request, context: FetchContext = {}): Promise<Response> =>
    this.#receiving.fetch(request, context)

  /** Serves sources and routes. Resolves once requests are taken. */
  listen(options: ListenOptions = {}): Promise<ListeningApp> {
    if (this.#stopping !== undefined) return Promise.reject(new SluiceError('APP_STOPPED', 'The app was stopped.'))
    return this.#receiving.listen(options)
  }

  /** Begins to work on what is due. */
  start(): Promise<void> {
    if (this.#stopping !== undefined) return Promise.reject(new SluiceError('APP_STOPPED', 'The app was stopped.'))
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    return this.#starting
  }

  async #start(): Promise<void> {
    const [store, known] = [await this.#opening.store(), await this.#opening.known()]
    await known.say()
    await this.#delivering.refresh()
    const chores = [this.#figures.chore, this.#delivering.chore(this.#settings)]
    // What can fail comes before anything works.
    await goOnWithReplays(store, this.#replayStep)
    const working = new Working({
      store,
      known,
      ...this.#routed,
      clock: this.#clock,
      time: this.#opening.time,
      flows: this.#flows,
      schedules: this.#schedules,
      settings: this.#settings,
      publisher: this.#publisher,
      pressed: (flow, level) => void this.#levels.set(flow, level),
      emit: this.events.emit,
      log: this.#log,
      lagged: this.#figures.lagged,
      chores: [...this.#alerting.chores(store, this.#settings.process), ...chores],
      calm: this.#test?.calm,
    })
    await working.start()
    this.#working = working
  }

  static {
    enterTest = (app, test) => app.#enterTest(test)
  }

  #enterTest(test: UnderTest): Crashable {
    if (this.#opening.isOpen) throw invalid('testApp comes after the app was used; give it a fresh one.')
    this.#test = test
    this.#clock.use(test.clock)
    this.#opening.address = test.store
    this.#settings = { ...this.#settings, poll: test.calm, newsApart: 0 }
    return {
      hasFlow: (name) => this.#flows.has(name),
      crash: () => {
        this.#working?.crash()
        this.#working = undefined
        this.#starting = undefined
        this.#settings = { ...this.#settings, process: `${this.#settings.process}'` }
      },
    }
  }

  /** Drains: begins nothing new, waits for what runs, aborts it after the grace time, gives back what it can. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    void this.#api?.then((api) => api.end())
    // Neither a slow sender nor a store that does not answer keeps the process.
    await within(this.#clock, this.#receiving.stop(), this.#settings.grace)
    await this.#starting?.catch(() => {})
    const working = this.#working
    this.#working = undefined
    await working?.stop()
    await within(this.#clock, endLimits(this.#limitParts), this.#settings.afterAbort)
    await within(this.#clock, this.#publisher.drained(), this.#settings.afterAbort)
    await this.#figures.stop()
    await this.#delivering.close(this.#settings.afterAbort)
    await this.#opening.close(this.#settings.afterAbort)
  }

  #declare(flow: Flow): this {
    if (this.#starting !== undefined)
      throw invalid(`flow ${JSON.stringify(flow.name)} comes after start; declare it before.`)
    if (this.#flows.has(flow.name)) throw invalid(`there are two flows named ${JSON.stringify(flow.name)}; rename one.`)
    const { run } = flow
    const traced = (one: Run): unknown => this.#traces.run(one, run as (one: Run) => unknown)
    const watched = (one: never): unknown => (this.#test === undefined ? traced(one) : this.#test.watch(one, traced))
    this.#flows.set(flow.name, { ...flow, run: watched })
    return this
  }

  /** By what all events are routed, whoever routes them: flows and endpoints. The epoch is that of the older one (L18). */
  readonly #routed = {
    routes: (): Routes => ({
      flows: [...this.#flows.values()],
      foreign: this.#opening.knownNow?.foreign ?? [],
      level: (flow) => this.#levels.get(flow) ?? 0,
      timed: this.#routing.timed,
    }),
    epoch: (): number => Math.min(this.#opening.knownNow?.epoch ?? 0, this.#delivering.epoch),
    refresh: async (): Promise<void> => {
      await (await this.#opening.known()).refresh()
      await this.#delivering.refresh()
    },
  }

  readonly #replayStep = (of: ReplayRecord): Promise<unknown> => this.#publisher.publish([replayStep(of)])

  #now(): Millis {
    return this.#opening.time.now()
  }

  /** Only who is asked needs it. */
  async #adminApi(): Promise<Api> {
    const { Api } = await import('./api/api.ts')
    const { openMetrics: metricsAreOpen } = this.#settings
    const { emit } = this.events
    return new Api(this, { keys: this.keys, store: this.#opening.store, clock: this.#clock, metricsAreOpen, emit })
  }
}

/** How `sluice/testing` gets in: another clock and store, and a look at every run. Only before the app is used. */
export function underTest(app: Sluice, test: UnderTest): Crashable {
  return enterTest(app, test)
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', what)
}
