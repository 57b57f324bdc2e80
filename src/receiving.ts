// The receiving half of an app, put together: its sources, its own routes, and the two ways to serve them.
import type { Clock, Millis } from './clock.ts'
import { DEFAULTS } from './config.ts'
import { SluiceError } from './errors.ts'
import { Inbound, type AdminApi } from './http/inbound.ts'
import { ownRoute, type OwnRoute, type RouteHandler } from './http/own-route.ts'
import { serve, type Listening, type ListenOptions, type ServerBounds } from './http/server.ts'
import type { FetchContext } from './http/web-fetch.ts'
import type { AnyListener } from './observe/events.ts'
import type { Traces } from './observe/traces.ts'
import { provedKey } from './operate/keys.ts'
import { declaredSource, type DeclaredSource, type SourceOptions } from './receive/declared-source.ts'
import { DELAYED } from './receive/delayed.ts'
import { Intake } from './receive/intake.ts'
import type { Publisher } from './receive/publisher.ts'
import { Receiver } from './receive/receiver.ts'
import { RefusedDocs } from './receive/refused-docs.ts'
import { RefusedRequests, type RefusedRequest } from './receive/refused-requests.ts'
import type { Source } from './receive/source.ts'
import { SourceSecrets } from './receive/source-secrets.ts'
import { HOW_TO_GIVE_A_KEY, type Seal } from './seal.ts'
import type { Store } from './store/contract/index.ts'

export interface ReceivingParts {
  readonly clock: Clock
  readonly now: () => Millis
  readonly store: () => Promise<Store>
  readonly publisher: Publisher
  readonly seal: Seal
  readonly addressRate: { readonly rate: number; readonly per: Millis }
  readonly emit: AnyListener
  readonly api: () => Promise<AdminApi>
  readonly traces: Traces
  readonly storeMark?: () => string
}

export interface ListeningApp extends Listening {
  /** Where each source takes requests. */
  readonly sources: readonly { readonly name: string; readonly scheme: string; readonly path: string }[]
}

export class Receiving {
  readonly #parts: ReceivingParts
  readonly #receiver: Receiver
  readonly #refused = new RefusedRequests((source) => this.#refusedDocs.added(source))
  readonly #refusedDocs: RefusedDocs
  readonly #secrets: SourceSecrets
  readonly #routes: OwnRoute[] = []
  readonly #inbound: Inbound
  readonly #listening = new Set<Listening>()

