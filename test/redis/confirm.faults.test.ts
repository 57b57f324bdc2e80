// `confirm` lets a commit wait for replicas, or for the disk, before it is acknowledged.
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore, type OpenStoreOptions } from '../../src/store/open.ts'
import { createEventToStore } from '../conformance/builders.ts'
import { startRedisServer, type RedisServer } from './server.ts'

async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<RedisServer> {
  const server = await startRedisServer({ settings })
  onTestFinished(() => server.stop())
  return server
}

async function open(url: string, options: OpenStoreOptions): Promise<Store> {
  const store = await openStore(url, options)
  onTestFinished(() => store.close())
  return store
}

const EVENT = createEventToStore('a', {}, 1)

test(
  'a commit that too few replicas have is not acknowledged, and is once they have it',
  { timeout: 60_000 },
  async () => {
    const primary = await startServer()
    const store = await open(primary.url, { confirm: { replicas: 1 } })
    await expect(store.append({ routes: 1, events: [EVENT] })).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('0 of 1 replicas') as string,
    })
    await startServer({ replicaof: `127.0.0.1 ${primary.port}` })
    // The sender repeats the event, and the store knows it by now.
    const results = await vi.waitFor(async () => (await store.append({ routes: 1, events: [EVENT] })).results, {
      timeout: 40_000,
      interval: 100,
    })
    expect(results).toEqual([{ kind: 'repeated' }])
  },
)

test('confirm.fsync names the version that it needs', async () => {
  const server = await startServer()
  const opened = openStore(server.url, { confirm: { fsync: true } })
  const isOld = await opened.then(
    (store) => store.append({ routes: 1, events: [EVENT] }).then(() => store.close()),
    (error: unknown) => error,
  )
  // Debian 12 has Redis 7.0; with a newer server the commit waits for the disk.
  if (isOld !== undefined)
    expect(isOld).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('7.2') as string })
})

test.each([-1, 0.5, Number.NaN])('confirm.replicas rejects %d', async (replicas) => {
  const server = await startServer()
  await expect(openStore(server.url, { confirm: { replicas } })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})
