// L3 and L4: the deadline of a lane against the formula over all of its events, computed from scratch each time.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NEVER, type Millis } from '../../src/clock.ts'
import { beginRun } from '../../src/model/claim.ts'
import { scheduleLane, type Lane } from '../../src/model/lane.ts'
import { placeEvent, type PlacementParameters } from '../../src/model/place.ts'
import { counter, freshLane, PLAIN, START } from './support.ts'

interface Arrival extends PlacementParameters {
  readonly at: Millis
}

const DAY = 86_400_000
/** Short and equal durations, durations beyond a 32-bit timer, and infinite ones. */
const length = fc.oneof(
  fc.nat(50),
  fc.nat(1_000),
  fc.integer({ min: 2 ** 31, max: 400 * DAY }),
  fc.double({ min: 0, max: 100, noNaN: true }),
  fc.constant(Infinity),
)
const gap = fc.oneof(fc.constant(0), fc.nat(30), fc.nat(400), fc.nat(40 * DAY))
const event = fc.record({ gap, quiet: length, max: length, size: fc.nat(100) })

function arrivals(
  list: readonly { readonly gap: number; readonly quiet: number; readonly max: number; readonly size: number }[],
  also: Partial<PlacementParameters> = {},
): readonly Arrival[] {
  let at = START
  return list.map(({ gap: wait, ...numbers }) => ({ ...PLAIN, ...numbers, ...also, at: (at += wait) }))
}

/** The lane after each arrival. */
function laneStates(list: readonly Arrival[], lane: Lane = freshLane(), draw = counter()): readonly Lane[] {
  let now = lane
  return list.map((one) => (now = placeEvent(now, one, { now: one.at, draw })))
}

const sum = (from: Millis, wait: Millis): Millis => (from + wait >= NEVER ? NEVER : Math.ceil(from + wait))

/** min(latest + its quiet, least arrival + max). A deadline that passed before the next event arrived stays (L4). */
function deadline(list: readonly Arrival[]): Millis {
  for (let count = 1; ; count++) {
    const waiting = list.slice(0, count)
    const latest = waiting.at(-1)
    if (latest === undefined) return NEVER
    const full =
      waiting.length >= latest.maxEvents || waiting.reduce((all, one) => all + one.size, 0) >= latest.maxBytes
    const end = full ? latest.at : Math.min(sum(latest.at, latest.quiet), ...waiting.map((one) => sum(one.at, one.max)))
    const next = list[count]
    if (next === undefined || end <= next.at) return end
  }
}

describe('L3 windows', () => {
  it('the deadline follows the formula over all waiting events, whatever windows the neighbours have', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 25 }), (list) => {
        const all = arrivals(list)
        for (const [n, lane] of laneStates(all).entries()) {
          expect(lane.window).toBe(deadline(all.slice(0, n + 1)))
          expect(lane.due).toBe(lane.window)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('with maxEvents and maxBytes, an event that makes the lane full makes it due now', () => {
    const caps = fc.record({ maxEvents: fc.integer({ min: 1, max: 8 }), maxBytes: fc.integer({ min: 1, max: 400 }) })
    fc.assert(
      fc.property(fc.array(fc.tuple(event, caps), { minLength: 1, maxLength: 12 }), (list) => {
        const all = arrivals(list.map(([one]) => one)).map((one, n) => ({ ...one, ...list[n]?.[1] }))
        for (const [n, lane] of laneStates(all).entries()) {
          expect(lane.window).toBe(deadline(all.slice(0, n + 1)))
          const { maxEvents, maxBytes, at } = all[n] ?? { maxEvents: 0, maxBytes: 0, at: 0 }
          if (lane.waiting >= maxEvents || lane.bytes >= maxBytes) expect(lane.due).toBeLessThanOrEqual(at)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('no event waits longer than its own max', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 25 }), (list) => {
        const all = arrivals(list)
        const end = laneStates(all).at(-1)?.window ?? NEVER
        for (const one of all) expect(Math.min(end, NEVER - 1) - one.at).toBeLessThanOrEqual(Math.ceil(one.max))
      }),
    )
  })

  it('a debounce ends `quiet` after the latest event, and `every` after the first', () => {
    const gaps = fc.array(fc.nat(99), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(gaps, (list) => {
        const steady = list.map((wait) => ({ gap: wait, quiet: 100, max: Infinity, size: 1 }))
        const all = arrivals(steady)
        expect(laneStates(all).at(-1)?.window).toBe((all.at(-1)?.at ?? 0) + 100)
        const every = arrivals(steady, { quiet: Infinity, max: 5_000 })
        expect(laneStates(every).at(-1)?.window).toBe((every[0]?.at ?? 0) + 5_000)
      }),
    )
  })

  it('an infinite window is NEVER, is in no queue, and ends when a neighbour with a max arrives', () => {
    fc.assert(
      fc.property(fc.nat(DAY), fc.integer({ min: 1, max: 400 * DAY }), (wait, max) => {
        const draw = counter()
        const lane = placeEvent(freshLane(), { ...PLAIN, quiet: Infinity, max: Infinity }, { now: START, draw })
        expect([lane.window, lane.cap, lane.due, lane.ticket]).toEqual([NEVER, NEVER, NEVER, 0])
        const now = START + wait
        const pulled = placeEvent(lane, { ...PLAIN, quiet: Infinity, max }, { now, draw })
        expect([pulled.due, pulled.waiting]).toEqual([now + max, 2])
        expect(pulled.ticket).toBeGreaterThan(0)
      }),
    )
  })

  it('a deadline is never beyond NEVER, even at the end of time', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), length, length, (now, quiet, max) => {
        const lane = placeEvent(freshLane(), { ...PLAIN, quiet, max }, { now, draw: counter() })
        for (const at of [lane.window, lane.cap, lane.due]) expect(Number.isSafeInteger(at) && at >= now).toBe(true)
      }),
    )
  })
})

