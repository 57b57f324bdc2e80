// A worker of the fleet, which the test kills: it publishes the events of each request and delivers. Argument: the
// store, as JSON.
import { flushCompileCache } from 'node:module'
import { once } from 'node:events'
import { fleetApp, type FleetStore } from './fleet-app.ts'
import { FLEET, plannedOf, SECRET } from './fleet-plan.ts'

export type ToWorker =
  | { readonly kind: 'begin' }
  | { readonly kind: 'register'; readonly url: string }
  | { readonly kind: 'publish'; readonly from: number; readonly to: number }
  | { readonly kind: 'look' }
  | { readonly kind: 'stop' }

export type FromWorker =
  | { readonly kind: 'loaded' }
  | { readonly kind: 'begun' }
  | { readonly kind: 'registered'; readonly ids: readonly string[] }
  | { readonly kind: 'published'; readonly from: number }
  | { readonly kind: 'looked'; readonly left: number }

const TEXT = 'x'.repeat(200)

async function registered(url: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (const { at, behaviour, eventFilter } of FLEET) {
    const { id } = await app.endpoints.create({ name: behaviour, url: `${url}/${at}`, eventFilter, secret: SECRET })
    ids.push(id)
  }
  return ids
}

/** Counts the waiting and running events of all lanes. */
async function left(): Promise<number> {
  const { items } = await app.admin.lanes.list({}, '', 1_000)
  return items.reduce((sum, { waiting, run }) => sum + waiting + (run === undefined ? 0 : 1), 0)
}

const [store = ''] = process.argv.slice(2)
const say = (what: FromWorker): void => void process.send?.(what)
process.once('disconnect', () => process.exit())
// A killed worker never gets to save its compile cache.
flushCompileCache()
say({ kind: 'loaded' })
await once(process, 'message')
const app = fleetApp(JSON.parse(store) as FleetStore)
await app.start()

async function handle(told: ToWorker): Promise<void> {
  switch (told.kind) {
    case 'begin':
      return
    case 'register':
      return say({ kind: 'registered', ids: await registered(told.url) })
    case 'publish': {
      const time = Date.now()
      const some = Array.from({ length: told.to - told.from }, (_, at) => plannedOf(told.from + at))
      await app.publish(some.map((one) => ({ ...one, time, data: { text: TEXT } })))
      return say({ kind: 'published', from: told.from })
    }
    case 'look':
      return say({ kind: 'looked', left: await left() })
    case 'stop':
      await app.stop()
      process.exit()
  }
}

process.on('message', (told) => void handle(told as ToWorker))
say({ kind: 'begun' })
