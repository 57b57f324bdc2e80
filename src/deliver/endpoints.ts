// Subscribers, as people and programs act on them. A change of who gets what raises the epoch of the routes (L18).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Seal } from '../seal.ts'
import type { Store } from '../store/contract/index.ts'
import type { GuardRules } from './addresses.ts'
import type { Breakers } from './breakers.ts'
import { openConfidential, sealConfidential, type Confidential } from './confidential.ts'
import { deliveriesTo, type AskedDeliveries, type DeliveryRecord } from './deliveries.ts'
import { endpointFields, type Endpoint, type EndpointChange, type NewEndpoint } from './endpoint.ts'
import { fieldsOf, missing, shown, type EndpointDocs, type KeptEndpoint } from './endpoint-docs.ts'
import { changedHeaders, type Headers } from './headers.ts'
import { healthOf, type EndpointHealth, type Fared } from './health.ts'
import type { History } from './history.ts'
import type { OwnTokens } from './own-tokens.ts'
import type { PostingParts } from './posting.ts'
import type { ProvenEndpoint, Proving } from './proving.ts'
import { activeSecrets, firstSecret, newSecret, rotated, type EndpointSecrets } from './secrets.ts'
import type { Subscriptions } from './subscriptions.ts'
import { sendTest, type TestResult } from './test-event.ts'

export interface EndpointsParts {
  readonly store: () => Promise<Store>
  /** The store's time. */
  readonly now: () => Millis
  readonly docs: EndpointDocs
  readonly subscriptions: Subscriptions
  readonly seal: Seal
  readonly rules: GuardRules
  /** What waits for it is due, held or dropped; the number of events that were. */
  readonly lanes: {
    hold(id: string, reason: string, by: string): Promise<void>
    letGo(id: string): Promise<void>
    drop(id: string): Promise<number>
    /** Of all endpoints: those whose window is open are due. How many. */
    runAll(): Promise<number>
    /** Its dead letters, or this one of them, are tried again: how many. Undefined: it has no such letter. */
    replay(id: string, letter: string | undefined): Promise<number | undefined>
  }
  readonly tokens: OwnTokens
  readonly proving: Proving
  /** How many may be registered over the API, of one address and of one key. */
  readonly registrations: { readonly rate: number; readonly per: Millis }
  readonly breakers: Pick<Breakers, 'of'>
  /** By name: how often each tries. */
  readonly deliveries: AskedDeliveries['deliveries']
  readonly fared: (ids: readonly string[], now: Millis) => Promise<(id: string) => Fared>
  readonly histories: { of(ids: readonly string[]): Promise<ReadonlyMap<string, History>> }
  readonly posting: () => PostingParts
  /** How it fared goes with it. */
  readonly forget: (id: string) => Promise<void>
}

/** Its secret is shown now, and never again. */
export type AddedEndpoint = ProvenEndpoint & { readonly secret: string }

/** With how it fares. */
export interface SeenEndpoint extends Endpoint {
  readonly lastSuccessfulDeliveryAt?: Millis
  readonly health: EndpointHealth
}

/** An endpoint as its deliveries need it. */
export interface Addressed {
  readonly endpoint: Endpoint
  /** The newest first. */
  readonly secrets: readonly string[]
  /** Its own. */
  readonly headers: Headers
}

const MOST = 10_000

export class Endpoints {
  readonly #parts: EndpointsParts
  /** As long as the document is at hand, so is what was made of it. */
  readonly #made = new WeakMap<KeptEndpoint, { readonly endpoint: Endpoint } & Confidential>()

  constructor(parts: EndpointsParts) {
    this.#parts = parts
  }

  get registrations(): EndpointsParts['registrations'] {
    return this.#parts.registrations
  }

