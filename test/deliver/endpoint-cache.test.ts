// Tests the caches that are read once a second instead of on every POST: a change of an endpoint still applies to its
// next batch, whichever process makes it.
import { expect, onTestFinished, test } from 'vitest'
import { RecentCache } from '../../src/deliver/endpoint-cache.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import type { ReadDocsCall } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber } from './subscriber.ts'

test('a cached value is at most one second old', () => {
  const clock = new VirtualClock()
  const atHand = new RecentCache<string>(clock)
  atHand.set('one', 'first')
  clock.advance(999)
  expect([atHand.get('one'), atHand.get('other')]).toEqual(['first', undefined])
  clock.advance(1)
  expect(atHand.get('one')).toBeUndefined()
  atHand.set('one', 'second')
  atHand.delete('one')
  expect(atHand.get('one')).toBeUndefined()
})

test('a cached value is ignored once a newer epoch is known', () => {
  let heard = 7
  const atHand = new RecentCache<string>(new VirtualClock(), () => heard)
  atHand.set('one', 'first', 7)
  expect(atHand.get('one')).toBe('first')
  heard = 8
  expect(atHand.get('one')).toBeUndefined()
})

test('batches to a healthy endpoint read it once a second; a change in this process applies at once', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const read: string[] = []
  const readDocs = store.readDocs.bind(store)
  store.readDocs = (call: ReadDocsCall) => {
    if (call.ids !== undefined) read.push(call.kind)
    return readDocs(call)
  }
  const [first, second] = [await subscriber(), await subscriber()]
  const { app, endpoint, send } = await delivery({ window: { every: 0, maxEvents: 1 } }, store)
  const { id } = await endpoint({ url: first.url })
  read.length = 0
  for (let n = 0; n < 20; n++) {
    await send([`e${n}`])
    await expect.poll(() => first.got.length).toBe(n + 1)
  }
  const asked = read.filter((kind) => kind === 'endpoint' || kind === 'endpoint-fared')
  // Without the cache, each would be read twenty times, and once more after each POST.
  expect(asked.length).toBeGreaterThan(0)
  expect(asked.length).toBeLessThan(20)
  // The cache was just filled, so it stays stale for nearly a second.
  const before = read.length
  await expect.poll(async () => (await app.endpoints.findTarget(id)) && read.length).toBeGreaterThan(before)
  await app.endpoints.update(id, { url: second.url })
  await send(['moved'])
  await expect.poll(() => second.got.length).toBe(1)
  expect(first.got.length).toBe(20)
})
