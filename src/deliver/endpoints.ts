// `Endpoints` implements `app.endpoints`. Every change of the recipients of an event raises the epoch of the routes
// (L18).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Keyring } from '../crypto/keyring.ts'
import type { Store } from '../store/contract/index.ts'
import type { GuardRules } from './http/addresses.ts'
import type { BreakerStore } from './health/breaker-store.ts'
import { decryptConfidential, encryptConfidential, type ConfidentialFields } from './endpoint-secrets.ts'
import { listDeliveries, type DeliveriesQuery, type DeliveryRecord } from './deliveries.ts'
import { parseEndpointFields, type Endpoint, type EndpointUpdate, type NewEndpoint } from './endpoint.ts'
import { toFields, endpointNotFound, toEndpoint, type EndpointDocs, type EndpointDoc } from './endpoint-docs.ts'
import { applyHeadersChange, type HeaderMap } from './http/headers.ts'
import { computeHealth, type EndpointHealth, type HealthInputs } from './health/health.ts'
import type { PostHistory } from './health/history.ts'
import type { EndpointTokens } from './endpoint-tokens.ts'
import type { SendDependencies } from './send-batch.ts'
import type { ProvenEndpoint, EndpointProver } from './endpoint-prover.ts'
import { activeSecrets, firstSecret, newSecret, rotateSecret, type EndpointSecrets } from './secrets.ts'
import type { Subscriptions } from './subscriptions.ts'
import { sendTestEvent, type TestResult } from './test-event.ts'

export interface EndpointsDependencies {
  readonly store: () => Promise<Store>
  /** The time of the store. */
  readonly now: () => Millis
  readonly docs: EndpointDocs
  readonly subscriptions: Subscriptions
  readonly keyring: Keyring
  readonly guardRules: GuardRules
  /** Acts on the lanes of an endpoint. `drop` returns the number of dropped events. */
  readonly lanes: {
    hold(id: string, reason: string, by: string): Promise<void>
    resume(id: string): Promise<void>
    drop(id: string): Promise<number>
    /** Makes each open window of a delivery due, for all endpoints, and returns their number. */
    runAll(): Promise<number>
    /**
     * Retries all dead letters of the endpoint, or one, and returns their number. Undefined: the dead letter does not
     * exist.
     */
    replay(id: string, letter: string | undefined): Promise<number | undefined>
  }
  readonly tokens: EndpointTokens
  readonly prover: EndpointProver
  /** How many endpoints one address, and one key, may register over the API. */
  readonly registrations: { readonly rate: number; readonly per: Millis }
  readonly breakers: Pick<BreakerStore, 'get'>
  /** The deliveries by name, with their maximum number of attempts. */
  readonly deliveries: DeliveriesQuery['deliveries']
  readonly readHealthInputs: (ids: readonly string[], now: Millis) => Promise<(id: string) => HealthInputs>
  readonly histories: { getAll(ids: readonly string[]): Promise<ReadonlyMap<string, PostHistory>> }
  readonly sendDependencies: () => SendDependencies
  /** Removes the breaker and the history of a deleted endpoint. */
  readonly forgetHealth: (id: string) => Promise<void>
}

/** The secret is returned once and never shown again. */
export type CreatedEndpoint = ProvenEndpoint & { readonly secret: string }

/** An endpoint with its health. */
export interface EndpointWithHealth extends Endpoint {
  readonly lastSuccessfulDeliveryAt?: Millis
  readonly health: EndpointHealth
}

/** What a delivery needs to post to an endpoint. */
export interface EndpointTarget {
  readonly endpoint: Endpoint
  /** The newest secret first. */
  readonly secrets: readonly string[]
  /** The endpoint's own headers. */
  readonly headers: HeaderMap
}

const MAX_ENDPOINTS = 10_000

export class Endpoints {
  readonly #deps: EndpointsDependencies
  /** The parsed form of a document lives as long as the cached document. */
  readonly #targets = new WeakMap<EndpointDoc, { readonly endpoint: Endpoint } & ConfidentialFields>()

  constructor(deps: EndpointsDependencies) {
    this.#deps = deps
  }

  get registrations(): EndpointsDependencies['registrations'] {
    return this.#deps.registrations
  }

