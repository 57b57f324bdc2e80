// A subscriber on this machine that records requests and sends the given responses; and an app that delivers to it.
import { createServer } from 'node:http'
import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { NewEndpoint } from '../../src/deliver/endpoint.ts'
import type { CreatedEndpoint } from '../../src/deliver/endpoints.ts'
import type { DeliveryOptions } from '../../src/app/deliveries.ts'
import type { DeliverySettings } from '../../src/deliver/options.ts'
import { Sluice } from '../../src/app/sluice.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { listening } from './listener.ts'

interface Got {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The ids of the received events, in order. */
  readonly ids: readonly string[]
}

export interface Answer {
  readonly status: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A fixed response, or a function of the request. */
export type Answering = Answer | ((got: Got) => Answer | Promise<Answer>)

export interface Subscriber {
  readonly url: string
  readonly got: readonly Got[]
  /** The responses to the next POSTs, in order; then 200. */
  readonly answers: Answering[]
  /** Resolves when this many POSTs have arrived in total. */
  reached(posts: number): Promise<void>
}

export async function subscriber(...answers: readonly Answering[]): Promise<Subscriber> {
  const got: Got[] = []
  const left = [...answers]
  const waiting: { readonly posts: number; readonly resolve: () => void }[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks).toString()
      const { method = '' } = request
      const one: Got = { method, headers: request.headers as Got['headers'], body, ids: idsIn(body) }
      got.push(one)
      const next = left.shift() ?? { status: 200 }
      const { status, body: answer = '', headers = {} } = typeof next === 'function' ? await next(one) : next
      response.writeHead(status, headers).end(answer)
      for (const { posts, resolve } of waiting) if (got.length >= posts) resolve()
    })()
  })
  const port = await listening(server, '127.0.0.1')
  return {
    url: `http://127.0.0.1:${port}/hook`,
    got,
    answers: left,
    reached: (posts) =>
      new Promise((resolve) => {
        if (got.length >= posts) resolve()
        else waiting.push({ posts, resolve })
      }),
  }
}

function idsIn(body: string): readonly string[] {
  if (body === '') return []
  const { data, events } = JSON.parse(body) as { data?: { events?: { id: string }[] }; events?: { id: string }[] }
  return (data?.events ?? events ?? []).map(({ id }) => id)
}

export interface Delivery {
  readonly app: Sluice
  readonly endpoint: (given: NewEndpoint) => Promise<CreatedEndpoint>
  /** Publishes these events of the type `version.new` at once, in this order. */
  readonly send: (
    ids: readonly string[],
    more?: { readonly tenant?: string; readonly type?: string; readonly subject?: string },
  ) => Promise<void>
}

const KEY = randomBytes(32).toString('base64')

export async function delivery(
  options: Partial<DeliveryOptions> = {},
  store: string | Store = 'memory:',
  key: string = KEY,
  settings: DeliverySettings = {},
): Promise<Delivery> {
  const app = new Sluice({
    store,
    log: false,
    encryptionKey: key,
    delivery: { allowLoopback: true, ...settings },
  })
  app.delivery('versions', { on: 'version.*', ...options })
  await app.start()
  onTestFinished(() => app.stop())
  return {
    app,
    endpoint: (given) => app.endpoints.create(given),
    send: async (ids, more = {}) => {
      await app.publish(ids.map((id) => ({ id, type: 'version.new', data: { id }, ...more })))
    },
  }
}
