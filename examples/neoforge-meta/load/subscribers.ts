// The subscribers of the load: each is a consumer of README.md behind a front that misbehaves and keeps what it saw.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { systemClock, type Millis, type NewEndpoint } from 'sluice'
import type { Chance } from '../../kit/chance.ts'
import { hmacConsumer } from '../consumers/hmac.ts'
import { standardConsumer } from '../consumers/standard-webhooks.ts'

/** What the subscriber asks for. */
export interface Wish {
  readonly types?: readonly string[]
  readonly component?: string
}

export interface Post {
  readonly batch: string
  readonly events: readonly string[]
  readonly at: Millis
  /** `accepted` with a 2xx; `refused` with an error; `cut`: handled, but the connection was closed without an answer. */
  end: 'open' | 'accepted' | 'refused' | 'cut'
}

/** What happens to an attempt. A batch gets through at its third attempt at the latest. */
type Fault = 'refuse' | 'refuse-late' | 'cut' | 'slow' | undefined

interface Kind {
  readonly name: string
  readonly count: number
  readonly wish?: Wish
  readonly isStandard?: boolean
  readonly fields?: Partial<NewEndpoint>
  readonly fault?: (attempt: number, chance: Chance) => Fault
}

const mostlyFine =
  (share: number, ...faults: readonly Fault[]) =>
  (attempt: number, chance: Chance): Fault =>
    attempt < 3 && chance.hits(share) ? faults[chance.between(0, faults.length - 1)] : undefined

/** Twenty of mixed health. */
const KINDS: readonly Kind[] = [
  { name: 'steady', count: 4 },
  { name: 'only-new', count: 2, wish: { types: ['NEW_VERSION'] } },
  { name: 'only-minecraft', count: 2, wish: { component: 'MINECRAFT' } },
  { name: 'both-filters', count: 1, wish: { types: ['NEW_VERSION', 'VERSION_UPDATED'], component: 'NEOFORGE' } },
  { name: 'limited', count: 1, fields: { rate: { rate: 1, per: '1s' } } },
  { name: 'slow', count: 2, fault: mostlyFine(0.5, 'slow') },
  { name: 'flaky', count: 3, fault: mostlyFine(0.4, 'refuse', 'refuse-late') },
  { name: 'cut-off', count: 2, fault: mostlyFine(0.3, 'cut') },
  { name: 'standard', count: 1, isStandard: true },
  { name: 'flaky-standard', count: 1, isStandard: true, fault: mostlyFine(0.4, 'refuse', 'cut') },
  { name: 'dead', count: 1, fault: () => 'refuse' },
]

const SECRETS = { hmac: 'shared-secret-key', standard: 'whsec_c2hhcmVkLXNlY3JldC1rZXktb2YtYm90aA==' }

export class LoadSubscriber {
  readonly name: string
  readonly wish: Wish
  readonly posts: Post[] = []
  /** The events that the consumer handled, in order. */
  readonly handled: string[] = []
  readonly #kind: Kind
  readonly #chance: Chance
  readonly #consumer: Server
  readonly #front: Server

  constructor(name: string, kind: Kind, chance: Chance) {
    this.name = name
    this.wish = kind.wish ?? {}
    this.#kind = kind
    this.#chance = chance
    const handle = async ({ id }: { readonly id: string }): Promise<void> => void this.handled.push(id)
    this.#consumer =
      kind.isStandard === true ? standardConsumer(SECRETS.standard, handle) : hmacConsumer(SECRETS.hmac, handle)
    this.#front = createServer((request, response) => void this.#receive(request, response))
  }

  get isDead(): boolean {
    return this.#kind.name === 'dead'
  }

  /** Listens, and returns its registration. */
  async start(): Promise<NewEndpoint> {
    const listening = [this.#consumer, this.#front].map((server) => once(server.listen(0, '127.0.0.1'), 'listening'))
    await Promise.all(listening)
    const { types, component } = this.wish
    return {
      name: this.name,
      url: addressOf(this.#front),
      secret: this.#kind.isStandard === true ? SECRETS.standard : SECRETS.hmac,
      ...(this.#kind.isStandard === true && { signing: { kind: 'standard' } }),
      ...(types !== undefined && { eventFilter: types }),
      ...(component !== undefined && { where: { 'data.component': component } }),
      ...this.#kind.fields,
    }
  }

  stop(): void {
    for (const server of [this.#consumer, this.#front]) server.close().closeAllConnections()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A killed sender leaves half a request, or a connection on which no response arrives.
    const body = await text(request).catch(() => undefined)
    if (body === undefined) return
    const { events } = JSON.parse(body) as { readonly events: readonly { readonly id: string }[] }
    const batch = String(request.headers['webhook-id'])
    const attempt = this.posts.filter((post) => post.batch === batch).length + 1
    const ids = events.map(({ id }) => id)
    const post: Post = { batch, events: ids, at: systemClock.monotonic(), end: 'open' }
    this.posts.push(post)
    const answer = (status: number, end: Post['end']): void => {
      response.writeHead(status).end()
      post.end = end
    }
    const fault = this.#kind.fault?.(attempt, this.#chance)
    if (fault === 'refuse') return answer(503, 'refused')
    if (fault === 'slow') await pause(this.#chance.between(100, 1_500))
    const headers = Object.entries(request.headers).filter(([name]) => /^(x-)?webhook-/.test(name))
    const { status } = await fetch(addressOf(this.#consumer), {
      method: 'POST',
      headers: Object.fromEntries(headers) as Record<string, string>,
      body,
    })
    if (fault === 'cut') {
      post.end = 'cut'
      return void request.socket.destroy()
    }
    answer(fault === 'refuse-late' ? 500 : status, fault === undefined || fault === 'slow' ? 'accepted' : 'refused')
    if (status !== 200) post.end = 'refused'
  }
}

export function makeSubscribers(chance: Chance): readonly LoadSubscriber[] {
  return KINDS.flatMap((kind) =>
    Array.from({ length: kind.count }, (_, n) => new LoadSubscriber(`${kind.name}-${n}`, kind, chance)),
  )
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function pause(ms: Millis): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve))
}
