// `Receiving` connects the receiving parts of an app: its sources, its custom routes, and the two ways to serve them.
import type { Clock, Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { SluiceError } from '../errors.ts'
import type { AdminApi } from '../http/admin-api.ts'
import { RequestRouter } from '../http/request-router.ts'
import { createAppRoute, type AppRoute, type RouteHandler, type RouteOptions } from '../http/app-route.ts'
import { serve, type Listening, type ListenOptions, type ServerBounds } from '../http/server.ts'
import { DASHBOARD_MOUNT, type DashboardContext } from '../http/dashboard.ts'
import type { FetchContext } from '../http/web-fetch.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { Traces } from '../observe/trace/spans.ts'
import { proveApiKey } from '../admin/keys.ts'
import type { Sources } from '../admin/sources.ts'
import { createDeclaredSource, type DeclaredSource, type SourceOptions } from '../receive/source-options.ts'
import { DELAYED } from '../publish/delayed.ts'
import type { Publisher } from '../publish/publisher.ts'
import { Receiver } from '../receive/receiver.ts'
import { RefusedDocs } from '../receive/refused-docs.ts'
import { RefusedRequests } from '../receive/refused-requests.ts'
import type { Source } from '../receive/source.ts'
import { SourceSecrets } from '../receive/source-secrets.ts'
import { Readiness } from './readiness.ts'
import { missingKey, type Keyring } from '../crypto/keyring.ts'
import type { Store } from '../store/contract/index.ts'

export interface ReceivingDependencies {
  readonly clock: Clock
  readonly now: () => Millis
  readonly store: () => Promise<Store>
  readonly publisher: Publisher
  readonly keyring: Keyring
  readonly addressRate: { readonly rate: number; readonly per: Millis }
  readonly emit: AnyListener
  readonly api: () => Promise<AdminApi>
  readonly servesDashboard?: boolean
  readonly traces: Traces
  readonly storeId?: () => string
}

export interface ListeningApp extends Listening {
  readonly sources: readonly { readonly name: string; readonly scheme: string; readonly path: string }[]
  /** The address of the dashboard, unless the app has `dashboard: false`. */
  readonly dashboard?: string
}

export class Receiving {
  readonly #deps: ReceivingDependencies
  readonly #receiver: Receiver
  readonly #refused = new RefusedRequests((source) => this.#refusedDocs.onAdded(source))
  readonly #refusedDocs: RefusedDocs
  readonly #secrets: SourceSecrets
  readonly #routes: AppRoute[] = []
  readonly #router: RequestRouter
  readonly #listening = new Set<Listening>()

  constructor(parts: ReceivingDependencies) {
    const {
      clock,
      now,
      store,
      publisher,
      keyring,
      addressRate,
      emit,
      storeId,
      api,
      servesDashboard = false,
      traces,
    } = parts
    this.#deps = parts
    this.#secrets = new SourceSecrets({ store, keyring, clock })
    const isEncrypted = (source: string): boolean => this.encrypts(source)
    this.#refusedDocs = new RefusedDocs({ store, clock, refusedRequests: this.#refused, keyring, isEncrypted })
    const { maxIntakeEvents: maxEvents, maxIntakeBytes: maxBytes } = DEFAULTS
    const intake = publisher.createIntake({ maxEvents, maxBytes })
    this.#receiver = new Receiver({
      clock,
      now,
      intake,
      refusedRequests: this.#refused,
      readSecrets: (source) => this.#secrets.read(source),
      saveSecret: (source, secret) => this.#secrets.save(source, secret),
      addressRate,
      emit,
    })
    const readiness = new Readiness({ clock, store, isStopping: () => this.#receiver.isStopping })
    this.#router = new RequestRouter({
      receiver: this.#receiver,
      clock,
      routes: this.#routes,
      findUnreadyReason: readiness.findUnreadyReason,
      api,
      servesDashboard,
      traces,
      ...(storeId !== undefined && { storeId }),
      proveKey: async (challenge, at) => proveApiKey(await store(), challenge, at),
    })
  }

  source(name: string, source: Source, options: SourceOptions): void {
    const declared = createDeclaredSource(name, source, options)
    const taken = this.#receiver.sources.find((one) => one.name === name || one.path === declared.path)
    if (taken !== undefined) {
      throw new SluiceError(
        'CONFIG_INVALID',
        `source ${JSON.stringify(name)}: source ${taken.name} already uses its name or the path ${declared.path}. Rename one.`,
      )
    }
    const reason = source.secrets === 'by-handshake' ? 'its secret arrives by handshake' : 'its option encrypt is set'
    if ((source.secrets === 'by-handshake' || declared.encrypt) && !this.#deps.keyring.hasKey) {
      throw missingKey('CONFIG_INVALID', `for the source ${JSON.stringify(name)}, because ${reason}`)
    }
    this.#receiver.declare(declared)
  }

  route(method: string, path: string, handle: RouteHandler, options: RouteOptions | undefined): void {
    this.#routes.push(createAppRoute(method, path, handle, options))
  }

  get sources(): ListeningApp['sources'] {
    return this.#receiver.sources.map(({ name, path, source }) => ({ name, path, scheme: source.scheme }))
  }

  encrypts(source: string): boolean {
    // A delayed event contains its original source.
    return this.requires(source) || (source === DELAYED && this.requiresAny)
  }

  requires(source: string): boolean {
    return this.#receiver.sources.some((one) => one.encrypt && one.name === source)
  }

  get requiresAny(): boolean {
    return this.#receiver.sources.some((one) => one.encrypt)
  }

  /** The number of requests that this process rejected, by source and reason. */
  countRefused(): ReturnType<RefusedRequests['allCounts']> {
    return this.#refused.allCounts()
  }

  /** `admin` is `app.admin.sources`. A forgotten secret is gone here at once, in other processes within seconds. */
  readonly admin: Sources = {
    list: () => this.sources,
    declared: (source) => this.#receiver.sources.find(({ name }) => name === source),
    refused: (source) => this.#refusedDocs.list(source),
    secret: async (source, by = '') => {
      const { secrets } = this.#findSource(source, 'secret').source
      return secrets === 'by-handshake' ? this.#secrets.reveal(source, by) : undefined
    },
    forgetSecret: async (source, by = '') => this.#secrets.forget(this.#findSource(source, 'forgetSecret').name, by),
  }

  #findSource(source: string, act: string): DeclaredSource {
    const all = this.#receiver.sources
    const declared = all.find(({ name }) => name === source)
    if (declared !== undefined) return declared
    const known = all.length === 0 ? 'there is none' : `there are ${all.map(({ name }) => name).join(', ')}`
    throw new SluiceError('CONFIG_INVALID', `${act}: there is no source ${JSON.stringify(source)}; ${known}.`)
  }

  fetch(request: Request, context: FetchContext): Promise<Response> {
    return this.#router.fetch(request, context)
  }

  dashboard(request: Request, context: DashboardContext): Promise<Response> {
    return this.#router.dashboard(request, context)
  }

  /** `bounds` are for tests; users have no reason to wait longer for a slow sender. */
  async listen(options: ListenOptions, bounds?: ServerBounds): Promise<ListeningApp> {
    const served = await serve(this.#router, options, bounds, this.#deps.emit)
    if (this.#receiver.isStopping) {
      await served.close()
      throw new SluiceError('APP_STOPPED', 'The app was stopped while it began to listen.')
    }
    const listening = {
      ...served,
      sources: this.sources,
      ...(this.#deps.servesDashboard && { dashboard: `${served.url}${DASHBOARD_MOUNT}` }),
      close: () => {
        this.#listening.delete(listening)
        return served.close()
      },
    }
    this.#listening.add(listening)
    return listening
  }

  /** Responds to the requests that have arrived and accepts no more. */
  async stop(): Promise<void> {
    const answered = [this.#receiver.stop(), ...[...this.#listening].map((one) => one.close())]
    // Both run at once, because a slow sender may use up all of the time.
    await Promise.all([...answered, this.#refusedDocs.flush()])
    await this.#refusedDocs.stop()
  }
}