describe('L4 a passed deadline stays', () => {
  const passed = fc.record({ quiet: fc.nat(100), max: fc.nat(100) })

  it('a passed deadline keeps its time and its ticket, and arriving events join the batch', () => {
    fc.assert(
      fc.property(passed, fc.array(event, { minLength: 1, maxLength: 20 }), (first, more) => {
        const draw = counter()
        const lane = placeEvent(freshLane(), { ...PLAIN, ...first }, { now: START - 200, draw })
        const last = laneStates(arrivals(more), lane, draw).at(-1)
        expect(last).toMatchObject({
          due: lane.due,
          window: lane.window,
          ticket: lane.ticket,
          waiting: more.length + 1,
        })
      }),
    )
  })

  it('the same holds in a running lane', () => {
    fc.assert(
      fc.property(passed, fc.array(event, { minLength: 1, maxLength: 20 }), (first, more) => {
        const draw = counter()
        const caps = { maxEvents: 10, maxBytes: 1_000, lease: Infinity, take: 'all' } as const
        const one = placeEvent(freshLane(), PLAIN, { now: START - 500, draw })
        const taken = { rank: 0, replay: '', rows: [{ pos: 1, size: 1, cap: NEVER }], superseded: [] } as const
        const running = beginRun(one, 'r1', taken, { now: START - 400, draw, token: draw(), caps })
        const lane = placeEvent(running, { ...PLAIN, ...first }, { now: START - 200, draw })
        const last = laneStates(arrivals(more), lane, draw).at(-1)
        expect(last).toMatchObject({ window: lane.window, due: NEVER, waiting: more.length + 1 })
      }),
    )
  })
})

describe('L5 tickets', () => {
  it('a ticket is drawn exactly when the deadline moves, and is greater than all before', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 25 }), (list) => {
        let before = freshLane()
        for (const lane of laneStates(arrivals(list), before)) {
          if (lane.due === before.due || lane.due === NEVER) expect(lane.ticket).toBe(before.ticket)
          else expect(lane.ticket).toBeGreaterThan(before.ticket)
          before = lane
        }
      }),
    )
  })

  it('a deadline that is set anew draws a ticket even if its time stays the same', () => {
    const draw = counter()
    const lane = placeEvent(freshLane(), PLAIN, { now: START, draw })
    expect(scheduleLane({ ...lane }, draw, 'if-moved').ticket).toBe(lane.ticket)
    expect(scheduleLane({ ...lane }, draw, 'anew').ticket).toBeGreaterThan(lane.ticket)
  })
})
