// The composition root: the one file that knows all the parts. An app is declared first, then started.
import { ClockInUse, systemClock, within, type Clock, type Millis } from './clock.ts'
import { Engine } from './engine.ts'
import { SluiceError } from './errors.ts'
import { housekeeping } from './housekeeping.ts'
import { makeLimit, type Limit, type LimitOptions, type LimitParts } from './limit/limit.ts'
import type { EventInput } from './model/event-input.ts'
import type { Flow } from './model/flow.ts'
import type { FlowEvent } from './model/flow-event.ts'
import { onlyKnown } from './model/options.ts'
import { Emitter } from './observe/events.ts'
import { explain, type Explanation } from './observe/explain.ts'
import { lifeLog, runLog, SILENT, type RunLog } from './observe/log.ts'
import { DeadLetters } from './operate/dead-letters.ts'
import { Flows, Lanes } from './operate/lanes.ts'
import { settingsOf, type Settings, type SluiceOptions } from './options.ts'
import { DELAYED, dueAt, unwrapped, wrapped } from './receive/delayed.ts'
import { EVERY, schedule, Ticker, type Schedule } from './receive/every.ts'
import { lastTick, setLastTick } from './receive/last-tick.ts'
import { KnownFlows } from './receive/known-flows.ts'
import { Publisher, type Published } from './receive/publisher.ts'
import { isOurs, type Routes } from './receive/route.ts'
import type { Ending } from './run/endings.ts'
import type { Run } from './run/run.ts'
import { flow as checkedFlow, type FlowOptions } from './schedule/flow.ts'
import { matcher } from './schedule/globs.ts'
import { StoreTime } from './schedule/store-time.ts'
import type { Store } from './store/contract/index.ts'
import { openStore } from './store/open.ts'
import type { Placing } from './upkeep/chores.ts'
import { LoopLag } from './upkeep/loop-lag.ts'
import { calmed, Upkeep } from './upkeep/upkeep.ts'

export interface PublishOptions {
  /** Not before then. */
  readonly at?: Date | Millis
  /** Only to these flows, whether or not they ask for such events. */
  readonly to?: string | readonly string[]
}

const PUBLISH_OPTIONS: ReadonlySet<string> = new Set<keyof PublishOptions>(['at', 'to'])

type Handler = (run: Run) => Ending | void | Promise<Ending | void>

interface Opened {
  readonly store: Store
  readonly known: KnownFlows
}

interface Working {
  readonly engine: Engine
  readonly upkeep: Upkeep
  readonly ticker: Ticker
  readonly lag: LoopLag
}

let enterTest: (app: Sluice, test: UnderTest) => Crashable

export class Sluice {
  readonly events: Emitter = new Emitter()
  readonly deadLetters: DeadLetters
  readonly lanes: Lanes
  readonly flows: Flows
  #options: SluiceOptions
  #settings: Settings
  readonly #clock: ClockInUse
  readonly #flows = new Map<string, Flow>()
  readonly #schedules: Schedule[] = []
  readonly #limits = new Map<string, Limit>()
  readonly #limitParts: LimitParts
  readonly #time: StoreTime
  readonly #publisher: Publisher
  readonly #levels = new Map<string, number>()
  readonly #log: (run: RunName) => RunLog
  #opened: Promise<Opened> | undefined
  #known: KnownFlows | undefined
  #deaf: () => void = () => {}
  #working: Working | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #test: UnderTest | undefined
  #placing: Placing | undefined

