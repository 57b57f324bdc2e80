// The app that a visitor of the dashboard watches under load. It runs in a process of its own, as in production.
// Arguments: the address of the store, and the load as JSON.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { alerts, PermanentError, Sluice } from '../../../src/index.ts'
import type { EventInput } from '../../../src/model/event.ts'
import { standardWebhooks } from '../../../src/sources/index.ts'

export interface StoredLoad {
  /** Events that are stored before the visit begins; those of the lanes are part of them. */
  readonly events: number
  /** Lanes whose window is open for hours. */
  readonly lanes: number
  readonly deadLetters: number
  /** Events that arrive each second while somebody visits. */
  readonly perSecond: number
}

/** What the process sends to its parent: how far it has filled the store, then the address of the dashboard. */
export type Message = { readonly filled: number } | { readonly url: string } | { readonly published: number }

const AT_ONCE = 1_000
/** Lanes that wait for a dead letter, so that one state is rare. */
const BLOCKED = 12
const FLOWING_KEYS = 2_000
const TICK_MS = 50
const TEXT = 'a payload as long as most are: '.repeat(8)

interface Keyed {
  readonly data: unknown
}

const keyOf = ({ data }: Keyed): string => (data as { readonly key: string }).key

function declare(app: Sluice): void {
  app.limit('crm-api', { rate: 1_000, per: '1s' })
  app.source('shop', standardWebhooks({ secret: `whsec_${Buffer.alloc(24, 7).toString('base64')}` }))
  app.flow('digest', { on: 'page.*', key: keyOf, debounce: { quiet: '6h', max: '12h' }, run: () => {} })
  app.flow('sync', { on: 'contact.*', key: keyOf, concurrency: 20, run: () => {} })
  app.flow('rank', { on: 'task.*', key: keyOf, debounce: { quiet: '2s', max: '10s' }, concurrency: 20, run: () => {} })
  app.flow('invoices', { on: 'invoice.*', key: keyOf, retry: [], run: fail })
  app.flow('ledger', { on: 'entry.*', key: keyOf, onDead: 'block', run: fail })
  app.delivery('orders', { on: 'order.*', batch: '1s' })
  app.alert('dead', { when: alerts.deadLetters({ above: 10 }) })
}

function fail(): never {
  throw new PermanentError("Cannot read properties of undefined (reading 'tax')")
}

/** `eventAt` spreads the events that flow over the flows as a shop would: most are done at once, few wait for a window. */
function eventAt(index: number): EventInput {
  const key = `cus_${index % FLOWING_KEYS}`
  const kind = index % 20
  const type = kind < 12 ? 'contact.changed' : kind < 18 ? 'task.changed' : 'order.created'
  return { type, source: 'shop', subject: key, data: { key, index, text: TEXT } }
}

function blocking(index: number): EventInput {
  return { type: 'entry.posted', data: { key: `acct_${index}` } }
}

async function fill(app: Sluice, { events, lanes, deadLetters }: StoredLoad): Promise<void> {
  const others = events - lanes - deadLetters - 2 * BLOCKED
  const ended = countEnded(app, others + deadLetters + BLOCKED)
  let stored = 0
  const publish = async (total: number, make: (index: number) => EventInput): Promise<void> => {
    for (let from = 0; from < total; from += AT_ONCE) {
      const some = Array.from({ length: Math.min(AT_ONCE, total - from) }, (_, index) => make(from + index))
      await app.publish(some)
      stored += some.length
      process.send?.({ filled: stored / events } satisfies Message)
    }
  }
  await publish(BLOCKED, blocking)
  await publish(lanes, (index) => ({
    type: 'page.updated',
    source: 'notion',
    subject: `page ${index}`,
    data: { key: `cus_${index}`, index, text: TEXT },
  }))
  await publish(deadLetters, (index) => ({
    type: 'invoice.paid',
    source: 'stripe',
    data: { key: `cus_${index}`, amount: index, text: TEXT },
  }))
  await publish(others, (index) => ({ ...eventAt(index), type: 'contact.changed' }))
  await ended
  await publish(BLOCKED, blocking)
}

/** Resolves when the handlers have ended with this many events. */
function countEnded(app: Sluice, events: number): Promise<void> {
  return new Promise((resolve) => {
    let left = events
    const count = (run: { readonly events: number }): void => {
      left -= run.events
      if (left <= 0) resolve()
    }
    app.on('run.done', count)
    app.on('run.dead', count)
  })
}

async function startReceiver(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.end('{}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** Publishes as many events as are due by now, so that a late timer does not lower the rate. */
function startTraffic(app: Sluice, perSecond: number): void {
  const startedAt = performance.now()
  let published = 0
  let running: Promise<unknown> = Promise.resolve()
  setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * perSecond) / 1_000)
    const some = Array.from({ length: due - published }, (_, index) => eventAt(published + index))
    published = due
    if (some.length > 0) running = running.then(() => app.publish(some))
    process.send?.({ published } satisfies Message)
  }, TICK_MS)
}

const [store = '', load = '{}'] = process.argv.slice(2)
const stored = JSON.parse(load) as StoredLoad
// The parent may be killed.
process.once('disconnect', () => process.exit())
const app = new Sluice({
  store,
  log: false,
  encryptionKey: Buffer.alloc(32, 1).toString('base64'),
  delivery: { allowLoopback: true },
  admin: { open: 'loopback' },
})
declare(app)
await app.start()
const receiver = await startReceiver()
for (const name of ['Globex Fulfilment', 'Northwind ERP', 'Initech CRM']) {
  await app.endpoints.create({ name, url: `${receiver.url}/${name.length}` })
}
await fill(app, stored)
const { url } = await app.listen({ port: 0 })
startTraffic(app, stored.perSecond)
process.send?.({ url: `${url}/dashboard/` } satisfies Message)
