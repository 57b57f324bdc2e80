// The four transitions in any order: after every step, the lane agrees with books that are kept separately.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import { LAPSES_MAX, type ClaimCaps } from '../../src/model/claim.ts'
import { FAILING, HEALTHY, isEmptyLane, SUSPECT, type Lane } from '../../src/model/lane.ts'
import { LaneDriver, sizeOf } from './lane-driver.ts'
import { LEASE, perform, step, waitUntilDue, type Step } from './lane-steps.ts'

type Invariant = (
  driver: LaneDriver,
  before: { readonly lane: Lane; readonly notes: LaneDriver['run'] },
  what: Step,
) => void

/** Runs random histories and checks each state that they reach. */
function always(invariant: Invariant, numRuns = 300): void {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      const driver = new LaneDriver()
      for (const what of steps) {
        const before = { lane: driver.lane, notes: driver.run === undefined ? undefined : { ...driver.run } }
        perform(driver, what)
        invariant(driver, before, what)
      }
    }),
    { numRuns },
  )
}

/** The step reports a run as cancelled. */
function isCancelled(what: Step, before: Lane): boolean {
  if (what.kind !== 'settle' || before.run === undefined) return false
  return what.ending.kind === 'cancelled' || (what.ending.kind === 'obey' && before.run.cancel)
}

const queued = (driver: LaneDriver): number => driver.deadLetters.filter(({ state }) => state === 'queued').length
const blocking = (driver: LaneDriver): number => driver.deadLetters.filter(({ blocks }) => blocks).length