  async add(given: NewEndpoint, by = ''): Promise<AddedEndpoint> {
    const { seal, rules, docs, subscriptions, proving } = this.#parts
    const active = given?.active ?? true
    if (!seal.hasKey) throw new SluiceError('NOT_POSSIBLE', 'Secrets are kept sealed: give the app a key first.')
    const secret = given?.secret ?? newSecret()
    const fields = endpointFields(given, [secret], rules)
    const { count, now } = await docs.count()
    if (count >= MOST) throw new SluiceError('ENDPOINT_INVALID', `endpoint: there are ${MOST}; remove one first.`)
    const id = `ep_${randomBytes(9).toString('base64url')}`
    const { isAsked } = proving
    const endpoint = { id, ...fields, createdAt: now, active, proof: isAsked ? 'pending' : 'none' } as const
    const kept = this.#sealed(endpoint, { secrets: firstSecret(secret, now), headers: fields.headers })
    await docs.add(kept, { by, what: `added endpoint ${id}` })
    if (isAsked) return { ...(await this.prove(id, by)), secret }
    await subscriptions.refresh()
    return { ...shown(kept), secret }
  }

  /** The oldest first. */
  async list(): Promise<readonly SeenEndpoint[]> {
    const { kept, now } = await this.#parts.docs.all()
    const all = kept.map(shown).toSorted((one, other) => one.createdAt - other.createdAt)
    return this.#seen(all, now)
  }

