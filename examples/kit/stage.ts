// The `Stage` is where an example lives: its app, its world, and the ways to act, to narrate and to judge. A scenario is the same
// in real time and in virtual time.
import type { Clock, EventMap, EventName, Millis, Sluice, SluiceOptions } from 'sluice'
import type { Env, Example, Scenario, Tell } from './example.ts'
import { RealHost, VirtualHost, type Host, type Send } from './hosts.ts'
import type { Handler } from './http.ts'
import { StandIn, urlOf } from './stand-in.ts'
import { Workers } from './workers.ts'

export interface Check {
  readonly says: string
  readonly held: boolean
}

export interface StageOptions {
  readonly store: string
  /** The settings of the app (default: the `env` of the example). */
  readonly env?: Env
  readonly tell?: Tell
  readonly judge?: (check: Check) => void
  /** For `new Sluice`, before the options of the example. */
  readonly options?: Omit<SluiceOptions, 'store'>
  /** Real time only: so many worker processes instead of an app in this process. */
  readonly workers?: number
  /** Real time only: where the app listens (default: a free port). */
  readonly port?: number
}

const POLL: Millis = 100
const PATIENCE: Millis = 60_000
const MOST_EMITTED = 50_000
const QUIET = { log: false, addressRate: { rate: 100_000, per: '1m' } } as const

export class Stage<World> {
  readonly world: World
  readonly clock: Clock
  readonly isVirtual: boolean
  readonly tell: Tell
  /** All checks so far. */
  readonly checks: Check[] = []
  readonly #example: Example<World>
  readonly #options: StageOptions
  readonly #host: Host
  readonly #env: Env
  readonly #handlers = new Map<string, Handler>()
  readonly #urls: Record<string, string> = {}
  readonly #emitted: { name: EventName; payload: EventMap[EventName] }[] = []
  #workers: Workers | undefined
  #app: Sluice | undefined

  private constructor(example: Example<World>, options: StageOptions, host: Host) {
    this.#example = example
    this.#options = options
    this.#host = host
    this.#env = options.env ?? example.env ?? {}
    this.clock = host.clock
    this.isVirtual = host.clock.isVirtual === true
    this.tell = options.tell ?? (() => {})
    const serve = (name: string, handler: Handler): void => void this.#handlers.set(name, handler)
    const standIn = (name: string, respond: StandIn['respond']): StandIn => {
      const made = new StandIn(host.clock, respond)
      serve(name, made.handle)
      return made
    }
    this.world = example.world({ clock: host.clock, env: this.#env, tell: this.tell, serve, standIn })
  }

  /** In real time: stand-ins and app are servers on this machine. */
  static async open<World>(example: Example<World>, options: StageOptions): Promise<Stage<World>> {
    const host = new RealHost(options.port ?? 0)
    const stage = new Stage(example, options, host)
    const { store, workers } = options
    if (workers !== undefined) {
      stage.#workers = new Workers({ main: example.main, store, env: stage.#env, urls: stage.#urls })
      host.workers = stage.#workers
    }
    return stage.#open()
  }

  /** In virtual time, within this process. */
  static async openVirtual<World>(example: Example<World>, options: StageOptions, now?: Millis): Promise<Stage<World>> {
    return new Stage(example, options, new VirtualHost(options.store, { now, outbox: example.outbox })).#open()
  }

  /** With workers, it is not started: it reads and steers what they do. */
  get app(): Sluice {
    if (this.#app === undefined) throw new Error('The stage is not open.')
    return this.#app
  }

  get workers(): Workers {
    if (this.#workers === undefined) throw new Error('The stage was opened without workers.')
    return this.#workers
  }

  /** The address of the app, or of a living worker. */
  get address(): string {
    return this.#host.url()
  }

  /** The address of a stand-in. */
  url(standIn: string): string {
    return urlOf(this.#urls, standIn)
  }

  /** The address of the store, for an app that has tables of its own beside it. */
  get store(): string {
    return this.#options.store
  }

  /** Wraps a client of real I/O that a scenario uses, so that virtual time stands still while its calls are pending. */
  watch<T extends object>(client: T): T {
    return this.#host.watch(client)
  }

  /** Sends a request to the app, e.g. a webhook to `/in/<source>`. */
  get send(): Send {
    return this.#host.send
  }

  /** A check that does not hold makes the example fail. */
  check(says: string, held: boolean): void {
    this.checks.push({ says, held })
    this.#options.judge?.({ says, held })
  }

  sleep(ms: Millis): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }

  /** All events of that name that the app has emitted, without those of its workers. */
  emitted<N extends EventName>(name: N): readonly EventMap[N][] {
    return this.#emitted.flatMap((one) => (one.name === name ? [one.payload as EventMap[N]] : []))
  }

  /** Resolves as soon as the condition holds, and throws if that takes too long. */
  async until(what: string, holds: () => boolean | Promise<boolean>, within: Millis = PATIENCE): Promise<void> {
    // Hours of virtual time are looked at less often.
    const step = Math.max(POLL, within / 1_000)
    for (const end = this.clock.monotonic() + within; !(await holds()); await this.sleep(step))
      if (this.clock.monotonic() > end) throw new Error(`After ${within / 1_000} s still not: ${what}.`)
  }

  /** Resolves when no lane of the flows (default: of all) waits or runs. */
  idle({ flows, within }: { readonly flows?: readonly string[]; readonly within?: Millis } = {}): Promise<void> {
    const isIdle = async (): Promise<boolean> => {
      const all = await this.app.admin.flows.list()
      if (!all.every(({ flow, lanes }) => lanes === 0 || flows?.includes(flow) === false)) return false
      // An event that was routed while an endpoint changed is placed within a second.
      const { items } = await this.app.admin.deadLetters.list({ kind: 'unrouted' })
      return items.every(({ reason }) => reason !== 'routes-old')
    }
    return this.until('every lane is empty', isIdle, within)
  }

  /** Ends the process of the app, which is down while `whileDown` runs, and starts another one on the same store. */
  async restart(whileDown: () => Promise<void> = async () => {}): Promise<void> {
    this.#app = await this.#host.restart(whileDown, () => this.#build())
  }

  /** Plays one scenario. It throws if a check fails. */
  async play(scenario: Scenario<World>): Promise<void> {
    this.#example.reset?.(this.world)
    try {
      await this.#host.play(scenario(this))
    } catch (error) {
      this.check(error instanceof Error ? error.message : String(error), false)
    }
  }

  close(): Promise<void> {
    return this.#host.close()
  }

  async #open(): Promise<this> {
    for (const [name, handler] of this.#handlers) this.#urls[name] = await this.#host.serve(name, handler)
    this.#app = this.#build()
    await this.#host.start(this.#app)
    await this.#workers?.start(this.#options.workers)
    return this
  }

  #build(): Sluice {
    const { store, options } = this.#options
    const app = this.#example.build({
      store,
      env: this.#env,
      clock: this.clock,
      options: { ...QUIET, ...options, ...this.#example.options },
      url: (name) => this.url(name),
      watch: (client) => this.watch(client),
    })
    app.onAny((name, payload) => {
      if (this.#emitted.push({ name, payload }) > MOST_EMITTED) this.#emitted.shift()
    })
    this.#example.narrate?.(app, this.tell)
    return app
  }
}
