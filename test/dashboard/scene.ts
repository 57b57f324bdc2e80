// `openScene` starts a real server on SQLite whose lanes, endpoints and limits are in every state that the dashboard shows:
// one broken endpoint, one exhausted limit, 40 dead letters. Windows last for minutes, so that nothing moves by itself.
import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { alerts, PermanentError, Sluice, type SluiceOptions } from '../../src/index.ts'
import { standardWebhooks } from '../../src/sources/index.ts'

export interface SceneOptions {
  /** With `live`, windows last for seconds, as in production. */
  readonly pace?: 'still' | 'live'
  /** With `empty`, nothing has happened yet. */
  readonly content?: 'full' | 'empty'
  readonly options?: Partial<SluiceOptions>
  /** Declares an alert that more than ten dead letters raise. */
  readonly hasAlert?: boolean
}

export interface Scene {
  readonly app: Sluice
  /** The address of the dashboard, with a slash at its end. */
  readonly url: string
  /** The endpoint that answers 503, and one that works. */
  readonly broken: string
  readonly working: string
  /** Lets the runs that wait for the test go on. */
  release(): void
  /** From now on the handler of `invoices` works. */
  repair(): void
  /** Publishes events of many keys, so many a second, until the result is called. */
  traffic(perSecond: number): () => void
  close(): Promise<void>
}

export const DEAD_LETTERS = 40
export const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const PEOPLE = ['ada', 'mira', 'otto', 'cho', 'lena', 'bob', 'eve', 'kim'] as const
/** The events of the flow `refresh` that hold its permits. */
const RUNNING = 2