describe('a lane in any history', () => {
  it('L2 counts waiting, running, blocking and queued events, and never below zero', () => {
    always((driver) => {
      const { lane, run } = driver
      expect([lane.waiting, lane.bytes, lane.replays]).toEqual([
        driver.live.length,
        sizeOf(driver.live),
        driver.replays.length,
      ])
      expect([lane.queuedDeadLetters, lane.blocks]).toEqual([queued(driver), blocking(driver)])
      expect([lane.run?.id, lane.run?.events, lane.run?.bytes]).toEqual(
        run === undefined ? [undefined, undefined, undefined] : [run.id, run.rows.length, sizeOf(run.rows)],
      )
    })
  })

  it('L2 no event is lost or doubled: it waits, runs, is dead or has ended', () => {
    always((driver) => {
      const dead = driver.deadLetters.reduce((sum, deadLetter) => sum + deadLetter.rows.length, 0)
      const running = driver.run === undefined || driver.run.deadLetter !== undefined ? 0 : driver.run.rows.length
      expect(driver.live.length + driver.replays.length + running + dead + driver.ended).toBe(driver.placed)
      const order = [
        ...(driver.run?.deadLetter === undefined && driver.run?.rank === 0 ? driver.run.rows : []),
        ...driver.live,
      ]
      expect(order).toEqual(order.toSorted((one, other) => one.pos - other.pos))
    })
  })

  it('L2 its deadline is NEVER exactly when there is nothing to do', () => {
    always((driver) => {
      const waits = driver.live.length + driver.replays.length > 0 && blocking(driver) === 0
      expect(driver.lane.due < NEVER).toBe(driver.run !== undefined || queued(driver) > 0 || waits)
    })
  })

  it('L5 the deadline is that of the run, else of a queued dead letter, else the first of window and replays; a hold delays it', () => {
    always((driver) => {
      const { lane, run, now } = driver
      const held = lane.hold?.until ?? 0
      if (run !== undefined) expect(lane.due).toBe(Math.max(run.until, held))
      else if (queued(driver) > 0) expect(lane.due).toBeLessThanOrEqual(Math.max(now, held))
      else if (blocking(driver) > 0) expect(lane.due).toBe(NEVER)
      else if (driver.replays.length > 0) expect(lane.due).toBeLessThanOrEqual(Math.max(now, held))
      else if (driver.live.length > 0) expect(lane.due).toBe(Math.max(lane.window, held))
    })
  })

  it('L5 a ticket is drawn when the deadline moves, or a run begins or ends; tickets only grow', () => {
    always((driver, before, { kind }) => {
      const { lane } = driver
      expect(lane.ticket).toBeGreaterThanOrEqual(before.lane.ticket)
      const turned = lane.run?.id !== before.lane.run?.id || lane.run?.state !== before.lane.run?.state
      if (lane.due !== NEVER && (turned || lane.due !== before.lane.due)) {
        expect(lane.ticket).toBeGreaterThan(before.lane.ticket)
      }
      // A step that only reads, or comes too late, does not change the place in the order.
      if (lane.due === before.lane.due && (kind === 'place' || kind === 'wait'))
        expect(lane.ticket).toBe(before.lane.ticket)
    })
  })

  it('L1 every claim has a new token, greater than all before; a run that waits has none', () => {
    let greatest = 0
    always((driver, { lane: before }, what) => {
      const { lane } = driver
      if (before.tail === 0 && before.ticket === 0) greatest = 0
      if (what.kind === 'claim' && lane !== before && lane.run !== undefined) {
        expect(lane.run.token).toBeGreaterThan(greatest)
        greatest = lane.run.token
      }
      if (lane.run !== undefined) expect(lane.run.token).toBe(lane.run.state === 'running' ? greatest : 0)
    })
  })

  it('isEmpty is true only if nothing is left, no hold lasts, and the time of the last run is no longer needed', () => {
    always((driver) => {
      const { lane, now } = driver
      const left = driver.live.length + driver.replays.length + queued(driver) + blocking(driver)
      const nothing = driver.run === undefined && left === 0
      const kept = Math.max(lane.keepUntil, lane.hold?.until ?? 0)
      expect(isEmptyLane(lane, now)).toBe(nothing && kept <= now)
      expect(isEmptyLane(lane, Math.max(now, kept))).toBe(nothing)
    })
  })

  it('L8 a run keeps its id and events over all attempts; no event joins it, and nothing dissolves a frozen run', () => {
    always((driver, { lane: before, notes }, what) => {
      const [was, is] = [before.run, driver.lane.run]
      if (was === undefined || notes === undefined) return
      if (is?.id === was.id) {
        const fixed = ({
          events,
          bytes,
          upto,
          rank,
          cap,
          started,
          isDeadLetter: deadLetter,
        }: typeof was): unknown[] => [events, bytes, upto, rank, cap, started, deadLetter]
        expect(fixed(is)).toEqual(fixed(was))
        expect(is.first).toBe(!(driver.run?.frozen ?? false))
        if (driver.run?.frozen === true) expect(is.cancel).toBe(false)
      } else if (notes.frozen || notes.deadLetter !== undefined) {
        const over = what.kind === 'claim' || (what.kind === 'settle' && what.ending.kind !== 'cancelled')
        expect(over).toBe(true)
      }
    })
  })

  it('L12 and L24: the health follows from the lapses, counting the coming one, and from the last attempt', () => {
    always(({ lane, run }) => {
      const lapses = run === undefined ? 0 : run.lapses + (run.running ? 1 : 0)
      expect(lane.health).toBe(lapses >= 2 ? SUSPECT : run?.failed === true ? FAILING : HEALTHY)
      expect(lane.run?.tries).toBe(run?.tries)
      expect(lane.run?.lapses).toBe(run?.lapses)
      expect(run?.lapses ?? 0).toBeLessThan(LAPSES_MAX)
    })
  })

  it('L6 and L7: at the end of a run, waiting events are due by their window, or now; never before now', () => {
    always((driver, { lane: before, notes }, what) => {
      if (notes === undefined || driver.run !== undefined || driver.live.length === 0) return
      const { lane, now } = driver
      if (isCancelled(what, before)) return
      const requeue =
        what.kind === 'settle' &&
        what.end.whileRunning === 'requeue' &&
        notes.rank === 0 &&
        notes.deadLetter === undefined
      // Remaining events may have been dropped meanwhile; the lane may know, and new events then keep their window.
      if (before.hasRemaining || requeue) expect(lane.window).toBe(now)
      else expect(lane.window).toBe(Math.max(before.window, now))
      if (before.hasRemaining) expect(notes.leftOver).toBe(true)
      expect([lane.hasRemaining, lane.cap]).toEqual([
        false,
        before.hasRemaining ? Math.min(before.cap, now) : before.cap,
      ])
    })
  })

  it('can be run to the end: every event ends or is a dead letter, and the lane is empty', () => {
    const all: ClaimCaps = { maxEvents: 1_000, maxBytes: 1_000, lease: LEASE, take: 'all' }
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const driver = new LaneDriver()
        for (const what of steps) perform(driver, what)
        driver.steer({ kind: 'unhold' })
        while (blocking(driver) > 0) driver.deadLetter('unblock')
        for (let turns = 0; driver.lane.due !== NEVER && turns < 200; turns++) {
          waitUntilDue(driver)
          driver.claim(all)
          driver.settle({ kind: 'done' }, { whileRunning: 'window', keep: 0 })
        }
        expect(isEmptyLane(driver.lane, Math.max(driver.now, driver.lane.keepUntil))).toBe(true)
        const dead = driver.deadLetters.reduce((sum, deadLetter) => sum + deadLetter.rows.length, 0)
        expect(driver.ended + dead).toBe(driver.placed)
      }),
      { numRuns: 300 },
    )
  })

  it('the histories reach every case: dead letters, suspects, cancels, remaining events, replays, blocks, holds', () => {
    const seen = new Set<string>()
    always((driver, { lane: before, notes }, what) => {
      if (driver.lane.health === SUSPECT) seen.add('suspect')
      if (driver.lane.health === FAILING) seen.add('failing')
      if (driver.run?.deadLetter !== undefined) seen.add('dead letter runs')
      if (driver.run?.rank === 1) seen.add('replay runs')
      if (driver.lane.run?.cancel === true) seen.add('asked to cancel')
      if (before.hasRemaining && driver.run === undefined && notes !== undefined) seen.add('left over')
      if (blocking(driver) > 0 && driver.live.length > 0) seen.add('blocked')
      if (driver.lane.hold !== undefined && driver.live.length > 0) seen.add('held')
      if (isCancelled(what, before) && driver.run === undefined) seen.add('dissolved')
      if (what.kind === 'claim' && notes !== undefined && driver.run === undefined) seen.add('crashed')
    }, 1_000)
    const corners = [
      'suspect',
      'failing',
      'dead letter runs',
      'replay runs',
      'asked to cancel',
      'left over',
      'blocked',
      'held',
      'dissolved',
    ]
    expect([...seen]).toEqual(expect.arrayContaining(corners))
  })
})