  async create(given: NewEndpoint, by = ''): Promise<CreatedEndpoint> {
    const { keyring, guardRules: rules, docs, subscriptions, prover } = this.#deps
    const active = given?.active ?? true
    if (!keyring.hasKey)
      throw new SluiceError(
        'CONFLICT',
        'Secrets are stored encrypted, and the app has no encryption key. Set encryptionKey first.',
      )
    const secret = given?.secret ?? newSecret()
    const fields = parseEndpointFields(given, [secret], rules)
    const { count, now } = await docs.count()
    if (count >= MAX_ENDPOINTS) throw tooManyEndpoints()
    const id = `ep_${randomBytes(9).toString('base64url')}`
    const { isRequired: isProofRequired } = prover
    const endpoint = { id, ...fields, createdAt: now, active, proof: isProofRequired ? 'pending' : 'none' } as const
    const kept = this.#encrypt(endpoint, { secrets: firstSecret(secret, now), headers: fields.headers })
    await docs.add(kept, { by, what: `added endpoint ${id}` })
    if (isProofRequired) return { ...(await this.prove(id, by)), secret }
    await subscriptions.refresh()
    return { ...toEndpoint(kept), secret }
  }

  /** `list` returns the oldest endpoint first. */
  async list(): Promise<readonly EndpointWithHealth[]> {
    const { value: kept, now } = await this.#deps.docs.readAll()
    const all = kept.map(toEndpoint).toSorted((one, other) => one.createdAt - other.createdAt)
    return this.#withHealth(all, now)
  }

