// The server goes away: by kill -9, and by silence. Nothing acknowledged is lost with `appendfsync always`, every call ends, and the store
// works again by itself.
import { setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Hint, Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { createEventToStore } from '../conformance/builders.ts'
import { silentProxy } from '../postgres/silent-proxy.ts'
import { startRedisServer, type RedisServer } from './server.ts'

async function ownServer(): Promise<RedisServer> {
  const server = await startRedisServer({ settings: { appendfsync: 'always' } })
  onTestFinished(() => server.stop())
  return server
}

async function open(url: string): Promise<Store> {
  const store = await openStore(url)
  onTestFinished(() => store.close())
  return store
}

async function append(store: Store, key: string): Promise<void> {
  await store.append({ routes: 1, events: [createEventToStore(key, { key }, Date.now())] })
}

async function untilItWorks(store: Store, key: string): Promise<void> {
  await vi.waitFor(() => append(store, key), { timeout: 20_000, interval: 50 })
}

test('20 kills of the server under load lose nothing that was acknowledged', { timeout: 120_000 }, async () => {
  const server = await ownServer()
  const store = await open(server.url)
  const acked: string[] = []
  const over = new AbortController()
  const load = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = 0; !over.signal.aborted; n++) {
      const key = `${writer}-${n}`
      const isAcked = await append(store, key).then(
        () => true,
        () => false,
      )
      if (isAcked) acked.push(key)
      else await wait(10)
    }
  })
  for (let kill = 0; kill < 20; kill++) {
    const before = acked.length
    await vi.waitFor(() => expect(acked.length).toBeGreaterThan(before + 20), { timeout: 20_000 })
    await server.kill()
    await server.start()
  }
  over.abort()
  await Promise.all(load)
  await untilItWorks(store, 'last')
  const stored = new Set<string>()
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: Awaited<ReturnType<typeof store.find<'lanes'>>> = await store.find({
      kind: 'lanes',
      filter: {},
      cursor,
      n: 500,
    })
    for (const lane of page.items) stored.add(lane.key)
    cursor = page.next
  }
  expect(acked.filter((key) => !stored.has(key))).toEqual([])
})

test('a silent server is noticed within ten seconds, and the store works again', { timeout: 60_000 }, async () => {
  const server = await ownServer()
  const proxy = await silentProxy(server.url)
  onTestFinished(() => proxy.close())
  const store = await open(proxy.url)
  await append(store, 'before')
  const began = Date.now()
  proxy.fallSilent()
  await expect(append(store, 'into the silence')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
  expect(Date.now() - began).toBeLessThan(10_000)
  await untilItWorks(store, 'after')
})

test('hints arrive again after the server was killed', { timeout: 60_000 }, async () => {
  const server = await ownServer()
  const [sender, listener] = [await open(server.url), await open(server.url)]
  const heard: Hint[] = []
  sender.listen(() => {})
  listener.listen((hint) => heard.push(hint))
  const send = async (key: string): Promise<void> => {
    heard.length = 0
    await untilItWorks(sender, key)
    await vi.waitFor(
      async () => {
        await append(sender, `${key}-${Math.random()}`)
        await wait(50)
        expect(heard).toContainEqual({ kind: 'due', flow: 'flow' })
      },
      { timeout: 20_000, interval: 200 },
    )
  }
  await send('before')
  await server.kill()
  await server.start()
  await send('after')
})
