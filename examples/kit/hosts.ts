// The two ways to host a stage: in real time over HTTP on this machine, and in virtual time within one process.
import { systemClock, type Clock, type Millis, type Sluice } from 'sluice'
import { testApp, VirtualClock, type TestApp } from 'sluice/testing'
import { serveHandler, type Handler, type Served } from './http.ts'
import type { Workers } from './workers.ts'

/** Sends a request to the app: the path, and the rest as for `fetch`. */
export type Send = (path: string, init?: RequestInit) => Promise<Response>

export interface Host {
  readonly clock: Clock
  /** Makes a stand-in reachable, and returns its address. */
  serve(name: string, handler: Handler): Promise<string>
  start(app: Sluice): Promise<void>
  /** The address of the app. */
  url(): string
  readonly send: Send
  /** The app is down while `body` runs. `next` builds the app of the next process. */
  restart(body: () => Promise<void>, next: () => Sluice): Promise<Sluice>
  /** Time passes until the promise settles. */
  play<T>(what: Promise<T>): Promise<T>
  /** Wraps a client of real I/O, so that virtual time stands still while its calls are pending. */
  watch<T extends object>(client: T): T
  close(): Promise<void>
}

export class RealHost implements Host {
  readonly clock = systemClock
  readonly #port: number
  readonly #standIns: Served[] = []
  #app: Sluice | undefined
  #url = ''
  /** With workers, the app of this process is not started: it only looks on. */
  workers: Workers | undefined

  constructor(port: number) {
    this.#port = port
  }

  async serve(_: string, handler: Handler): Promise<string> {
    const served = await serveHandler(handler)
    this.#standIns.push(served)
    return served.url
  }

  async start(app: Sluice): Promise<void> {
    this.#app = app
    if (this.workers !== undefined) return
    await app.start()
    this.#url = (await app.listen({ port: this.#port, host: '127.0.0.1' })).url
  }

  url(): string {
    return this.workers === undefined ? this.#url : this.workers.url
  }

  readonly send: Send = (path, init) => fetch(`${this.url()}${path}`, init)

  async restart(body: () => Promise<void>, next: () => Sluice): Promise<Sluice> {
    await this.#app?.stop()
    await body()
    const app = next()
    await this.start(app)
    return app
  }

  play<T>(what: Promise<T>): Promise<T> {
    return what
  }

  watch<T extends object>(client: T): T {
    return client
  }

  async close(): Promise<void> {
    await this.workers?.stop()
    await this.#app?.stop()
    await Promise.all(this.#standIns.map((one) => one.close()))
  }
}

export class VirtualHost implements Host {
  readonly clock: VirtualClock
  readonly #store: string
  readonly #outbox: boolean
  readonly #handlers = new Map<string, Handler>()
  #t: TestApp | undefined

  constructor(
    store: string,
    { now, outbox = false }: { readonly now?: Millis | undefined; readonly outbox?: boolean | undefined },
  ) {
    this.#store = store
    this.#outbox = outbox
    this.clock = new VirtualClock(now)
  }

  async serve(name: string, handler: Handler): Promise<string> {
    const host = `${name}.stand-in.example`
    this.#handlers.set(host, handler)
    return `https://${host}`
  }

  async start(app: Sluice): Promise<void> {
    const respond: Handler = (request) => {
      const handler = this.#handlers.get(new URL(request.url).host)
      if (handler === undefined) throw new Error(`There is no stand-in at ${request.url}.`)
      return handler(request)
    }
    this.#t = await testApp(app, { store: this.#store, clock: this.clock, fetch: respond, outbox: this.#outbox })
    // The app loads its admin API at the first call, which takes real time. Virtual time must not pass meanwhile.
    await this.send('/v1/flows')
  }

  url(): string {
    return 'https://app.example'
  }

  readonly send: Send = (path, init) => this.#test.app.fetch(new Request(`${this.url()}${path}`, init))

  /** The same app starts again, because a test cannot close and open `memory:`. Nothing was settled, as after `kill -9`. */
  async restart(body: () => Promise<void>): Promise<Sluice> {
    await this.#test.crash()
    await body()
    await this.#test.restart()
    return this.#test.app
  }

  play<T>(what: Promise<T>): Promise<T> {
    return this.#test.until(what)
  }

  watch<T extends object>(client: T): T {
    return this.clock.watch(client)
  }

  async close(): Promise<void> {
    await this.#t?.stop()
  }

  get #test(): TestApp {
    if (this.#t === undefined) throw new Error('The app was not started.')
    return this.#t
  }
}
