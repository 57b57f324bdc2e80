// What is read once a second instead of with every POST: a change of an endpoint counts for the next batch, whoever makes it.
import { expect, onTestFinished, test } from 'vitest'
import { AtHand } from '../../src/deliver/at-hand.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import type { ReadDocsCall } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { delivery, subscriber } from './subscriber.ts'

test('is as old as a second, and no older', () => {
  const clock = new VirtualClock()
  const atHand = new AtHand<string>(clock)
  atHand.keep('one', 'first')
  clock.advance(999)
  expect([atHand.get('one'), atHand.get('other')]).toEqual(['first', undefined])
  clock.advance(1)
  expect(atHand.get('one')).toBeUndefined()
  atHand.keep('one', 'second')
  atHand.forget('one')
  expect(atHand.get('one')).toBeUndefined()
})

test('is not believed once somebody has heard of a newer epoch than it was read in', () => {
  let heard = 7
  const atHand = new AtHand<string>(new VirtualClock(), () => heard)
  atHand.keep('one', 'first', 7)
  expect(atHand.get('one')).toBe('first')
  heard = 8
  expect(atHand.get('one')).toBeUndefined()
})

test('many batches to an endpoint that is well ask the store about it once a second; a change here counts at once', async () => {
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
  // Twenty times each, and once more after each POST, it would have been.
  expect(asked.length).toBeGreaterThan(0)
  expect(asked.length).toBeLessThan(20)
  // Just read, so that it is old for nearly a second.
  const before = read.length
  await expect.poll(async () => (await app.endpoints.addressed(id)) && read.length).toBeGreaterThan(before)
  await app.endpoints.change(id, { url: second.url })
  await send(['moved'])
  await expect.poll(() => second.got.length).toBe(1)
  expect(first.got.length).toBe(20)
})
