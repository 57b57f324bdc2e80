// L3: two options besides quiet and max that move a window: leading and jitter.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addDelay, NEVER, type Millis } from '../../src/clock.ts'
import { beginRun } from '../../src/model/claim.ts'
import { placeEvent, type PlacementParameters } from '../../src/model/place.ts'
import { counter, freshLane, PLAIN, START } from './support.ts'

const DAY = 86_400_000
const most = fc.oneof(fc.nat(1_000), fc.nat(800 * DAY), fc.constant(Infinity))

describe('L3 leading', () => {
  const quiet = fc.integer({ min: 1, max: 1_000 })

  it('the first event after `quiet` without events is due at once, any other waits', () => {
    fc.assert(
      fc.property(
        quiet,
        fc.option(fc.integer({ min: -2, max: 2 }), { nil: undefined }),
        fc.nat(999),
        (still, near, far) => {
          const ago = near === undefined ? undefined : Math.max(0, still + (near === 2 ? far : near))
          const ended = ago === undefined ? 0 : START - ago
          const lane = { ...freshLane(), ended, keepUntil: ended + still }
          const first = placeEvent(
            lane,
            { ...PLAIN, quiet: still, max: 9_999, leading: true },
            { now: START, draw: counter() },
          )
          expect(first.due).toBe(ago === undefined || ago >= still ? START : START + still)
          const plain = placeEvent(lane, { ...PLAIN, quiet: still, max: 9_999 }, { now: START, draw: counter() })
          expect(plain.due).toBe(START + still)
        },
      ),
    )
  })

  it('it applies only to a lane in which nothing waits or runs', () => {
    fc.assert(
      fc.property(quiet, fc.boolean(), (still, leading) => {
        const draw = counter()
        const numbers = { ...PLAIN, quiet: still, max: 10_000 }
        const waits = placeEvent(freshLane(), numbers, { now: START, draw })
        expect(placeEvent(waits, { ...numbers, leading }, { now: START, draw }).due).toBe(START + still)
        const caps = { maxEvents: 10, maxBytes: 1_000, lease: 5_000, take: 'all' } as const
        const taken = { rank: 0, replay: '', rows: [{ pos: 1, size: 1, cap: NEVER }], superseded: [] } as const
        const runs = beginRun(waits, 'r1', taken, { now: START + still, draw, token: draw(), caps })
        const during = placeEvent(runs, { ...numbers, leading }, { now: START + still, draw })
        expect(during.window).toBe(START + 2 * still)
      }),
    )
  })
})

/** The end of a lane's window if the next number of the counter is this one plus 1. */
const spread = (key: string, ticket: number, numbers: Partial<PlacementParameters>): Millis =>
  placeEvent(freshLane(key), { ...PLAIN, ...numbers }, { now: START, draw: counter(ticket) }).window

describe('L3 jitter', () => {
  const share = fc.double({ min: 0.01, max: 1, noNaN: true })

  it('scales quiet within its share, never beyond max, and equally for the same lane and ticket', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.nat(400 * DAY), share, most, (key, ticket, quiet, jitter, max) => {
        const end = spread(key, ticket, { quiet, max, jitter })
        expect(end).toBe(spread(key, ticket, { quiet, max, jitter }))
        expect(end).toBeLessThanOrEqual(addDelay(START, Math.min(quiet * (1 + jitter), max)))
        expect(end).toBeGreaterThanOrEqual(Math.min(Math.floor(START + quiet * (1 - jitter)), addDelay(START, max)))
      }),
      { numRuns: 500 },
    )
  })

  it('is evenly distributed over lanes and over tickets', () => {
    const numbers = { quiet: 1_000, max: Infinity, jitter: 0.5 }
    const byTicket = Array.from({ length: 2_000 }, (_, n) => spread('k', n, numbers) - START)
    const byLane = Array.from({ length: 2_000 }, (_, n) => spread(String(n), 7, numbers) - START)
    for (const ends of [byTicket, byLane]) {
      for (let from = 500; from < 1_500; from += 100) {
        const share10 = ends.filter((end) => end > from && end <= from + 100).length / ends.length
        expect(share10).toBeGreaterThan(0.07)
        expect(share10).toBeLessThan(0.13)
      }
    }
  })

  it('does not change `every` and an infinite quiet, even at a ticket whose random number is exactly 0', () => {
    expect(spread('key', 7_416_004_109, { quiet: Infinity, max: 5_000, jitter: 1 })).toBe(START + 5_000)
    fc.assert(
      fc.property(fc.string(), fc.nat(), share, most, (key, ticket, jitter, max) => {
        expect(spread(key, ticket, { quiet: Infinity, max, jitter })).toBe(addDelay(START, max))
      }),
    )
  })
})
