// One rule at a time: what a run takes, what a cancelled run leaves, and what happens to events that arrive meanwhile.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import { countEventsToTake } from '../../src/model/claim.ts'
import { LaneDriver } from './lane-driver.ts'
import { ALL, LEASE, running, WINDOW } from './lane-scene.ts'
import { PLAIN } from './support.ts'

const ms = fc.nat(500)
const whileRunning = fc.constantFrom('window', 'requeue')

describe('L6 events during a run', () => {
  it("form a window of their own, whose deadline is max(window, end), or the end with 'requeue'", () => {
    const newcomers = fc.array(fc.record({ gap: fc.nat(60), quiet: ms, max: ms }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(newcomers, ms, whileRunning, fc.boolean(), (list, rest, then, retried) => {
        const driver = running(2)
        for (const { gap, ...numbers } of list) {
          driver.wait(gap)
          driver.place({ ...PLAIN, ...numbers })
        }
        const { window } = driver.lane
        expect(driver.lane.due).toBe(driver.run?.until)
        // The wait for another attempt is part of the run.
        if (retried) {
          driver.settle({ kind: 'retry', after: 10 }, WINDOW)
          driver.wait(10)
          driver.claim(ALL)
        }
        driver.wait(rest)
        driver.settle({ kind: 'done' }, { whileRunning: then, keep: 0 })
        expect(driver.lane.due).toBe(then === 'requeue' ? driver.now : Math.max(window, driver.now))
      }),
    )
  })

  it('replays and dead letters never end a window early', () => {
    fc.assert(
      fc.property(whileRunning, fc.integer({ min: 1, max: 500 }), fc.boolean(), (then, quiet, replay) => {
        const driver = new LaneDriver()
        if (replay) driver.place({ ...PLAIN, rank: 1 })
        else {
          driver.place(PLAIN)
          driver.claim(ALL)
          driver.settle({ kind: 'dead', block: false }, WINDOW)
          driver.deadLetter('retry')
        }
        driver.claim(ALL)
        driver.place({ ...PLAIN, quiet, max: 1_000 })
        const { window } = driver.lane
        driver.settle({ kind: 'done' }, { whileRunning: then, keep: 0 })
        expect([driver.lane.due, driver.lane.waiting]).toEqual([window, 1])
      }),
    )
  })
})

describe('L7 a run takes', () => {
  const rows = fc
    .array(fc.nat(20), { minLength: 1, maxLength: 20 })
    .map((sizes) => sizes.map((size, n) => ({ pos: n + 1, size })))
  const caps = fc.record({ maxEvents: fc.integer({ min: 1, max: 10 }), maxBytes: fc.integer({ min: 1, max: 60 }) })

  it('as many events as the caps allow, and at least one', () => {
    fc.assert(
      fc.property(rows, caps, (waiting, most) => {
        const taken = countEventsToTake(waiting, { ...ALL, ...most })
        const bytes = (count: number): number => waiting.slice(0, count).reduce((sum, row) => sum + row.size, 0)
        const fits = (count: number): boolean => count <= most.maxEvents && bytes(count) <= most.maxBytes
        expect(taken === 1 || fits(taken)).toBe(true)
        expect(taken === waiting.length || !fits(taken + 1)).toBe(true)
        expect(taken).toBeGreaterThanOrEqual(1)
      }),
    )
  })

  it('remaining events are due at the end of the run, with a new ticket, whatever windows new events have', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), ms, fc.option(ms, { nil: undefined }), (events, rest, quiet) => {
        const driver = running(events, { ...ALL, maxEvents: 1 })
        expect([driver.lane.waiting, driver.lane.window]).toEqual([events - 1, NEVER])
        if (quiet !== undefined) driver.place({ ...PLAIN, quiet: quiet + 1, max: 9_999 })
        const { ticket } = driver.lane
        driver.wait(rest)
        driver.settle({ kind: 'done' }, WINDOW)
        expect(driver.lane.due).toBe(driver.now)
        expect(driver.lane.ticket).toBeGreaterThan(ticket)
      }),
    )
  })

  it('events in the order of positions, each once, over as many runs as it takes', () => {
    fc.assert(
      fc.property(rows, caps, (waiting, most) => {
        const driver = new LaneDriver()
        for (const { size } of waiting) driver.place({ ...PLAIN, size })
        const seen: number[] = []
        while (driver.claim({ ...ALL, ...most }) === 'take' && seen.length <= waiting.length) {
          expect(driver.run?.rows.length).toBeGreaterThan(0)
          seen.push(...(driver.run?.rows ?? []).map(({ pos }) => pos))
          driver.settle({ kind: 'done' }, WINDOW)
        }
        expect(seen).toEqual(waiting.map(({ pos }) => pos))
      }),
    )
  })

  it('one event with take first or last, and no other event of its rank remains', () => {
    fc.assert(
      fc.property(rows, caps, fc.constantFrom('first', 'last'), (waiting, most, take) => {
        const driver = new LaneDriver()
        for (const { size } of waiting) driver.place({ ...PLAIN, size })
        driver.claim({ ...ALL, ...most, take })
        expect(driver.run?.rows.map(({ pos }) => pos)).toEqual([take === 'first' ? 1 : waiting.length])
        expect([driver.lane.waiting, driver.lane.bytes, driver.lane.hasRemaining]).toEqual([0, 0, false])
      }),
    )
  })
})

