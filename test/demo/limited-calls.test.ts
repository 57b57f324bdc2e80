// The limit holds at the caller too: a slot whose confirmation came late is not used.
import { expect, it } from 'vitest'
import { CallMeter } from '../../src/demo/call-meter.ts'
import { chance } from '../../src/demo/chance.ts'
import { slot } from '../../src/demo/limited-calls.ts'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { drive } from './drive.ts'

/** A real store whose answers take a while, as on a slow disk. */
function slow(store: Store, clock: VirtualClock, lateBy: () => number): Pick<Store, 'reserve'> {
  return {
    async reserve(call) {
      const answer = await store.reserve(call)
      const late = lateBy()
      await new Promise<void>((resolve) => void clock.after(late, resolve))
      return answer
    },
  }
}

const luck = chance(1)

it.each([
  ['fast', () => 0],
  ['sometimes slow', () => (luck.hits(0.2) ? luck.between(0, 300) : 0)],
  ['always slow', () => 90],
])('keeps to 3 calls in any second on a store that is %s', async (_name, lateBy) => {
  const clock = new VirtualClock()
  const store = slow(openMemoryStore({ clock }), clock, lateBy) as Store
  const meter = new CallMeter()
  const never = new AbortController().signal
  const calls = async (caller: string): Promise<void> => {
    for (let n = 0; n < 100; n++) meter.add((await slot({ store, clock }, `${caller}/${n}`, never)) ?? 0)
  }
  await drive(clock, Promise.all([calls('a'), calls('b')]))
  expect(meter.total).toBe(200)
  expect(meter.most).toBeLessThanOrEqual(3)
})

it('gives up its wait when it is told to', async () => {
  const clock = new VirtualClock()
  const parts = { store: openMemoryStore({ clock }), clock }
  const stop = new AbortController()
  for (const ticket of ['1', '2', '3']) expect(await slot(parts, ticket, stop.signal)).toBe(0)
  clock.after(500, () => stop.abort())
  expect(await drive(clock, slot(parts, '4', stop.signal))).toBeUndefined()
})
