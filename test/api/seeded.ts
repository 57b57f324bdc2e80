// An app that contains everything: events that are done, waiting, running, held, dead, blocked, unrouted and replayed; refused
// requests; a paused limit; and keys of both roles. The tests of all routes and of random calls share it.
import type { Sluice } from '../../src/index.ts'
import { bearer, github, notion } from '../../src/sources/index.ts'
import { rig, type Rig } from './rig.ts'

export const APP_KEY = Buffer.alloc(32, 7).toString('base64')

export interface Ping {
  readonly user: string
  readonly n?: number
}

export const ping = (user: string, n = 0, more = {}): { type: string; data: Ping } => ({
  type: 'ping',
  data: { user, n },
  ...more,
})

const userOf = (event: { readonly data: unknown }): string => (event.data as Ping).user

/** One flow for each state that an event can be in. */
export function declare(app: Sluice): void {
  app.flow('does', { on: 'ping', key: userOf, run: () => {} })
  app.flow('waits', { on: 'late', key: userOf, window: { quiet: '1h' }, run: () => {} })
  app.flow('fails', {
    on: 'bad',
    key: userOf,
    retry: [],
    run: () => {
      throw new Error('no luck')
    },
  })
  app.flow('blocks', {
    on: 'bad',
    key: userOf,
    retry: [],
    onDead: 'block',
    run: () => {
      throw new Error('no way')
    },
  })
  app.flow('keyless', {
    on: 'odd',
    key: () => {
      throw new Error('no key')
    },
    run: () => {},
  })
  app.flow('each', { on: 'single', window: { quiet: '1h' }, run: () => {} })
  app.flow('runs', { on: 'endless', run: ({ signal }) => untilAborted(signal) })
  app.limit('calls', { rate: 10, per: '1s' })
  app.source('shop', bearer({ secret: 'shop-token-0123456789', type: () => 'order' }))
  app.source('pages', notion())
  app.source('hooks', github({ secret: 'github-secret-0123456789' }))
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}

export interface Seeded extends Rig {
  readonly read: string
  readonly operate: string
}

export async function seeded(store: string): Promise<Seeded> {
  const r = await rig(store, declare, { encryptionKey: APP_KEY })
  const { t, app } = r
  for (const n of [0, 1, 2]) {
    await t.send([
      ping('ada', n, { tenant: 'acme' }),
      ping('bob', n),
      { ...ping('ada', n, { tenant: 'acme' }), type: 'late' },
      { ...ping(`late-${n}`, n), type: 'late' },
      { ...ping(`bad-${n}`, n, { tenant: 'acme' }), type: 'bad' },
      { ...ping('odd', n), type: 'odd' },
      { ...ping('single', n), type: 'single' },
    ])
    await t.advance('1s')
  }
  await t.send({ type: 'endless' })
  await app.admin.lanes.hold('waits', 'late-1', { reason: 'asked by support', by: 'ada' })
  await app.admin.limits.pause('calls', { for: '10m' })
  await app.admin.limits.pause('calls/ada', { for: '10m' })
  await app.admin.replays.start({ type: 'ping' }, { id: 'again', into: 'does' })
  await t.advance('1s')
  await order(app, 'wrong-token', { n: 1 })
  await order(app, 'shop-token-0123456789', { n: 2 })
  await t.advance('1s')
  for (const n of [1, 2]) await app.endpoints.create({ url: `https://subscriber-${n}.example.com/hook` })
  const { secret: operate } = await app.admin.keys.create({ name: 'operator', role: 'operate', by: 'root' })
  const { secret: read } = await app.admin.keys.create({ name: 'reader', role: 'read', by: 'root' })
  return { ...r, read, operate }
}

export async function order(app: Sluice, token: string, body: unknown): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const request = new Request('http://hooks.test/in/shop', { method: 'POST', headers, body: JSON.stringify(body) })
  return (await app.fetch(request)).status
}
