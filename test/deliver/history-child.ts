// The process that is killed while it sends a new endpoint its history. It publishes numbered events without end, a few each 10
// milliseconds. Arguments: the store, the number of its first event, and how many it publishes; 0 for no end.
import { setTimeout } from 'node:timers/promises'
import { openStore, Sluice, type Store } from '../../src/index.ts'

export type ToChild =
  | { readonly kind: 'register'; readonly url: string }
  /** Publishes no more, and tells when the endpoint has got everything. */
  | { readonly kind: 'finish' }

export type FromChild =
  | { readonly kind: 'opened' }
  | { readonly kind: 'acked'; readonly upTo: number }
  | { readonly kind: 'registered'; readonly id: string }
  | { readonly kind: 'finished' }

const EVERY_MS = 10
const AT_ONCE = 5
const UNTIL_FREE_MS = 3

const [address = '', first = '1', most = '0'] = process.argv.slice(2)
const state = { isOver: false }
const say = (what: FromChild): void => void process.send?.(what)
process.once('disconnect', () => process.exit())

/** Only the lock of the file shows that the predecessor is dead. */
async function opened(): Promise<Sluice> {
  for (;;) {
    try {
      return await started(await openStore(address, { acceptLoss: true }))
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'STORE_IN_USE')) throw error
      await setTimeout(UNTIL_FREE_MS)
    }
  }
}

async function started(store: Store): Promise<Sluice> {
  const app = new Sluice({
    store,
    lease: '1s',
    heartbeat: '250ms',
    poll: 50,
    log: false,
    encryptionKey: 'A'.repeat(43) + '=',
    delivery: { allowLoopback: true },
  })
  app.delivery('versions', {
    on: 'version.*',
    batch: { every: '50ms', maxEvents: 50 },
    retry: Array.from({ length: 50 }, () => '100ms' as const),
  })
  await app.start()
  return app
}

async function publishAll(app: Sluice, from: number, count: number): Promise<void> {
  const end = count === 0 ? Infinity : from + count
  for (let n = from; n < end && !state.isOver; n += AT_ONCE) {
    const ids = Array.from({ length: AT_ONCE }, (_, at) => String(n + at).padStart(7, '0'))
    await app.publish(ids.map((id) => ({ id, type: 'version.new', data: {} })))
    say({ kind: 'acked', upTo: n + AT_ONCE - 1 })
    if (count === 0) await setTimeout(EVERY_MS)
  }
}

async function finish(app: Sluice): Promise<void> {
  state.isOver = true
  await publishing
  for (;;) {
    const { items } = await app.admin.lanes.list({ flow: 'versions' })
    const [endpoint] = await app.endpoints.list()
    if (items.length === 0 && endpoint?.history === undefined) break
    await setTimeout(50)
  }
  say({ kind: 'finished' })
}

const app = await opened()
say({ kind: 'opened' })
const publishing = publishAll(app, Number(first), Number(most))
process.on('message', (told: ToChild) => {
  if (told.kind === 'finish') return void finish(app)
  void app.endpoints.create({ url: told.url, from: 'beginning' }).then(({ id }) => say({ kind: 'registered', id }))
})