  constructor(parts: ReceivingParts) {
    const { clock, now, store, publisher, seal, addressRate, emit, storeMark } = parts
    this.#parts = parts
    this.#secrets = new SourceSecrets({ store, seal, clock })
    const isSealed = (source: string): boolean => this.isSealed(source)
    this.#refusedDocs = new RefusedDocs({ store, clock, refused: this.#refused, seal, isSealed })
    const intake = new Intake({
      store: (events) => publisher.store(events),
      maxEvents: DEFAULTS.intakeEvents,
      maxBytes: DEFAULTS.intakeBytes,
    })
    this.#receiver = new Receiver({
      clock,
      now,
      intake,
      refused: this.#refused,
      secrets: (source) => this.#secrets.of(source),
      learn: (source, secret) => this.#secrets.learn(source, secret),
      addressRate,
      emit,
    })
    const unready = async (): Promise<string | undefined> => {
      if (this.#receiver.isStopping) return 'The app stops.'
      const failure = await store()
        .then((opened) => opened.stats())
        .catch((error: unknown) => error)
      return failure instanceof Error ? 'The store does not answer.' : undefined
    }
    this.#inbound = new Inbound({
      receiver: this.#receiver,
      clock,
      routes: this.#routes,
      unready,
      api: parts.api,
      traces: parts.traces,
      ...(storeMark !== undefined && { storeMark }),
      keyProof: async (asked) => provedKey(await store(), asked),
    })
  }

  source(name: string, source: Source, options: SourceOptions): void {
    const declared = declaredSource(name, source, options)
    const taken = this.#receiver.sources.find((one) => one.name === name || one.path === declared.path)
    if (taken !== undefined) {
      throw new SluiceError(
        'CONFIG_INVALID',
        `source ${JSON.stringify(name)}: its name or path ${declared.path} is taken by ${taken.name}.`,
      )
    }
    const sealed = source.secrets === 'by-handshake' ? 'its secret comes by handshake and is' : 'with encrypt it is'
    if ((source.secrets === 'by-handshake' || declared.encrypt) && !this.#parts.seal.hasKey) {
      throw new SluiceError(
        'CONFIG_INVALID',
        `source ${JSON.stringify(name)}: ${sealed} kept sealed; ${HOW_TO_GIVE_A_KEY}.`,
      )
    }
    this.#receiver.declare(declared)
  }

  route(method: string, path: string, handle: RouteHandler): void {
    this.#routes.push(ownRoute(method, path, handle))
  }

  get sources(): ListeningApp['sources'] {
    return this.#receiver.sources.map(({ name, path, source }) => ({ name, path, scheme: source.scheme }))
  }

  /** With its secrets: for who signs a test request, never for who only looks. */
  declared(source: string): DeclaredSource | undefined {
    return this.#receiver.sources.find(({ name }) => name === source)
  }

  isSealed(source: string): boolean {
    // What waits for its time has its own source inside.
    return this.#receiver.sources.some((one) => one.encrypt && (one.name === source || source === DELAYED))
  }

  /** How many requests this process has refused, by source and reason. */
  refusals(): ReturnType<RefusedRequests['allCounts']> {
    return this.#refused.allCounts()
  }

  refused(source: string): Promise<readonly RefusedRequest[]> {
    return this.#refusedDocs.of(source)
  }

  /** The secret that came by handshake, to be compared with what the sending side shows. Undefined: none has come. */
  async secretOf(source: string, by = ''): Promise<string | undefined> {
    const { secrets } = this.#known(source, 'secret').source
    return secrets === 'by-handshake' ? this.#secrets.shown(source, by) : undefined
  }

  /** The source waits for its handshake again, in this process at once and in others within seconds. */
  async forgetSecret(source: string, by = ''): Promise<'forgotten' | 'none'> {
    return this.#secrets.forget(this.#known(source, 'forgetSecret').name, by)
  }

  #known(source: string, act: string): DeclaredSource {
    const all = this.#receiver.sources
    const declared = all.find(({ name }) => name === source)
    if (declared !== undefined) return declared
    const known = all.length === 0 ? 'there is none' : `there are ${all.map(({ name }) => name).join(', ')}`
    throw new SluiceError('CONFIG_INVALID', `${act}: ${JSON.stringify(source)} is no source; ${known}.`)
  }

  fetch(request: Request, context: FetchContext): Promise<Response> {
    return this.#inbound.fetch(request, context)
  }

  /** `bounds` are for tests: no user has a reason to wait longer for a slow sender. */
  async listen(options: ListenOptions, bounds?: ServerBounds): Promise<ListeningApp> {
    const served = await serve(this.#inbound, options, bounds, this.#parts.emit)
    if (this.#receiver.isStopping) {
      await served.close()
      throw new SluiceError('APP_STOPPED', 'The app was stopped while it began to listen.')
    }
    const listening = {
      ...served,
      sources: this.sources,
      close: () => {
        this.#listening.delete(listening)
        return served.close()
      },
    }
    this.#listening.add(listening)
    return listening
  }

  /** What has arrived is answered; nothing more is taken in. */
  async stop(): Promise<void> {
    const answered = [this.#receiver.stop(), ...[...this.#listening].map((one) => one.close())]
    // At once as well: a slow sender may take all the time that there is.
    await Promise.all([...answered, this.#refusedDocs.flush()])
    await this.#refusedDocs.stop()
  }
}
