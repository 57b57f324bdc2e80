// `Endpoints` implements `app.endpoints`. Every change of the recipients of an event raises the epoch of the routes (L18).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { missingKey, type Keyring } from '../crypto/keyring.ts'
import type { Store } from '../store/contract/index.ts'
import type { BreakerStore } from './health/breaker-store.ts'
import { CLOSED } from './health/breaker.ts'
import {
  decryptConfidential,
  encryptConfidential,
  findSecretTimes,
  type ConfidentialFields,
} from './endpoint-secrets.ts'
import { listDeliveries, type DeliveriesQuery, type DeliveryRecord } from './deliveries.ts'
import {
  parseEndpointFields,
  parseHistoryStart,
  type Endpoint,
  type EndpointDefaults,
  type EndpointTarget,
  type EndpointUpdate,
  type NewEndpoint,
} from './endpoint.ts'
import { toFields, endpointNotFound, toEndpoint, type EndpointDocs, type EndpointDoc } from './endpoint-docs.ts'
import { parseEndpointReplay, type EndpointReplay, type EndpointReplayResult } from './endpoint-replay.ts'
import { parseStatsHours, readEndpointStats, type EndpointStats, type EndpointStatsOptions } from './endpoint-stats.ts'
import type { HistorySender, SteerableLanes } from './endpoint-steering.ts'
import { EndpointTokens } from './endpoint-tokens.ts'
import { applyHeadersChange } from './http/headers.ts'
import { computeHealth, type EndpointHealth } from './health/health.ts'
import type { HistoryStore } from './health/history-store.ts'
import { listLastDay, NO_HISTORY, type StepCounts } from './health/history.ts'
import { readBacklogs } from './health/backlog.ts'
import type { ResolvedDeliverySettings } from './options.ts'
import { EndpointProver, type ProvenEndpoint } from './proof.ts'
import type { SendDependencies } from './send-batch.ts'
import { activeSecrets, firstSecret, newSecret, rotateSecrets, type RotateSecretOptions } from './secrets.ts'
import type { Subscriptions } from './subscriptions.ts'
import { describeUnreachable, type ReachableDelivery } from './reach.ts'
import { sendTestEvent, type TestResult } from './test-event.ts'
import type { Transforms } from './transform/transforms.ts'

export interface EndpointsDependencies {
  readonly store: () => Promise<Store>
  /** The time of the store. */
  readonly now: () => Millis
  readonly keyring: Keyring
  readonly settings: Pick<ResolvedDeliverySettings, 'rules' | 'proof' | 'registrations'>
  readonly docs: EndpointDocs
  readonly subscriptions: Subscriptions
  readonly breakers: BreakerStore
  readonly histories: HistoryStore
  readonly sender: SendDependencies
  readonly lanes: SteerableLanes
  readonly transforms: Transforms
  /** The deliveries by name, with their maximum number of attempts and their globs. */
  readonly deliveries: DeliveriesQuery['deliveries'] & ReadonlyMap<string, ReachableDelivery>
  /** For fields that a registration leaves out. */
  readonly defaults: () => EndpointDefaults
  readonly backlog: HistorySender
}

/** The secret is returned once and never shown again. */
export type CreatedEndpoint = ProvenEndpoint & {
  readonly secret: string
  /** Why nothing will be sent, as far as this process knows. */
  readonly note?: string
}

/** An endpoint with its health. */
export interface EndpointWithHealth extends Endpoint, ReturnType<typeof findSecretTimes> {
  readonly lastSuccessfulDeliveryAt?: Millis
  readonly health: EndpointHealth
  /** Events that wait for the endpoint. */
  readonly waiting: number
  /** When a failed batch is posted again, unless the endpoint or its breaker holds it longer. */
  readonly nextTry?: Millis
  /** The POSTs of the last 48 half hours, oldest first. */
  readonly lastDay: readonly StepCounts[]
}

const MAX_ENDPOINTS = 10_000

