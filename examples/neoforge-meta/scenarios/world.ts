// The world around NeoForge Meta: two repositories and three subscribers, and what scenarios do with them.
import { isDeepStrictEqual } from 'node:util'
import type { Millis } from 'sluice'
import type { Env, Example, Scenario } from '../../kit/example.ts'
import { millisOf } from '../../kit/millis.ts'
import type { Stage } from '../../kit/stage.ts'
import { settingsFrom } from '../settings.ts'
import { RepositoriesStandIn } from '../stand-in/repositories.ts'
import {
  dead,
  flaky,
  good,
  SECRET,
  SubscriberStandIn,
  type Received,
  type WebhookEvent,
} from '../stand-in/subscriber.ts'

export type Who = 'good' | 'flaky' | 'dead'

export interface World extends Readonly<Record<Who, SubscriberStandIn>> {
  readonly repositories: RepositoriesStandIn
  readonly times: {
    readonly discovery: Millis
    readonly batch: Millis
    readonly retry: readonly Millis[]
    readonly timeout: Millis
  }
  /** In a minute. */
  readonly registrations: number
  /** The API key of the operator, once it was made. */
  key: Promise<string> | undefined
  /** Counted, so that each subscriber has a path of its own. */
  made: number
}

const BEHAVIOURS = { good, flaky, dead } as const

/** The times of the design, for virtual time. */
export const TRUE_TIMES: Env = {
  SLUICE_ENCRYPTION_KEY: 'YSBzdGFuZC1pbiBrZXkgd2l0aCAzMiBieXRlcyBvayE=',
  NODE_ENV: 'development',
  DISCOVERY_INTERVAL: '20s',
  REGISTRATIONS_PER_MINUTE: '60',
  WEBHOOK_PROOF: 'challenge',
}

/** Short ones, to look on. */
export const SHORT_TIMES: Env = {
  ...TRUE_TIMES,
  DISCOVERY_INTERVAL: '500ms',
  BATCH_INTERVAL: '1s',
  RETRY_FIRST: '300ms',
  REQUEST_TIMEOUT: '4s',
}

export const makeWorld: Example<World>['world'] = ({ clock, env, serve, tell }) => {
  const subscriber = (who: Who): SubscriberStandIn => {
    const made = new SubscriberStandIn(clock, BEHAVIOURS[who], (what) => tell(who, what))
    serve(who, made.handle)
    return made
  }
  const repositories = new RepositoriesStandIn()
  serve('maven', repositories.maven)
  serve('minecraft', repositories.manifest)
  const { discovery, batchInterval, retry, requestTimeout, registrations } = settingsFrom(env)
  return {
    good: subscriber('good'),
    flaky: subscriber('flaky'),
    dead: subscriber('dead'),
    repositories,
    times: {
      discovery: millisOf(discovery),
      batch: millisOf(batchInterval),
      retry: retry.map(millisOf),
      timeout: millisOf(requestTimeout),
    },
    registrations,
    key: undefined,
    made: 0,
  }
}

/** Ends what a scenario did to the stand-ins. */
export function calm(world: World): void {
  for (const who of ['good', 'flaky', 'dead'] as const) {
    Object.assign(world[who], { behaviour: BEHAVIOURS[who], provesItself: true })
  }
  world.repositories.failure = undefined
}

interface Answer<T> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: T
}

/** Calls the API with a key, by default with that of the operator. */
export async function call<T = Readonly<Record<string, unknown>>>(
  stage: Stage<World>,
  method: string,
  path: string,
  { body, key }: { readonly body?: unknown; readonly key?: string } = {},
): Promise<Answer<T>> {
  const { world } = stage
  world.key ??= stage.app.admin.keys.create({ name: 'the operator', role: 'operate' }).then(({ secret }) => secret)
  const headers = { authorization: `Bearer ${key ?? (await world.key)}`, 'content-type': 'application/json' }
  const response = await stage.send(path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: (text === '' ? {} : JSON.parse(text)) as T }
}

/** How many events were routed that the app has published. */
export function routed(stage: Stage<World>): number {
  return stage.emitted('event.received').filter(({ source }) => source === 'app').length
}

export const SUBSCRIBERS = '/v1/webhooks/subscribers'