  async get(id: string): Promise<SeenEndpoint | undefined> {
    const { kept, now } = await this.#parts.docs.one(id)
    return kept === undefined ? undefined : (await this.#seen([shown(kept)], now))[0]
  }

  /** What is not named stays as it is. `active` pauses or resumes it, `secret` is rotated in. */
  async change(id: string, change: EndpointChange, by = ''): Promise<Endpoint> {
    const { rules, docs, subscriptions } = this.#parts
    if ('tenant' in change) throw new SluiceError('ENDPOINT_INVALID', 'endpoint: tenant is for good; add another.')
    if (change.active === true) await this.#mustBeEnabled(id)
    const changing = (kept: KeptEndpoint, now: Millis): KeptEndpoint => {
      const { active = kept.active, secret } = change
      const before = this.#opened(kept)
      const secrets = secret === undefined ? before.secrets : rotatedOf(before.secrets, { secret }, now)
      const headers = change.headers === undefined ? before.headers : changedHeaders(before.headers, change.headers)
      const said = { ...fieldsOf(kept), ...change, headers }
      const fields = endpointFields(said, activeSecrets(secrets, now), rules)
      return this.#sealed({ ...kept, ...fields, active }, { secrets, headers: fields.headers })
    }
    const proven = await this.#provenFor(id, changing)
    const done = { by, what: `changed ${Object.keys(change).join(', ') || 'nothing'} of endpoint ${id}` }
    const changed = await docs.change(id, done, (kept, now) => ({ ...changing(kept, now), ...proven }))
    await subscriptions.refresh()
    if (change.active !== undefined) await this.#steer(id, change.active, by)
    return changed
  }

  /** Its events wait. */
  async pause(id: string, by = ''): Promise<Endpoint> {
    const done = { by, what: `paused endpoint ${id}` }
    const endpoint = await this.#parts.docs.change(id, done, (kept) => ({ ...kept, active: false }))
    await this.#steer(id, false, by)
    return endpoint
  }

  /** What waits is due at once. One that is disabled is enabled first: what is to become of its backlog has to be said. */
  async resume(id: string, by = ''): Promise<Endpoint> {
    await this.#mustBeEnabled(id)
    const done = { by, what: `resumed endpoint ${id}` }
    const endpoint = await this.#parts.docs.change(id, done, (kept) => ({ ...kept, active: true }))
    await this.#steer(id, true, by)
    return endpoint
  }

  /** After it was disabled. `backlog`: what waits goes at once. `now`: what waits is dropped, and how many events is told. */
  async enable(id: string, { from, by = '' }: Enabling): Promise<Endpoint & { readonly dropped: number }> {
    const { docs, lanes, breakers } = this.#parts
    if (from !== 'backlog' && from !== 'now') {
      const text = `endpoints.enable: from is ${JSON.stringify(from)}; say 'backlog' to deliver what waits, or 'now' to drop it.`
      throw new SluiceError('CONFIG_INVALID', text)
    }
    const { kept: found } = await docs.one(id)
    if (found === undefined) throw missing(id)
    if ((await breakers.of(id)).kind !== 'disabled') {
      if (from === 'backlog') return { ...shown(found), dropped: 0 }
      throw new SluiceError('NOT_POSSIBLE', `Endpoint ${id} is not disabled: what waits for it is not dropped.`)
    }
    const done = { by, what: `enabled endpoint ${id}, ${from === 'now' ? 'from now on' : 'with its backlog'}` }
    const endpoint = await docs.change(id, done, (kept) => kept)
    const dropped = from === 'now' ? await lanes.drop(id) : 0
    await lanes.letGo(id)
    return { ...endpoint, dropped }
  }

  /** The one before goes on for a day: beside the new one, or where there is room for one only, alone. `force` ends it at once. */
  async rotateSecret(
    id: string,
    { secret = newSecret(), force = false, by = '' }: Partial<Rotation> = {},
  ): Promise<AddedEndpoint> {
    const { docs, rules } = this.#parts
    const done = { by, what: `rotated the secret of endpoint ${id}` }
    const endpoint = await docs.change(id, done, (kept, now) => {
      const { secrets, headers } = this.#opened(kept)
      endpointFields({ ...fieldsOf(kept), secret }, [secret], rules)
      return this.#sealed(kept, { secrets: rotatedOf(secrets, { secret, force }, now), headers })
    })
    return { ...endpoint, secret }
  }

  /** What waits for it is dropped; how many events that were. */
  async remove(id: string, by = ''): Promise<{ readonly dropped: number }> {
    const { docs, lanes, subscriptions, forget } = this.#parts
    await docs.remove(id, { by, what: `removed endpoint ${id}` })
    await subscriptions.refresh()
    const dropped = await lanes.drop(id)
    await forget(id)
    return { dropped }
  }

  /** Every open window is over; what waits for another try, or is paused, waits on. How many batches that makes due. */
  async trigger(): Promise<{ readonly triggered: number }> {
    return { triggered: await this.#parts.lanes.runAll() }
  }

  /** What is under way, then what has ended, the newest first. */
  async deliveries(id: string, n = 100): Promise<readonly DeliveryRecord[]> {
    const { docs, histories, deliveries, store } = this.#parts
    if ((await docs.one(id)).kept === undefined) throw missing(id)
    const attempts = (await histories.of([id])).get(id)?.attempts ?? []
    return deliveriesTo({ id, deliveries, attempts, n }, await store())
  }

  /** Asks it whether it is its owner's, as at its registration. */
  async prove(id: string, by = ''): Promise<ProvenEndpoint> {
    const { lanes, proving, subscriptions } = this.#parts
    const addressed = await this.addressed(id)
    if (addressed === undefined) throw missing(id)
    const proven = await proving.prove(addressed, by)
    if (addressed.endpoint.proof !== 'pending' || proven.proof === 'pending') return proven
    await subscriptions.refresh()
    await lanes.letGo(id)
    return proven
  }

  /** One signed event to it alone, and what came of it. Also to one that is paused or disabled: is it mended? */
  async test(id: string): Promise<TestResult> {
    const addressed = await this.addressed(id)
    if (addressed === undefined) throw missing(id)
    if (addressed.endpoint.proof === 'pending') {
      throw new SluiceError('NOT_POSSIBLE', `Endpoint ${id} is not proven, and gets nothing before it is.`)
    }
    return sendTest(this.#parts.posting(), addressed)
  }

  /** What could not be delivered to it, or one dead letter of it, is tried again before what waits. */
  async replay(id: string, { letter }: { readonly letter?: string } = {}): Promise<{ readonly count: number }> {
    const { docs, lanes } = this.#parts
    if ((await docs.one(id)).kept === undefined) throw missing(id)
    const count = await lanes.replay(id, letter)
    if (count !== undefined) return { count }
    throw new SluiceError('NOT_FOUND', `The endpoint has no dead letter ${JSON.stringify(letter?.slice(0, 100))}.`)
  }

  /** For the subscriber: its deliveries, test, replay and rotation, and nothing else. Shown now, and never again. */
  async makeToken(id: string, by = ''): Promise<{ readonly token: string }> {
    const { docs, tokens } = this.#parts
    if ((await docs.one(id)).kept === undefined) throw missing(id)
    return { token: await tokens.make(id, by) }
  }

  revokeToken(id: string, by = ''): Promise<'ok' | 'missing'> {
    return this.#parts.tokens.revoke(id, by)
  }

  /** The endpoint that a subscriber's own token is for; undefined: nobody has it. */
  ownerOf(token: string): Promise<string | undefined> {
    return this.#parts.tokens.ownerOf(token)
  }

  /** As it was a moment ago, for one delivery. */
  async addressed(id: string): Promise<Addressed | undefined> {
    const kept = await this.#parts.docs.lately(id)
    if (kept === undefined) return undefined
    let made = this.#made.get(kept)
    if (made === undefined) this.#made.set(kept, (made = { endpoint: shown(kept), ...this.#opened(kept) }))
    return { ...made, secrets: activeSecrets(made.secrets, this.#parts.now()) }
  }

  async #seen(endpoints: readonly Endpoint[], now: Millis): Promise<readonly SeenEndpoint[]> {
    const ids = endpoints.map(({ id }) => id)
    const fared = await this.#parts.fared(ids, now)
    return endpoints.map((endpoint) => {
      const how = fared(endpoint.id)
      const { lastSuccess } = how.history
      return {
        ...endpoint,
        ...(lastSuccess > 0 && { lastSuccessfulDeliveryAt: lastSuccess }),
        health: healthOf(how),
      }
    })
  }

  async #provenFor(
    id: string,
    changing: (kept: KeptEndpoint, now: Millis) => KeptEndpoint,
  ): Promise<Partial<Endpoint>> {
    const { docs, proving } = this.#parts
    const { kept, now } = await docs.one(id)
    if (kept === undefined || !proving.isAsked) return {}
    const changed = changing(kept, now)
    if (changed.url === kept.url) return {}
    const { secrets, headers } = this.#opened(changed)
    return proving.before({ endpoint: shown(changed), secrets: activeSecrets(secrets, now), headers })
  }

  async #mustBeEnabled(id: string): Promise<void> {
    if ((await this.#parts.breakers.of(id)).kind !== 'disabled') return
    const text = `Endpoint ${id} is disabled: enable it, and say whether from 'backlog' or from 'now' on.`
    throw new SluiceError('NOT_POSSIBLE', text)
  }

  /** What waits for it, as it now is. */
  #steer(id: string, active: boolean, by: string): Promise<void> {
    const { lanes } = this.#parts
    return active ? lanes.letGo(id) : lanes.hold(id, PAUSED, by)
  }

  #opened(kept: KeptEndpoint): Confidential {
    return openConfidential(this.#parts.seal, kept)
  }

  #sealed(endpoint: Omit<KeptEndpoint, 'sealed64'>, what: Confidential): KeptEndpoint {
    const sealed64 = sealConfidential(this.#parts.seal, what, endpoint)
    return { ...endpoint, headers: Object.keys(what.headers), sealed64 }
  }
}

export const PAUSED = 'The endpoint is paused.'

export interface Enabling {
  readonly from: 'backlog' | 'now'
  readonly by?: string
}

export interface Rotation {
  readonly secret: string
  readonly force: boolean
  readonly by: string
}

function rotatedOf(
  before: EndpointSecrets,
  { secret, force = false }: Pick<Rotation, 'secret'> & Partial<Rotation>,
  now: Millis,
): EndpointSecrets {
  const next = rotated(before, secret, now, force)
  if (next.kind === 'rotated') return next.secrets
  const until = new Date(next.until).toISOString()
  throw new SluiceError('NOT_POSSIBLE', `The secret before the last counts until ${until}; use force to end that.`)
}