  async get(id: string): Promise<EndpointWithHealth | undefined> {
    const { value: kept, now } = await this.#deps.docs.read(id)
    return kept === undefined ? undefined : (await this.#withHealth([toEndpoint(kept)], now))[0]
  }

  /** `update` changes the given fields. `active` pauses or resumes the endpoint; a new `secret` starts a rotation. */
  async update(id: string, change: EndpointUpdate, by = ''): Promise<Endpoint> {
    const { guardRules: rules, docs, subscriptions } = this.#deps
    if ('tenant' in change)
      throw new SluiceError('ENDPOINT_INVALID', 'endpoint: tenant cannot be changed. Create another endpoint.')
    if (change.active === true) await this.#assertEnabled(id)
    const changing = (kept: EndpointDoc, now: Millis): EndpointDoc => {
      const { active = kept.active, secret } = change
      const before = this.#decrypt(kept)
      const secrets = secret === undefined ? before.secrets : rotateSecrets(before.secrets, { secret }, now)
      const headers = change.headers === undefined ? before.headers : applyHeadersChange(before.headers, change.headers)
      const merged = { ...toFields(kept), ...change, headers }
      const fields = parseEndpointFields(merged, activeSecrets(secrets, now), rules)
      return this.#encrypt({ ...kept, ...fields, active }, { secrets, headers: fields.headers })
    }
    const proven = await this.#proveChange(id, changing)
    const done = { by, what: `changed ${Object.keys(change).join(', ') || 'nothing'} of endpoint ${id}` }
    const changed = await docs.change(id, done, (kept, now) => ({ ...changing(kept, now), ...proven }))
    await subscriptions.refresh()
    if (change.active !== undefined) await this.#steerLanes(id, change.active, by)
    return changed
  }

  /** `pause` makes the events of the endpoint wait. */
  async pause(id: string, by = ''): Promise<Endpoint> {
    const done = { by, what: `paused endpoint ${id}` }
    const endpoint = await this.#deps.docs.change(id, done, (kept) => ({ ...kept, active: false }))
    await this.#steerLanes(id, false, by)
    return endpoint
  }

  /**
   * `resume` makes the waiting events due at once. It rejects a disabled endpoint: `enable` asks what to do with the
   * backlog.
   */
  async resume(id: string, by = ''): Promise<Endpoint> {
    await this.#assertEnabled(id)
    const done = { by, what: `resumed endpoint ${id}` }
    const endpoint = await this.#deps.docs.change(id, done, (kept) => ({ ...kept, active: true }))
    await this.#steerLanes(id, true, by)
    return endpoint
  }

  /**
   * `enable` ends the disabled state. With `backlog` the waiting events are due at once. With `now` they are dropped,
   * and `dropped` is their number.
   */
  async enable(id: string, { from, by = '' }: EnableOptions): Promise<Endpoint & { readonly dropped: number }> {
    const { docs, lanes, breakers } = this.#deps
    if (from !== 'backlog' && from !== 'now') {
      const text = `endpoints.enable: from must be 'backlog' (deliver the waiting events) or 'now' (drop them); got ${JSON.stringify(from)}.`
      throw new SluiceError('CONFIG_INVALID', text)
    }
    const { value: found } = await docs.read(id)
    if (found === undefined) throw endpointNotFound(id)
    if ((await breakers.get(id)).kind !== 'disabled') {
      if (from === 'backlog') return { ...toEndpoint(found), dropped: 0 }
      throw new SluiceError('CONFLICT', `Endpoint ${id} is not disabled, so its waiting events are not dropped.`)
    }
    const done = { by, what: `enabled endpoint ${id}, ${from === 'now' ? 'from now on' : 'with its backlog'}` }
    const endpoint = await docs.change(id, done, (kept) => kept)
    const dropped = from === 'now' ? await lanes.drop(id) : 0
    await lanes.resume(id)
    return { ...endpoint, dropped }
  }

  /**
   * `rotateSecret` keeps the previous secret active for a day. Signings with room for one signature use only the
   * previous one meanwhile. `force` ends it at once.
   */
  async rotateSecret(
    id: string,
    { secret = newSecret(), force = false, by = '' }: Partial<RotateSecretOptions> = {},
  ): Promise<CreatedEndpoint> {
    const { docs, guardRules: rules } = this.#deps
    const done = { by, what: `rotated the secret of endpoint ${id}` }
    const endpoint = await docs.change(id, done, (kept, now) => {
      const { secrets, headers } = this.#decrypt(kept)
      parseEndpointFields({ ...toFields(kept), secret }, [secret], rules)
      return this.#encrypt(kept, { secrets: rotateSecrets(secrets, { secret, force }, now), headers })
    })
    return { ...endpoint, secret }
  }

  /** `delete` drops the waiting events and returns their number. */
  async delete(id: string, by = ''): Promise<{ readonly dropped: number }> {
    const { docs, lanes, subscriptions, forgetHealth: forget } = this.#deps
    await docs.remove(id, { by, what: `removed endpoint ${id}` })
    await subscriptions.refresh()
    const dropped = await lanes.drop(id)
    await forget(id)
    return { dropped }
  }

  /**
   * `trigger` ends every open window and returns the number of batches that became due. Retries and paused endpoints
   * keep waiting.
   */
  async trigger(): Promise<{ readonly triggered: number }> {
    return { triggered: await this.#deps.lanes.runAll() }
  }

  /** `deliveries` returns what is in progress, then what has ended, newest first. */
  async deliveries(id: string, n = 100): Promise<readonly DeliveryRecord[]> {
    const { docs, histories, deliveries, store } = this.#deps
    if ((await docs.read(id)).value === undefined) throw endpointNotFound(id)
    const attempts = (await histories.getAll([id])).get(id)?.attempts ?? []
    return listDeliveries({ id, deliveries, attempts, n }, await store())
  }

  /** `prove` requests the proof of ownership again. */
  async prove(id: string, by = ''): Promise<ProvenEndpoint> {
    const { lanes, prover, subscriptions } = this.#deps
    const target = await this.findTarget(id)
    if (target === undefined) throw endpointNotFound(id)
    const proven = await prover.prove(target, by)
    if (target.endpoint.proof !== 'pending' || proven.proof === 'pending') return proven
    await subscriptions.refresh()
    await lanes.resume(id)
    return proven
  }

  /**
   * `test` sends one signed test event to this endpoint alone, even if it is paused or disabled, so that an operator
   * can check a repair.
   */
  async test(id: string): Promise<TestResult> {
    const target = await this.findTarget(id)
    if (target === undefined) throw endpointNotFound(id)
    if (target.endpoint.proof === 'pending') {
      throw new SluiceError('CONFLICT', `Endpoint ${id} is not proven and gets no event before the proof.`)
    }
    return sendTestEvent(this.#deps.sendDependencies(), target)
  }

  /** `replay` retries the dead letters of the endpoint, or one of them, before its waiting events. */
  async replay(id: string, { letter }: { readonly letter?: string } = {}): Promise<{ readonly count: number }> {
    const { docs, lanes } = this.#deps
    if ((await docs.read(id)).value === undefined) throw endpointNotFound(id)
    const count = await lanes.replay(id, letter)
    if (count !== undefined) return { count }
    throw new SluiceError('NOT_FOUND', `The endpoint has no dead letter ${JSON.stringify(letter?.slice(0, 100))}.`)
  }

  /**
   * `createToken` returns a token for the subscriber, once. The token permits the deliveries, test, replay and
   * rotation of this endpoint only.
   */
  async createToken(id: string, by = ''): Promise<{ readonly token: string }> {
    const { docs, tokens } = this.#deps
    if ((await docs.read(id)).value === undefined) throw endpointNotFound(id)
    return { token: await tokens.create(id, by) }
  }

  revokeToken(id: string, by = ''): Promise<'ok' | 'missing'> {
    return this.#deps.tokens.revoke(id, by)
  }

  /** `findTokenOwner` returns the endpoint id of a subscriber's token, or undefined. */
  findTokenOwner(token: string): Promise<string | undefined> {
    return this.#deps.tokens.findOwner(token)
  }

  /** `findTarget` returns the cached endpoint for one delivery. */
  async findTarget(id: string): Promise<EndpointTarget | undefined> {
    const kept = await this.#deps.docs.readCached(id)
    if (kept === undefined) return undefined
    let made = this.#targets.get(kept)
    if (made === undefined) this.#targets.set(kept, (made = { endpoint: toEndpoint(kept), ...this.#decrypt(kept) }))
    return { ...made, secrets: activeSecrets(made.secrets, this.#deps.now()) }
  }

  async #withHealth(endpoints: readonly Endpoint[], now: Millis): Promise<readonly EndpointWithHealth[]> {
    const ids = endpoints.map(({ id }) => id)
    const healthInputsOf = await this.#deps.readHealthInputs(ids, now)
    return endpoints.map((endpoint) => {
      const inputs = healthInputsOf(endpoint.id)
      const { lastSuccess } = inputs.history
      return {
        ...endpoint,
        ...(lastSuccess > 0 && { lastSuccessfulDeliveryAt: lastSuccess }),
        health: computeHealth(inputs),
      }
    })
  }

  async #proveChange(
    id: string,
    changing: (kept: EndpointDoc, now: Millis) => EndpointDoc,
  ): Promise<Partial<Endpoint>> {
    const { docs, prover } = this.#deps
    const { value: kept, now } = await docs.read(id)
    if (kept === undefined || !prover.isRequired) return {}
    const changed = changing(kept, now)
    if (changed.url === kept.url) return {}
    const { secrets, headers } = this.#decrypt(changed)
    return prover.proveBeforeChange({ endpoint: toEndpoint(changed), secrets: activeSecrets(secrets, now), headers })
  }

  async #assertEnabled(id: string): Promise<void> {
    if ((await this.#deps.breakers.get(id)).kind !== 'disabled') return
    const text = `Endpoint ${id} is disabled. Enable it from 'backlog' or from 'now'.`
    throw new SluiceError('CONFLICT', text)
  }

  /** Applies the new `active` value to the waiting events. */
  #steerLanes(id: string, active: boolean, by: string): Promise<void> {
    const { lanes } = this.#deps
    return active ? lanes.resume(id) : lanes.hold(id, PAUSED, by)
  }

  #decrypt(kept: EndpointDoc): ConfidentialFields {
    return decryptConfidential(this.#deps.keyring, kept)
  }

  #encrypt(endpoint: Omit<EndpointDoc, 'sealed64' | 'headers'>, what: ConfidentialFields): EndpointDoc {
    const sealed64 = encryptConfidential(this.#deps.keyring, what, endpoint)
    return { ...endpoint, headers: Object.keys(what.headers), sealed64 }
  }
}

export const PAUSED = 'The endpoint is paused.'

export interface EnableOptions {
  readonly from: 'backlog' | 'now'
  readonly by?: string
}

export interface RotateSecretOptions {
  readonly secret: string
  readonly force: boolean
  readonly by: string
}

function rotateSecrets(
  before: EndpointSecrets,
  { secret, force = false }: Pick<RotateSecretOptions, 'secret'> & Partial<RotateSecretOptions>,
  now: Millis,
): EndpointSecrets {
  const next = rotateSecret(before, secret, now, force)
  if (next.kind === 'rotated') return next.secrets
  const until = new Date(next.until).toISOString()
  throw new SluiceError('CONFLICT', `The previous secret stays active until ${until}. Use force to end it now.`)
}

function tooManyEndpoints(): SluiceError {
  return new SluiceError(
    'ENDPOINT_INVALID',
    `endpoint: there are already ${MAX_ENDPOINTS} endpoints.`,
    undefined,
    'Delete one first.',
  )
}