/** `Subscriber` is one registration at a stand-in. */
export class Subscriber {
  readonly id: string
  readonly url: string
  readonly who: Who
  readonly #stage: Stage<World>

  constructor(stage: Stage<World>, who: Who, id: string, url: string) {
    this.id = id
    this.url = url
    this.who = who
    this.#stage = stage
  }

  /** Each POST of a batch, in the order of their arrival. */
  get posts(): readonly Received[] {
    const { pathname } = new URL(this.url)
    return this.#stage.world[this.who].received.filter(({ path }) => path === pathname)
  }

  /** Each event once, in the order of their first arrival. */
  get events(): readonly WebhookEvent[] {
    return [...new Map(this.posts.flatMap(({ events }) => events.map((event) => [event.id, event] as const))).values()]
  }

  /** `NEW_VERSION 21.0.1`, in order. */
  get news(): readonly string[] {
    return this.events.map(({ eventType, componentVersion }) => `${eventType} ${componentVersion}`)
  }

  /** Whether no event came in two batches. A batch itself may come again, e.g. after a timeout. */
  get comesOnce(): boolean {
    const batches = new Map(this.posts.map(({ batch, events }) => [batch, events]))
    return [...batches.values()].flat().length === this.events.length
  }

  get versions(): readonly string[] {
    return this.events.map(({ componentVersion }) => componentVersion)
  }

  /** Waits until the subscriber has seen so many events. */
  async has(n: number, within?: Millis): Promise<void> {
    await this.#stage.until(`${this.who} has seen ${n} events`, () => this.events.length >= n, within)
  }

  /** Looks at the registration, with its health. */
  async look(): Promise<Look> {
    return (await call<Look>(this.#stage, 'GET', `${SUBSCRIBERS}/${this.id}`)).json
  }

  async deliveries(limit = 50): Promise<readonly Delivery[]> {
    const path = `${SUBSCRIBERS}/${this.id}/deliveries?limit=${limit}`
    return (await call<{ items: readonly Delivery[] }>(this.#stage, 'GET', path)).json.items
  }

  async change(body: unknown): Promise<Answer<Look>> {
    return call<Look>(this.#stage, 'PATCH', `${SUBSCRIBERS}/${this.id}`, { body })
  }

  async remove(): Promise<Answer<{ readonly dropped: number }>> {
    return call(this.#stage, 'DELETE', `${SUBSCRIBERS}/${this.id}`)
  }
}

export interface Look {
  readonly active: boolean
  readonly proof: string
  readonly lastSuccessfulDeliveryAt?: string
  readonly health: { readonly status: string; readonly breaker: string; readonly failedBatches: number }
}

export interface Delivery {
  readonly status: string
  readonly events: number
  readonly firstEvent?: string
  readonly lastEvent?: string
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly lastError: string
  readonly nextRetryAt?: string
  readonly deliveredAt?: string
}

/** The address of a subscriber that is not registered yet. */
export function newUrl(stage: Stage<World>, who: Who): string {
  return `${stage.url(who)}/webhooks/neoforge/${stage.world.made++}`
}

/** Registers a subscriber as the design does, but without the news of earlier scenarios. `fields` are further ones. */
export async function subscribe(
  stage: Stage<World>,
  who: Who,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Subscriber> {
  const url = newUrl(stage, who)
  const body = { name: who, url, secret: SECRET, from: 'now', ...fields }
  const { status, json } = await call<{ readonly id: string }>(stage, 'POST', SUBSCRIBERS, { body })
  if (status !== 200) throw new Error(`The app answered ${status} to a registration: ${JSON.stringify(json)}`)
  return new Subscriber(stage, who, json.id, url)
}

/** A scenario with subscribers of its own: they are removed at its end. */
export function alone(play: Scenario<World>): Scenario<World> {
  return async (stage) => {
    try {
      await play(stage)
    } finally {
      for (const { id } of await stage.app.endpoints.list()) await stage.app.endpoints.delete(id)
    }
  }
}

/** Checks that two values are the same, and shows both if they are not. */
export function equal<T>(stage: Stage<World>, says: string, got: T, wanted: T): void {
  const held = isDeepStrictEqual(got, wanted)
  stage.check(held ? says : `${says}: ${JSON.stringify(wanted)}; got ${JSON.stringify(got)}`, held)
}
