// One rule at a time, with failures and operators' actions: crashes, dead letters, holds, replays.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import { FAILING, HEALTHY, SUSPECT } from '../../src/model/lane.ts'
import { LaneDriver } from './lane-driver.ts'
import { ALL, LEASE, running, WINDOW } from './lane-scene.ts'
import { PLAIN } from './support.ts'

const ms = fc.nat(500)

describe('L12 crash', () => {
  it('a lapse is no attempt; the second one makes the run a suspect, the fourth a dead letter', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.nat(3), ms, (events, failures, late) => {
        const driver = running(events)
        for (let n = 0; n < failures; n++) {
          driver.settle({ kind: 'retry', after: 0 }, WINDOW)
          driver.claim(ALL)
        }
        const { id } = driver.lane.run ?? { id: '' }
        const lines = []
        for (let lapse = 1; lapse <= 3; lapse++) {
          driver.wait(driver.lane.due - driver.now + late)
          lines.push(driver.lane.health)
          expect(driver.claim(ALL)).toBe('resume')
          expect(driver.lane.run).toMatchObject({ id, events, lapses: lapse, tries: failures, cancel: false })
        }
        expect(lines).toEqual([failures > 0 ? FAILING : HEALTHY, SUSPECT, SUSPECT])
        driver.wait(LEASE)
        expect(driver.claim(ALL)).toBe('crashed')
        expect([driver.lane.run, driver.lane.due, driver.deadLetters.length]).toEqual([undefined, NEVER, 1])
      }),
    )
  })

  it('the run is ready exactly when its lease ends', () => {
    fc.assert(
      fc.property(fc.nat(LEASE - 1), (early) => {
        const driver = running(1)
        driver.wait(early)
        expect(driver.claim(ALL)).toBeUndefined()
        driver.wait(LEASE - early)
        expect(driver.claim(ALL)).toBe('resume')
      }),
    )
  })
})

describe('L24 bulkhead', () => {
  it('a lane is failing from its failure until an attempt ends in another way', () => {
    const driver = running(1)
    driver.settle({ kind: 'retry', after: 10 }, WINDOW)
    expect(driver.lane.health).toBe(FAILING)
    driver.wait(10)
    driver.claim(ALL)
    expect(driver.lane.health).toBe(FAILING)
    driver.settle({ kind: 'snoozed', after: 10 }, WINDOW)
    expect(driver.lane.health).toBe(HEALTHY)
    driver.wait(10)
    driver.claim(ALL)
    driver.settle({ kind: 'retry', after: 10 }, WINDOW)
    driver.wait(10)
    driver.claim(ALL)
    driver.settle({ kind: 'done' }, WINDOW)
    expect(driver.lane.health).toBe(HEALTHY)
  })
})

describe('L9 dead letters', () => {
  it('a queued dead letter runs before waiting events with zero tries, and the lane that it blocks waits for it alone', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.integer({ min: 1, max: 4 }), (block, events) => {
        const driver = running(events)
        driver.settle({ kind: 'dead', block }, WINDOW)
        driver.place(PLAIN)
        expect(driver.lane.due).toBe(block ? NEVER : driver.now)
        driver.deadLetter('retry')
        expect(driver.claim(ALL)).toBe('dead-letter')
        expect(driver.lane.run).toMatchObject({ id: 'r1', events, tries: 0, lapses: 0, isDeadLetter: true })
        // A run of a dead letter is never cancelled.
        driver.place({ ...PLAIN, cancel: true })
        expect(driver.lane.run?.cancel).toBe(false)
        driver.settle({ kind: 'done' }, WINDOW)
        expect([driver.lane.blocks, driver.lane.due, driver.claim(ALL)]).toEqual([0, driver.now, 'take'])
      }),
    )
  })
})

describe('L14 hold', () => {
  it('delays the deadline to its end while windows continue; without it, the old deadline applies', () => {
    fc.assert(
      fc.property(ms, ms, ms, (quiet, hold, more) => {
        const driver = new LaneDriver()
        driver.place({ ...PLAIN, quiet, max: 9_999 })
        const until = driver.now + hold
        driver.steer({ kind: 'hold', hold: { reason: 'r', by: 'b', until } })
        expect(driver.lane.due).toBe(Math.max(driver.now + quiet, until))
        driver.place({ ...PLAIN, quiet: quiet + more, max: 9_999 })
        const { window } = driver.lane
        expect(driver.lane.due).toBe(Math.max(window, until))
        driver.steer({ kind: 'unhold' })
        expect([driver.lane.due, driver.lane.hold]).toEqual([window, undefined])
        expect(driver.steer({ kind: 'unhold' })).toBe(false)
      }),
    )
  })

  it('an expired hold is removed by the next claim', () => {
    const driver = new LaneDriver()
    driver.place(PLAIN)
    driver.steer({ kind: 'hold', hold: { reason: 'r', by: 'b', until: driver.now + 10 } })
    expect(driver.claim(ALL)).toBeUndefined()
    driver.wait(10)
    expect([driver.claim(ALL), driver.lane.hold]).toEqual(['take', undefined])
  })
})

describe('L16 replay', () => {
  it('live events go first, but every ninth run is a replay while any waits', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), (replays) => {
        const driver = new LaneDriver()
        for (let n = 0; n < replays; n++) driver.place({ ...PLAIN, rank: 1 })
        const ranks = Array.from({ length: 9 * (replays + 1) }, () => {
          driver.place(PLAIN)
          driver.claim({ ...ALL, maxEvents: 1 })
          const rank = driver.run?.rank
          driver.settle({ kind: 'done' }, WINDOW)
          return rank
        })
        expect(ranks).toEqual(ranks.map((_, n) => (n % 9 === 8 && n < 9 * replays ? 1 : 0)))
      }),
    )
  })

  it('a replay has no window: it is due at once, and does not move the window of live events', () => {
    fc.assert(
      fc.property(ms, ms, (quiet, wait) => {
        const driver = new LaneDriver()
        driver.place({ ...PLAIN, quiet: quiet + wait + 1, max: 9_999 })
        const { window } = driver.lane
        driver.wait(wait)
        driver.place({ ...PLAIN, rank: 1, quiet: 400, max: 400, cancel: true })
        expect([driver.lane.due, driver.lane.window]).toEqual([driver.now, window])
        driver.claim(ALL)
        expect(driver.run?.rank).toBe(1)
      }),
    )
  })
})
