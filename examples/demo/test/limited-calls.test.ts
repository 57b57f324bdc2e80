// The demo's limit holds at the caller too: a slot whose confirmation came late is not used.
import { expect, it } from 'vitest'
import { CallMeter } from '../call-meter.ts'
import { chance } from '../../kit/chance.ts'
import { API } from '../flow.ts'
import { openStore, Sluice, type Limit, type Store } from 'sluice'
import { VirtualClock } from 'sluice/testing'
import { drive } from './drive.ts'

/** A real store whose answers take a while, as on a slow disk. */
function slow(store: Store, clock: VirtualClock, lateBy: () => number): Store {
  const reserve: Store['reserve'] = store.reserve.bind(store)
  return Object.assign(store, {
    async reserve(call: Parameters<Store['reserve']>[0]) {
      const answer = await reserve(call)
      const late = lateBy()
      await new Promise<void>((resolve) => void clock.after(late, resolve))
      return answer
    },
  })
}

function limitOn(store: Store, clock: VirtualClock): Limit {
  return new Sluice({ store, clock, log: false }).limit(API.name, { rate: API.rate, per: API.per })
}

const luck = chance(1)

it.each([
  ['fast', () => 0],
  ['sometimes slow', () => (luck.hits(0.2) ? luck.between(0, 300) : 0)],
  ['always slow', () => 90],
])('keeps to 3 calls in any second on a store that is %s', async (_name, lateBy) => {
  const clock = new VirtualClock()
  const store = slow(await openStore('memory:', { clock }), clock, lateBy)
  const meter = new CallMeter()
  // Of two apps, as of two processes: they share nothing but the store.
  const calls = async (): Promise<void> => {
    const limit = limitOn(store, clock)
    for (let n = 0; n < 100; n++) await limit.run(() => meter.add(clock.monotonic()))
  }
  await drive(clock, Promise.all([calls(), calls()]))
  expect(meter.total).toBe(200)
  expect(meter.most).toBeLessThanOrEqual(3)
})

it('gives up its wait when it is told to', async () => {
  const clock = new VirtualClock()
  const limit = limitOn(await openStore('memory:', { clock }), clock)
  const stop = new AbortController()
  const handed: number[] = []
  const call = (): Promise<unknown> => limit.run(() => handed.push(clock.monotonic()), { signal: stop.signal })
  for (let n = 0; n < 3; n++) await call()
  clock.after(500, () => stop.abort())
  await expect(drive(clock, call())).rejects.toThrow('aborted')
  expect(handed).toEqual([0, 0, 0])
  expect(clock.monotonic()).toBeLessThan(510)
})