export class Endpoints {
  /** The code of subscribers that changes what their endpoints get. */
  readonly transforms: Transforms
  readonly #deps: EndpointsDependencies
  readonly #tokens: EndpointTokens
  readonly #prover: EndpointProver
  /** The parsed form of a document lives as long as the cached document. */
  readonly #targets = new WeakMap<EndpointDoc, { readonly endpoint: Endpoint } & ConfidentialFields>()

  constructor(deps: EndpointsDependencies) {
    this.#deps = deps
    this.transforms = deps.transforms
    this.#tokens = new EndpointTokens(deps.store)
    this.#prover = new EndpointProver({ docs: deps.docs, proof: deps.settings.proof, sender: deps.sender })
  }

  /** How many endpoints one address, and one key, may register over the API. */
  get registrations(): ResolvedDeliverySettings['registrations'] {
    return this.#deps.settings.registrations
  }

  /** With `mostOfTenant`, `create` rejects when the tenant has that many endpoints. */
  async create(given: NewEndpoint, by = '', bounds: { readonly mostOfTenant?: number } = {}): Promise<CreatedEndpoint> {
    const { keyring, settings, docs, subscriptions, defaults, backlog } = this.#deps
    const active = given?.active ?? true
    if (!keyring.hasKey)
      throw missingKey('CONFLICT', 'before an endpoint is registered, because its secret is stored encrypted')
    const secret = given?.secret ?? newSecret()
    const fields = parseEndpointFields(given, [secret], settings.rules, defaults())
    const from = parseHistoryStart(given.from ?? defaults().from)
    const { value: others, now } = await docs.readAll()
    if (others.length >= MAX_ENDPOINTS) throw tooManyEndpoints(`${MAX_ENDPOINTS} endpoints`)
    const { mostOfTenant: most = Infinity } = bounds
    if (most < Infinity && others.filter(({ tenant }) => tenant === fields.tenant).length >= most)
      throw tooManyEndpoints(`${most} endpoints of the tenant`)
    const id = `ep_${randomBytes(9).toString('base64url')}`
    const { isRequired } = this.#prover
    const proof = isRequired ? 'pending' : 'none'
    const history = from === undefined ? {} : { history: { from, replay: `history-${id}` } }
    const endpoint = { id, ...fields, createdAt: now, active, proof, transform: null, ...history } as const
    const kept = this.#encrypt(endpoint, { secrets: firstSecret(secret, now), headers: fields.headers })
    await docs.add(kept, { who: by, what: `added endpoint ${id}` })
    const note = describeUnreachable(fields.eventFilter, this.#deps.deliveries)
    const once = { secret, ...(note !== undefined && { note }) }
    if (isRequired) return { ...(await this.prove(id, by)), ...once }
    await subscriptions.refresh()
    await backlog.start(toEndpoint(kept))
    return { ...toEndpoint(kept), ...once }
  }

  /** `list` returns the oldest endpoint first. */
  async list(): Promise<readonly EndpointWithHealth[]> {
    const { value: kept, now } = await this.#deps.docs.readAll()
    const all = kept.map(toEndpoint).toSorted((one, other) => one.createdAt - other.createdAt)
    return this.#withHealth(all, now)
  }

  async get(id: string): Promise<EndpointWithHealth | undefined> {
    const { value: kept, now } = await this.#deps.docs.read(id)
    if (kept === undefined) return undefined
    const [endpoint] = await this.#withHealth([toEndpoint(kept)], now)
    return endpoint && { ...endpoint, ...findSecretTimes(this.#deps.keyring, kept, now) }
  }

  /** `update` changes the given fields. `active` pauses or resumes the endpoint; a new `secret` starts a rotation. */
  async update(id: string, change: EndpointUpdate, by = ''): Promise<Endpoint> {
    const { settings, docs, subscriptions, lanes, backlog } = this.#deps
    for (const field of ['tenant', 'from'])
      if (field in change)
        throw new SluiceError('ENDPOINT_INVALID', `endpoint: ${field} cannot be changed. Create another endpoint.`)
    if (change.active === true) await this.#assertEnabled(id)
    const changing = (kept: EndpointDoc, now: Millis): EndpointDoc => {
      const { active = kept.active, secret } = change
      const before = this.#decrypt(kept)
      const secrets = secret === undefined ? before.secrets : rotateSecrets(before.secrets, { secret }, now)
      const headers = change.headers === undefined ? before.headers : applyHeadersChange(before.headers, change.headers)
      const merged = { ...toFields(kept), ...change, headers }
      const fields = parseEndpointFields(merged, activeSecrets(secrets, now), settings.rules)
      return this.#encrypt({ ...kept, ...fields, active }, { secrets, headers: fields.headers })
    }
    const proven = await this.#proveChange(id, changing)
    const done = { who: by, what: `changed ${Object.keys(change).join(', ') || 'nothing'} of endpoint ${id}` }
    const changed = await docs.change(id, done, (kept, now) => ({ ...changing(kept, now), ...proven }))
    await subscriptions.refresh()
    await backlog.start(changed)
    if (change.active === true) await lanes.resume(id)
    if (change.active === false) await lanes.hold(id, PAUSED, by)
    return changed
  }

  /** `pause` makes the events of the endpoint wait. */
  async pause(id: string, by = ''): Promise<Endpoint> {
    const done = { who: by, what: `paused endpoint ${id}` }
    const endpoint = await this.#deps.docs.change(id, done, (kept) => ({ ...kept, active: false }))
    await this.#deps.lanes.hold(id, PAUSED, by)
    return endpoint
  }

  /** `resume` makes the waiting events due. It rejects a disabled endpoint: `enable` asks what to do with the backlog. */
  async resume(id: string, by = ''): Promise<Endpoint> {
    await this.#assertEnabled(id)
    const done = { who: by, what: `resumed endpoint ${id}` }
    const endpoint = await this.#deps.docs.change(id, done, (kept) => ({ ...kept, active: true }))
    await this.#deps.lanes.resume(id)
    return endpoint
  }

  /** With `backlog`, `enable` makes the waiting events due at once. With `now`, it drops them and returns their number. */
  async enable(id: string, { from, by = '' }: EnableOptions): Promise<Endpoint & { readonly dropped: number }> {
    const { docs, lanes, breakers, backlog } = this.#deps
    if (from !== 'backlog' && from !== 'now') {
      const text = `endpoints.enable: from must be 'backlog' (deliver the waiting events) or 'now' (drop them); got ${JSON.stringify(from)}.`
      throw new SluiceError('CONFIG_INVALID', text)
    }
    const found = await docs.get(id)
    if ((await breakers.get(id)).kind !== 'disabled') {
      if (from === 'backlog') return { ...toEndpoint(found), dropped: 0 }
      throw new SluiceError('CONFLICT', `Endpoint ${id} is not disabled, so its waiting events are not dropped.`)
    }
    const done = { who: by, what: `enabled endpoint ${id}, ${from === 'now' ? 'from now on' : 'with its backlog'}` }
    const endpoint = await docs.change(id, done, (kept) => kept)
    if (from === 'now') await backlog.cancel(endpoint)
    const dropped = from === 'now' ? await lanes.drop(id) : 0
    await lanes.resume(id)
    return { ...endpoint, dropped }
  }

  /**
   * `rotateSecret` keeps the previous secret active for a day; `force` ends it at once. Signings with room for one
   * signature use only the previous one meanwhile.
   */
  async rotateSecret(
    id: string,
    { secret = newSecret(), force = false, by = '' }: Partial<RotateSecretOptions> = {},
  ): Promise<CreatedEndpoint> {
    const { docs, settings } = this.#deps
    const done = { who: by, what: `rotated the secret of endpoint ${id}` }
    const endpoint = await docs.change(id, done, (kept, now) => {
      const { secrets, headers } = this.#decrypt(kept)
      parseEndpointFields({ ...toFields(kept), secret }, [secret], settings.rules)
      return this.#encrypt(kept, { secrets: rotateSecrets(secrets, { secret, force }, now), headers })
    })
    return { ...endpoint, secret }
  }

  /** `delete` drops the waiting events and returns their number. */
  async delete(id: string, by = ''): Promise<{ readonly dropped: number }> {
    const { docs, lanes, subscriptions, breakers, histories } = this.#deps
    await docs.remove(id, { who: by, what: `removed endpoint ${id}` })
    await subscriptions.refresh()
    const dropped = await lanes.drop(id)
    await lanes.unhold(id)
    await breakers.forget(id)
    await histories.forget(id)
    await this.#tokens.forget(id)
    await this.transforms.forget(id)
    return { dropped }
  }

  /** `trigger` ends every open window and counts the batches that became due. Retries and paused endpoints wait on. */
  async trigger(): Promise<{ readonly triggered: number }> {
    return { triggered: await this.#deps.lanes.runAll() }
  }

  /** `deliveries` returns what is in progress, then what has ended, newest first. */
  async deliveries(id: string, n = 100): Promise<readonly DeliveryRecord[]> {
    const { docs, histories, deliveries, store } = this.#deps
    await docs.get(id)
    const attempts = (await histories.getAll([id])).get(id)?.attempts ?? []
    return listDeliveries({ id, deliveries, attempts, n }, await store())
  }

  /** `stats` returns how the POSTs of the last hours went, with percentiles, and what waits for the endpoint. */
  async stats(id: string, options: EndpointStatsOptions = {}): Promise<EndpointStats> {
    const { docs, histories, deliveries, store } = this.#deps
    const hours = parseStatsHours(options)
    await docs.get(id)
    const history = (await histories.getAll([id])).get(id) ?? NO_HISTORY
    return readEndpointStats(await store(), { id, history, deliveries: [...deliveries.keys()], hours })
  }

  /** `prove` requests the proof of ownership again. */
  async prove(id: string, by = ''): Promise<ProvenEndpoint> {
    const { lanes, subscriptions, backlog } = this.#deps
    const target = await this.#getTarget(id)
    const proven = await this.#prover.prove(target, by)
    if (target.endpoint.proof !== 'pending' || proven.proof === 'pending') return proven
    await subscriptions.refresh()
    await lanes.resume(id)
    await backlog.start(proven)
    return proven
  }

  /** `test` sends one signed test event to this endpoint alone, even if it is paused or disabled. `data` replaces its data. */
  async test(id: string, { data }: { readonly data?: object } = {}): Promise<TestResult> {
    const target = await this.#getTarget(id)
    if (target.endpoint.proof === 'pending') {
      throw new SluiceError('CONFLICT', `Endpoint ${id} is not proven and gets no event before the proof.`)
    }
    return sendTestEvent(this.#deps.sender, target, data)
  }

  /** `replay` retries dead letters of the endpoint before its waiting events, or sends it stored events again behind them. */
  async replay(id: string, which: EndpointReplay = {}): Promise<EndpointReplayResult> {
    const { docs, lanes, backlog } = this.#deps
    const endpoint = toEndpoint(await docs.get(id))
    const asked = parseEndpointReplay(which)
    if (asked.kind === 'events') return backlog.replay(endpoint, asked)
    if (asked.kind === 'dead') return { count: await lanes.retryDeadLetters(id, asked.range) }
    const count = await lanes.retryDeadLetter(id, asked.deadLetter)
    if (count !== undefined) return { count }
    throw new SluiceError(
      'NOT_FOUND',
      `The endpoint has no dead letter ${JSON.stringify(asked.deadLetter.slice(0, 100))}.`,
    )
  }

  /** `createToken` shows the token once. It permits the deliveries, test, replay and rotation of this endpoint only. */
  async createToken(id: string, by = ''): Promise<{ readonly token: string }> {
    await this.#deps.docs.get(id)
    return { token: await this.#tokens.create(id, by) }
  }

  revokeToken(id: string, by = ''): Promise<'ok' | 'missing'> {
    return this.#tokens.revoke(id, by)
  }

  /** `findTokenOwner` returns the endpoint id of a subscriber's token, or undefined. */
  findTokenOwner(token: string): Promise<string | undefined> {
    return this.#tokens.findOwner(token)
  }

  /** `findTarget` returns the cached endpoint for one delivery. */
  async findTarget(id: string): Promise<EndpointTarget | undefined> {
    const kept = await this.#deps.docs.readCached(id)
    if (kept === undefined) return undefined
    let made = this.#targets.get(kept)
    if (made === undefined) this.#targets.set(kept, (made = { endpoint: toEndpoint(kept), ...this.#decrypt(kept) }))
    return { ...made, secrets: activeSecrets(made.secrets, this.#deps.now()) }
  }

  async #getTarget(id: string): Promise<EndpointTarget> {
    const target = await this.findTarget(id)
    if (target === undefined) throw endpointNotFound(id)
    return target
  }

  async #withHealth(endpoints: readonly Endpoint[], now: Millis): Promise<readonly EndpointWithHealth[]> {
    const { store, breakers, histories, deliveries } = this.#deps
    const ids = endpoints.map(({ id }) => id)
    const [breakerOf, historyOf, backlogOf] = await Promise.all([
      breakers.getAll(ids),
      histories.getAll(ids),
      readBacklogs(await store(), [...deliveries.keys()], ids),
    ])
    return endpoints.map((endpoint) => {
      const { id } = endpoint
      const [breaker, history] = [breakerOf.get(id) ?? CLOSED, historyOf.get(id) ?? NO_HISTORY]
      const { lastSuccess } = history
      const { stuck = 0, waiting = 0, nextTry } = backlogOf.get(id) ?? {}
      return {
        ...endpoint,
        ...(lastSuccess > 0 && { lastSuccessfulDeliveryAt: lastSuccess }),
        health: computeHealth({ breaker, history, stuck, now }),
        waiting,
        ...(nextTry !== undefined && { nextTry }),
        lastDay: listLastDay(history, now),
      }
    })
  }

  async #proveChange(
    id: string,
    changing: (kept: EndpointDoc, now: Millis) => EndpointDoc,
  ): Promise<Partial<Endpoint>> {
    const { value: kept, now } = await this.#deps.docs.read(id)
    if (kept === undefined || !this.#prover.isRequired) return {}
    const changed = changing(kept, now)
    if (changed.url === kept.url) return {}
    const { secrets, headers } = this.#decrypt(changed)
    return this.#prover.proveBeforeChange({
      endpoint: toEndpoint(changed),
      secrets: activeSecrets(secrets, now),
      headers,
    })
  }

  async #assertEnabled(id: string): Promise<void> {
    if ((await this.#deps.breakers.get(id)).kind !== 'disabled') return
    const text = `Endpoint ${id} is disabled. Enable it from 'backlog' or from 'now'.`
    throw new SluiceError('CONFLICT', text)
  }

  #decrypt(kept: EndpointDoc): ConfidentialFields {
    return decryptConfidential(this.#deps.keyring, kept)
  }

  #encrypt(endpoint: Omit<EndpointDoc, 'encrypted64' | 'headers'>, what: ConfidentialFields): EndpointDoc {
    const encrypted64 = encryptConfidential(this.#deps.keyring, what, endpoint)
    return { ...endpoint, headers: Object.keys(what.headers), encrypted64 }
  }
}

function tooManyEndpoints(which: string): SluiceError {
  return new SluiceError('ENDPOINT_INVALID', `endpoint: there are already ${which}.`, undefined, 'Delete one first.')
}

export const PAUSED = 'The endpoint is paused.'

export interface EnableOptions {
  readonly from: 'backlog' | 'now'
  readonly by?: string
}
