// Opening a Redis store: servers that may lose acknowledged events, unreachable servers, prefixes, and both clients.
import { randomUUID } from 'node:crypto'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore, type OpenStoreOptions } from '../../src/store/open.ts'
import { createEventToStore } from '../conformance/builders.ts'
import { freePort } from '../free-port.ts'
import { startRedisServer } from './server.ts'

async function open(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  const store = await openStore(address, options)
  onTestFinished(() => store.close())
  return store
}

async function ownServer(settings: Readonly<Record<string, string>>): Promise<string> {
  const server = await startRedisServer({ settings })
  onTestFinished(() => server.stop())
  return server.url
}

describe('a server that may lose acknowledged events', () => {
  test.each([
    { settings: { appendonly: 'no' }, names: ['appendonly yes'] },
    { settings: { 'maxmemory-policy': 'allkeys-lru' }, names: ['maxmemory-policy noeviction'] },
    {
      settings: { appendonly: 'no', 'maxmemory-policy': 'volatile-ttl' },
      names: ['appendonly yes', 'maxmemory-policy noeviction'],
    },
  ])('with $settings is rejected with the lines to set', async ({ settings, names }) => {
    const url = await ownServer(settings)
    const error = await openStore(url).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'STORE_NOT_DURABLE' })
    for (const name of names) expect((error as { fix: string }).fix).toContain(name)
    const accepted = await open(url, { acceptLoss: true })
    expect((await accepted.stats()).durable.isDurable).toBe(false)
  })

  test.each([
    { fsync: 'always', says: 'before it replies' },
    { fsync: 'everysec', says: 'once a second' },
  ])('appendfsync $fsync says what a crash loses', async ({ fsync, says }) => {
    const store = await open(await ownServer({ appendfsync: fsync }))
    expect((await store.stats()).durable).toEqual({ isDurable: true, reason: expect.stringContaining(says) as string })
  })
})

test('a server that cannot be reached is an error', async () => {
  await expect(openStore(`redis://127.0.0.1:${await freePort()}`)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
})

test('a wrong password is an error that does not quote it', async () => {
  const url = await ownServer({ requirepass: 'right' })
  const error = await openStore(url.replace('redis://', 'redis://:wr0ng@')).catch((caught: unknown) => caught)
  expect(error).toMatchObject({ code: 'STORE_REFUSED' })
  expect(JSON.stringify(error) + String(error)).not.toContain('wr0ng')
  await open(url.replace('redis://', 'redis://:right@'))
})

test('stores with other prefixes, or in other databases, do not share events', async () => {
  const url = inject('redisUrl')
  const [one, two] = [randomUUID(), randomUUID()]
  const stores = await Promise.all([
    open(`${url}/1?prefix=${one}`),
    open(`${url}/1?prefix=${two}`),
    open(`${url}/2?prefix=${one}`),
  ])
  const { now } = await stores[0].readDocs({ kind: 'k', ids: [], after: '', n: 1 })
  await stores[0].append({ routes: 1, events: [createEventToStore('a', {}, now)] })
  const counts = stores.map(
    async (store) => (await store.count({ kind: 'events', filter: {}, cursor: '', atMost: 10 })).count,
  )
  expect(await Promise.all(counts)).toEqual([1, 0, 0])
})

test('ten processes that start at once give the store one name', async () => {
  const address = `${inject('redisUrl')}?prefix=${randomUUID()}`
  const stores = await Promise.all(Array.from({ length: 10 }, () => open(address)))
  const { now } = await stores[0]!.readDocs({ kind: 'k', ids: [], after: '', n: 1 })
  await stores[0]!.append({ routes: 1, events: ['a', 'b', 'c'].map((key) => createEventToStore(key, { key }, now)) })
  const claims = stores
    .slice(0, 3)
    .map((store, n) =>
      store.settleAndClaim({ process: `p${n}`, request: 1, routes: 1, settle: [], claim: [CLAIM], budget: 1e6 }),
    )
  const runs = (await Promise.all(claims)).flatMap(({ claimed }) => claimed.map(({ runId }) => runId))
  expect(runs).toHaveLength(3)
  expect(new Set(runs.map((run) => run.split('-')[0])).size).toBe(1)
})

const CLAIM = {
  flow: 'flow',
  maxRuns: 1,
  maxFailing: 1,
  maxSuspects: 1,
  maxPerGroup: undefined,
  blockOnCrash: false,
  maxEvents: 10,
  maxBytes: 1e6,
  take: 'all',
  lease: 30_000,
} as const