describe('L6c cancel', () => {
  it('returns the same events into one window: max(now, min(latest + quiet, earliest cap)), and uses no attempt', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), ms, ms, ms, (events, cap, quiet, rest) => {
        const driver = running(events, ALL, cap + 1)
        const { bytes } = driver.lane.run ?? { bytes: 0 }
        driver.place({ ...PLAIN, quiet, max: 9_999, cancel: true })
        const ends = Math.min(driver.now + quiet, driver.now + cap + 1)
        expect(driver.lane.run?.cancel).toBe(true)
        driver.wait(rest)
        driver.settle({ kind: 'cancelled' }, WINDOW)
        expect(driver.lane).toMatchObject({
          waiting: events + 1,
          bytes: bytes + 1,
          run: undefined,
          hasRemaining: false,
        })
        expect(driver.lane.due).toBe(Math.max(driver.now, ends))
        driver.wait(driver.lane.due - driver.now)
        driver.claim(ALL)
        expect(driver.lane.run).toMatchObject({ tries: 0, lapses: 0, first: true, events: events + 1 })
      }),
    )
  })

  it('if the run left events over, or if no new events wait, all of them are due now', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 }), (events, most) => {
        const driver = running(events, { ...ALL, maxEvents: most })
        driver.steer({ kind: 'cancel' })
        driver.settle({ kind: 'cancelled' }, WINDOW)
        expect(driver.lane).toMatchObject({ waiting: events, bytes: events, due: driver.now, hasRemaining: false })
      }),
    )
  })

  it('can only be requested in a first attempt, before its earliest cap, while its lease lasts', () => {
    const past = fc.constantFrom('nothing', 'retried', 'snoozed', 'released', 'lapsed', 'cap', 'lease')
    fc.assert(
      fc.property(past, (what) => {
        const driver = running(1, ALL, what === 'lease' ? 2 * LEASE : 100)
        if (what === 'retried') driver.settle({ kind: 'retry', after: 0 }, WINDOW)
        if (what === 'snoozed') driver.settle({ kind: 'snoozed', after: 0 }, WINDOW)
        if (what === 'released') driver.settle({ kind: 'released' }, WINDOW)
        if (what === 'lapsed' || what === 'lease') driver.wait(LEASE)
        if (what === 'cap') driver.wait(100)
        if (what !== 'lease') driver.claim(ALL)
        driver.place({ ...PLAIN, quiet: 50, max: 100, cancel: true })
        expect(driver.lane.run?.cancel).toBe(what === 'nothing')
        const settled = driver.settle({ kind: 'cancelled' }, WINDOW)
        expect(settled).toBe(what !== 'lease')
        // Without a request, the run is only given back, and frozen.
        if (settled && what !== 'nothing') expect(driver.lane.run).toMatchObject({ events: 1, first: false })
      }),
    )
  })
})
