// L21: a process's estimate of the store's time is never ahead, and behind by at most the fastest round trip.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StoreClock } from '../../src/dispatch/store-clock.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const HOUR = 3_600_000

interface Scene {
  readonly time: StoreClock
  readonly clock: VirtualClock
  readonly steps: number[]
  /** The time of the store's clock. */
  readonly store: () => number
  readonly step: (by: number) => void
  /** A request that takes `there` ms, and its reply, which takes `back` ms. */
  readonly ask: (there: number, back: number) => void
}

function scene(): Scene {
  const clock = new VirtualClock()
  const steps: number[] = []
  const time = new StoreClock(clock, (by) => void steps.push(by))
  let ahead = HOUR
  const store = (): number => clock.monotonic() + ahead
  const ask = (there: number, back: number): void => {
    const heard = time.startCall()
    clock.advance(there)
    const reply = { now: store(), routes: 1 }
    clock.advance(back)
    heard(reply)
  }
  return { time, clock, steps, store, step: (by) => void (ahead += by), ask }
}

test('L21 the estimate is never ahead, and behind by at most the fastest reply', () => {
  const way = fc.integer({ min: 0, max: 500 })
  fc.assert(
    fc.property(fc.array(fc.tuple(way, way, way), { minLength: 1 }), (asked) => {
      const { time, clock, store, ask, steps } = scene()
      let quickest = Infinity
      for (const [there, back, pause] of asked) {
        ask(there, back)
        quickest = Math.min(quickest, back)
        expect(store() - time.now()).toBe(quickest)
        clock.advance(pause)
        expect(store() - time.now()).toBe(quickest)
      }
      expect(steps).toEqual([])
    }),
  )
})

test("L21 after the store's clock jumps, the estimate is right again with the next reply that was as fast as before", () => {
  for (const by of [-HOUR / 2, -20_000, -100, 100, 20_000, HOUR]) {
    const { time, store, step, ask, steps } = scene()
    ask(1, 2)
    step(by)
    ask(1, 2)
    expect(store() - time.now()).toBeGreaterThanOrEqual(-1)
    expect(store() - time.now()).toBeLessThanOrEqual(2)
    expect(steps).toEqual(Math.abs(by) > 10_000 ? [by] : [])
  }
})