export async function openScene({
  pace = 'still',
  content = 'full',
  options = {},
  hasAlert = false,
}: SceneOptions = {}): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-scene-'))
  const receiver = await startReceiver()
  const gate = Promise.withResolvers<void>()
  const app = new Sluice({
    store: `sqlite:${join(folder, 'events.db')}`,
    log: false,
    encryptionKey: randomBytes(32).toString('base64'),
    delivery: { allowLoopback: true },
    admin: { open: 'loopback' },
    shutdownTimeout: '10ms',
    ...options,
  })
  const bug = { isThere: true }
  declare(app, { isLive: pace === 'live', gate: gate.promise, bug })
  if (hasAlert) app.alert('too-many', { when: alerts.deadLetters({ above: 10 }) })
  await app.start()
  const { url } = await app.listen({ port: 0 })
  const endpoints = await createEndpoints(app, receiver.url)
  if (content === 'full') await fill(app)
  const stops: (() => void)[] = []
  return {
    app,
    url: `${url}/dashboard/`,
    ...endpoints,
    release: () => gate.resolve(),
    repair: () => (bug.isThere = false),
    traffic: (perSecond) => {
      const stop = startTraffic(app, perSecond)
      stops.push(stop)
      return stop
    },
    async close() {
      for (const stop of stops) stop()
      gate.resolve()
      await app.stop()
      receiver.server.close()
      receiver.server.closeAllConnections()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Keyed {
  readonly data: unknown
}

const keyOf = ({ data }: Keyed): string => (data as { key: string }).key

interface Declared {
  readonly isLive: boolean
  readonly gate: Promise<void>
  /** Whether the handler of `invoices` fails. */
  readonly bug: { isThere: boolean }
}

function declare(app: Sluice, { isLive, gate, bug }: Declared): void {
  const long = isLive ? '10s' : '20m'
  const api = app.limit('notion-api', { rate: 2, per: '1h' })
  app.source('stripe', standardWebhooks({ secret: SECRET }))
  app.source('notion', standardWebhooks({ secret: SECRET }))
  app.flow('rank-user', {
    on: 'page.*',
    key: keyOf,
    debounce: { quiet: long, max: isLive ? '60s' : '2h' },
    concurrency: 4,
    run: async () => {
      if (isLive) await pause(400 + Math.random() * 2_000)
    },
  })
  app.flow('refresh', {
    on: 'refresh.*',
    key: keyOf,
    concurrency: RUNNING,
    run: () => gate,
  })
  app.flow('invoices', {
    on: 'invoice.*',
    key: keyOf,
    retry: [],
    run: ({ events }) => {
      const bad = events.find(({ data }) => (data as { broken?: boolean }).broken)
      if (bad !== undefined && bug.isThere) throw new TypeError("Cannot read properties of undefined (reading 'tax')")
    },
  })
  app.flow('ledger', {
    on: 'entry.*',
    key: keyOf,
    onDead: 'block',
    run: ({ events }) => {
      if (events.some(({ data }) => (data as { broken?: boolean }).broken)) throw new PermanentError('HTTP 422')
    },
  })
  app.flow('sync-crm', {
    on: 'contact.*',
    key: keyOf,
    retry: ['20ms', '40ms', '3h'],
    run: () => {
      throw new Error('HTTP 502')
    },
  })
  app.flow('answer', {
    on: 'message.*',
    key: keyOf,
    run: ({ signal }) => api.run(async () => signal.throwIfAborted()),
  })
  app.flow('build', { on: 'push', key: keyOf, debounce: { quiet: '5m', max: '15m' }, run: () => {} })
  app.delivery('orders', { on: 'order.*', retry: ['10ms', '10ms', '10ms', '10ms', '6h'] })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function createEndpoints(app: Sluice, url: string): Promise<{ broken: string; working: string }> {
  const broken = await app.endpoints.create({ name: 'Acme Billing', url: `${url}/broken`, eventFilter: ['order.*'] })
  const working = await app.endpoints.create({ name: 'Globex Fulfilment', url: `${url}/globex` })
  await app.endpoints.create({ name: 'Northwind ERP', url: `${url}/northwind` })
  return { broken: broken.id, working: working.id }
}

async function fill(app: Sluice): Promise<void> {
  const opened = app.once('endpoint.opened')
  await app.publish([
    ...PEOPLE.slice(0, 5).map((key, index) => ({ type: 'page.updated', source: 'notion', data: { key, index } })),
    ...['ada', 'ada', 'mira', 'ada'].map((key, index) => ({
      type: index === 1 ? 'page.moved' : 'page.updated',
      source: 'notion',
      subject: 'Hiring plan',
      tenant: 'northwind',
      data: { key, index, title: `Plan ${index}` },
    })),
    ...PEOPLE.slice(0, RUNNING + 3).map((key) => ({ type: 'refresh.asked', data: { key: `${key}@northwind.dev` } })),
    ...Array.from({ length: 6 }, (_, index) => ({
      type: 'invoice.paid',
      source: 'stripe',
      subject: `cus_${index}`,
      data: { key: `cus_${index}`, amount: 4_900, currency: 'eur' },
    })),
    { type: 'push', source: 'github', data: { key: 'octo/infra', ref: 'refs/heads/main' } },
    { type: 'push', source: 'github', data: { key: 'octo/docs', ref: 'refs/heads/main' } },
    ...PEOPLE.slice(0, 5).map((key) => ({
      type: 'message.received',
      source: 'whatsapp',
      data: { key, text: 'hello' },
    })),
    { type: 'contact.changed', source: 'crm', data: { key: 'cus_K31xQ8' } },
    { type: 'entry.posted', source: 'stripe', data: { key: 'acct_1', broken: true } },
    ...Array.from({ length: 7 }, (_, index) => ({
      type: 'order.created',
      source: 'shopify',
      subject: `order ${index}`,
      data: { order: index, total: 1_990 },
    })),
  ])
  await until(deadLetters(app, 1))
  await app.publish(
    Array.from({ length: 4 }, () => ({ type: 'entry.posted', source: 'stripe', data: { key: 'acct_1' } })),
  )
  await app.publish(
    Array.from({ length: DEAD_LETTERS - 1 }, (_, index) => ({
      type: index % 3 === 0 ? 'invoice.finalized' : 'invoice.paid',
      source: 'stripe',
      subject: `cus_B${index}`,
      data: { key: `cus_B${index}`, broken: true, amount: 100 * index },
    })),
  )
  await until(deadLetters(app, DEAD_LETTERS))
  await app.admin.lanes.hold('build', 'octo/infra', { by: 'ada', reason: 'release freeze', for: '12m' })
  await opened
  await until(async () => (await app.explain('sync-crm', 'cus_K31xQ8')).state === 'retrying')
  await until(async () =>
    (await app.admin.lanes.list({ flow: 'answer' })).items.every(({ run }) => run?.state === 'snoozed'),
  )
}

const deadLetters = (app: Sluice, count: number) => async (): Promise<boolean> =>
  (await app.admin.deadLetters.count({})) >= count

/** The state is the store's, which nobody announces; the test waits until it is there. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pause(20)
}

function startTraffic(app: Sluice, perSecond: number): () => void {
  const every = Math.max(10, 1_000 / perSecond)
  const each = Math.max(1, Math.round((perSecond * every) / 1_000))
  let index = 0
  const timer = setInterval(() => {
    const events = Array.from({ length: each }, () => {
      index += 1
      const key = `${PEOPLE[index % PEOPLE.length]}-${Math.floor(Math.random() * 40)}@northwind.dev`
      const isInvoice = index % 4 === 0
      return {
        type: isInvoice ? 'invoice.paid' : 'page.updated',
        source: isInvoice ? 'stripe' : 'notion',
        data: { key, index, broken: isInvoice && index % 40 === 0 },
      }
    })
    void app.publish(events).catch(() => clearInterval(timer))
  }, every)
  return () => clearInterval(timer)
}

/** Receives what endpoints get: /broken answers 503, everything else 200. */
async function startReceiver(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      const isBroken = request.url === '/broken'
      response.writeHead(isBroken ? 503 : 200, { 'content-type': 'application/json' })
      response.end(isBroken ? '{"error":"maintenance"}' : '{"ok":true}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