  constructor(options: SluiceOptions) {
    this.#options = options
    this.#settings = settingsOf(options)
    this.#clock = new ClockInUse(options.clock ?? systemClock)
    this.#log = this.#logged(options)
    this.#time = new StoreTime(this.#clock, (by) => {
      const text = `The clock of the store went ${Math.abs(by)} ms ${by < 0 ? 'back' : 'forward'}.`
      this.events.emit('alert.raised', { alert: 'clock-step', text })
    })
    const store = async (): Promise<Store> => (await this.#open()).store
    const { emit } = this.events
    this.#limitParts = { store, clock: this.#clock, emit, fetch: (...args) => globalThis.fetch(...args) }
    const operate = { store, flows: this.#flows, emit, retried: () => this.#retried() }
    this.deadLetters = new DeadLetters(operate)
    this.lanes = new Lanes(operate)
    this.flows = new Flows(operate)
    this.#publisher = new Publisher({
      store,
      routes: () => this.#routes(),
      epoch: () => this.#known?.epoch ?? 0,
      refresh: async () => (await this.#open()).known.refresh(),
      now: () => this.#now(),
      dedupeFor: this.#settings.dedupeFor,
      emit,
    })
    this.#declare(this.#delayedFlow())
    this.events.on('event.unrouted', () => this.#working?.upkeep.soon('placing'))
  }

  /** What should happen to some events. */
  flow(name: string, options: FlowOptions<Run> & { readonly run: Handler }): this {
    return this.#declare(checkedFlow(name, options))
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
    this.#schedules.push(schedule(name, when, options.timeZone))
    const on = (event: FlowEvent): boolean => event.source === EVERY && event.type === name
    const flow = checkedFlow<Run>(`every/${name}`, { on, key: () => name, take: 'last', run })
    return this.#declare({ ...flow, internal: true })
  }

  /** Resolves when the events would survive a crash; says of each what became of it. */
  async publish(
    event: EventInput | readonly EventInput[],
    options: PublishOptions = {},
  ): Promise<readonly Published[]> {
    if (this.#stopping !== undefined) throw new SluiceError('APP_STOPPED', 'The app was stopped.')
    const list = Array.isArray(event) ? (event as readonly EventInput[]) : [event as EventInput]
    onlyKnown(options, PUBLISH_OPTIONS, 'publish: ')
    const { at, to } = options
    const ours = list.find((one) => typeof one?.source === 'string' && isOurs(one))
    if (ours !== undefined)
      throw new SluiceError('EVENT_INVALID', `source must not begin with 'sluice.': ${ours.source}.`)
    const flows = to === undefined ? undefined : new Set(typeof to === 'string' ? [to] : to)
    await this.#open()
    this.#mustKnow(flows)
    if (at === undefined) return this.#publisher.publish(list, flows)
    if (flows !== undefined) throw invalid('publish has at and to; one or the other.')
    const moment = at instanceof Date ? at.getTime() : at
    return this.#publisher.publish(list.map((one) => wrapped(one, moment, this.#now())))
  }

  /** One true sentence on where a key's events are and what they wait for. */
  async explain(flow: string, key: string): Promise<Explanation> {
    const { store, known } = await this.#open()
    const engine = this.#working?.engine
    return explain(
      {
        store,
        flows: this.#flows,
        served: (name) =>
          (engine !== undefined && this.#flows.has(name)) || known.foreign.some((one) => one.name === name),
        waitingFor: (run) => engine?.waitingFor(run),
        concurrencyFull: (name) => engine?.isFull(name) === true,
      },
      flow,
      key,
    )
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
    const { store, known } = await this.#open()
    await known.say()
    const flows = [...this.#flows.values()]
    const { emit } = this.events
    const engine = new Engine({
      store,
      clock: this.#clock,
      time: this.#time,
      process: this.#settings.process,
      flows,
      emit,
      log: this.#log,
      routes: () => known.epoch,
      toPublish: (events, run, from) => this.#publisher.ofRun(events, run, from),
      numbers: this.#settings,
    })
    const { chores, placing } = housekeeping({
      store,
      known,
      flows: this.#flows,
      settings: this.#settings,
      emit,
      routes: () => this.#routes(),
      pressed: (flow, level) => void this.#levels.set(flow, level),
    })
    this.#placing = placing
    const upkeep = new Upkeep(
      this.#clock,
      chores.map((chore) => calmed(chore, this.#test?.calm)),
      (chore, failure) => {
        const alert = `upkeep:${chore}`
        if (failure === undefined) emit('alert.cleared', { alert, text: 'It works again.' })
        else emit('alert.raised', { alert, text: failure })
      },
    )
    const ticker = new Ticker({
      clock: this.#clock,
      now: () => this.#now(),
      publish: (event) => this.#publisher.publish([event]),
      since: (name) => lastTick(store, name),
      ticked: (name, tick) => setLastTick(store, name, tick),
    })
    const lag = new LoopLag(this.#clock, (ms) => {
      const runs = engine
        .runsWithin(ms + LAG_AROUND)
        .map(({ flow, key }) => `${flow} ${JSON.stringify(key)}`)
        .join(', ')
      emit('alert.raised', {
        alert: 'loop-lag',
        text: `The event loop stood still for ${Math.round(ms)} ms. Running then: ${runs}`,
      })
    })
    // The only step that can fail, before anything else has begun.
    await ticker.start(this.#schedules)
    this.#working = { engine, upkeep, ticker, lag }
    engine.start()
    upkeep.start()
    if (this.#test === undefined) lag.start()
  }

  static {
    enterTest = (app, test) => app.#enterTest(test)
  }

  #enterTest(test: UnderTest): Crashable {
    if (this.#opened !== undefined) throw invalid('testApp comes after the app was used; give it a fresh one.')
    this.#test = test
    this.#clock.use(test.clock)
    this.#options = { ...this.#options, store: test.store }
    this.#settings = { ...this.#settings, poll: test.calm, newsApart: 0 }
    return {
      crash: () => {
        this.#working?.ticker.stop()
        this.#working?.engine.crash()
        void this.#working?.upkeep.stop(0)
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
    await this.#starting?.catch(() => {})
    const working = this.#working
    working?.ticker.stop()
    working?.lag.stop()
    await working?.upkeep.stop(this.#settings.afterAbort)
    await working?.engine.stop(this.#settings.grace)
    this.#deaf()
    if (this.#opened === undefined || typeof this.#options.store !== 'string') return
    const { store } = await this.#opened
    // One that does not answer must not keep the process.
    await within(this.#clock, store.close(), this.#settings.afterAbort)
  }

  #declare(flow: Flow): this {
    if (this.#working !== undefined)
      throw invalid(`flow ${JSON.stringify(flow.name)} comes after start; declare it before.`)
    if (this.#flows.has(flow.name)) throw invalid(`there are two flows named ${JSON.stringify(flow.name)}; rename one.`)
    const { run } = flow
    const watched = (one: never): unknown => (this.#test === undefined ? run(one) : this.#test.watch(one, run))
    this.#flows.set(flow.name, { ...flow, run: watched })
    return this
  }

  #mustKnow(to: ReadonlySet<string> | undefined): void {
    const foreign = this.#known?.foreign ?? []
    for (const name of to ?? []) {
      if (!this.#flows.has(name) && !foreign.some((one) => one.name === name)) {
        throw new SluiceError('EVENT_INVALID', `to names ${JSON.stringify(name)}, which is no flow.`)
      }
    }
  }

  #open(): Promise<Opened> {
    // A store that could not be opened may be there the next time.
    this.#opened ??= this.#openOnce().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #openOnce(): Promise<Opened> {
    const { store: address } = this.#options
    const store = typeof address === 'string' ? await openStore(address, { clock: this.#clock }) : address
    const known = new KnownFlows({
      store,
      process: this.#settings.process,
      flows: () => [...this.#flows.values()],
      matcher: (globs) => matcher(globs, 'on'),
      conflict: (flow, text) => this.events.emit('config.conflict', { flow, text }),
      heard: (reply) => this.#time.hear(reply),
    })
    await known.say()
    this.#known = known
    this.#deaf = store.listen((hint) => {
      if (hint.kind === 'opened') this.events.emit('lane.opened', { flow: hint.flow, key: hint.key })
    })
    return { store, known }
  }

  #routes(): Routes {
    return {
      flows: [...this.#flows.values()],
      foreign: this.#known?.foreign ?? [],
      level: (flow) => this.#levels.get(flow) ?? 0,
    }
  }

  /** Somebody had events tried again that could not be routed. */
  #retried(): void {
    this.#placing?.everything()
    this.#working?.upkeep.soon('placing')
  }

  #delayedFlow(): Flow {
    const window = (event: FlowEvent): { quiet: Millis; max: Millis } => {
      const wait = Math.max(0, dueAt(event) - this.#now())
      return { quiet: wait, max: wait }
    }
    const options = { on: (event: FlowEvent) => event.source === DELAYED, window, run: publishIt }
    return { ...checkedFlow<Run>(DELAYED, options), internal: true }
  }

  #now(): Millis {
    return this.#time.now()
  }

  #logged(options: SluiceOptions): (run: RunName) => RunLog {
    if (options.log === false) return () => SILENT
    const logger = lifeLog(this.events, options.log ?? {}, this.#clock)
    return (run) => runLog(logger, run)
  }
}

/** A run that kept the loop busy may have ended before anybody could look. */
const LAG_AROUND = 1_000

/** How `sluice/testing` gets in: another clock and store, and a look at every run. Only before the app is used. */
export function underTest(app: Sluice, test: UnderTest): Crashable {
  return enterTest(app, test)
}

export interface UnderTest {
  readonly clock: Clock
  readonly store: Store
  /** Nobody else works on the store: no need to look for what was not announced more often than this. */
  readonly calm: Millis
  readonly watch: (run: Run, handler: (run: never) => unknown) => unknown
}

interface Crashable {
  /** As if the process had been killed: nothing is settled, nothing given back. */
  readonly crash: () => void
}

async function publishIt(run: Run): Promise<void> {
  run.publish(run.events.map(unwrapped))
}

type RunName = Parameters<typeof runLog>[1]

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', what)
}
