// L3 and L22: the window options of a flow, and the numbers that accompany each event.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import type { Duration } from '../../src/model/duration.ts'
import { createWindow, createEventWindow, type WindowOptions } from '../../src/flow/window.ts'
import { refusal } from './support.ts'

const DAY = 86_400_000
const ms = fc.oneof(fc.nat(10_000), fc.nat(400 * DAY))
const level = fc.double({ min: 0, max: 1, noNaN: true })
const range = fc.tuple(fc.integer({ min: 1, max: DAY }), fc.nat(DAY)).map(([from, more]) => ({ from, to: from + more }))
const defaults = { maxEvents: DEFAULTS.maxEvents, maxBytes: DEFAULTS.maxBytes, jitter: 0, leading: false }

describe('L3 every window is two numbers', () => {
  it('no window is (0, 0), with defaults for the rest', () => {
    expect(createWindow().numbers(0)).toEqual({ quiet: 0, max: 0, ...defaults })
    expect(createWindow({}).numbers(1)).toEqual({ quiet: 0, max: 0, ...defaults })
    expect(createEventWindow().numbers(0.5)).toEqual({ quiet: 0, max: 0, ...defaults })
  })

  it('quiet alone is (quiet, 10 × quiet)', () => {
    fc.assert(
      fc.property(ms, level, (quiet, at) => {
        expect(createWindow({ quiet }).numbers(at)).toEqual({ quiet, max: 10 * quiet, ...defaults })
        expect(createWindow({ quiet }).max).toBe(10 * quiet)
      }),
    )
    expect(createWindow({ quiet: '10s' }).numbers(0)).toMatchObject({ quiet: 10_000, max: 100_000 })
  })

  it('quiet and max are as given, and Infinity means unbounded', () => {
    fc.assert(
      fc.property(ms, ms, level, (quiet, more, at) => {
        expect(createWindow({ quiet, max: quiet + more }).numbers(at)).toMatchObject({ quiet, max: quiet + more })
        expect(createWindow({ quiet, max: Infinity }).numbers(at)).toMatchObject({ quiet, max: Infinity })
      }),
    )
  })

  it('every: d is (∞, d), under any pressure', () => {
    fc.assert(
      fc.property(ms, level, (every, at) => {
        expect(createWindow({ every }).numbers(at)).toEqual({ quiet: Infinity, max: every, ...defaults })
        expect(createEventWindow({ every }).numbers(at)).toEqual(createWindow({ every }).numbers(at))
      }),
    )
  })

  it('the other options are passed on unchanged', () => {
    const said = fc.record({
      maxEvents: fc.integer({ min: 1, max: 1e6 }),
      maxBytes: fc.integer({ min: 1, max: 1e9 }),
      jitter: level,
      leading: fc.boolean(),
    })
    fc.assert(
      fc.property(said, level, (options, at) => {
        expect(createWindow({ quiet: 5, ...options }).numbers(at)).toEqual({ quiet: 5, max: 50, ...options })
        expect(createEventWindow({ quiet: 5, ...options }).numbers(at)).toEqual({ quiet: 5, max: 50, ...options })
      }),
    )
  })
})

describe('L22 adaptive windows', () => {
  it('quiet goes from `from` at level 0 to `to` at level 1, and max does not move', () => {
    fc.assert(
      fc.property(range, level, (quiet, at) => {
        const adaptive = createWindow({ quiet })
        expect(adaptive.numbers(0).quiet).toBe(quiet.from)
        expect(adaptive.numbers(1).quiet / quiet.to).toBeCloseTo(1, 12)
        const between = quiet.from * (quiet.to / quiet.from) ** at
        expect(adaptive.numbers(at).quiet / between).toBeCloseTo(1, 12)
        expect(adaptive.numbers(at).max).toBe(10 * quiet.to)
      }),
    )
    expect(createWindow({ quiet: { from: '1s', to: '100s' } }).numbers(0.5).quiet).toBeCloseTo(10_000, 6)
  })

  it('`to` above max is rejected, not silently reduced', () => {
    fc.assert(
      fc.property(range, fc.nat(), (quiet, less) => {
        const max = quiet.to - 1 - (less % quiet.to)
        expect(refusal(() => createWindow({ quiet, max }, 'rank')).message).toContain('rank.max')
      }),
    )
    expect(() => createWindow({ quiet: { from: '1s', to: '60s' }, max: '60s' })).not.toThrow()
  })
})

describe('L3 a window that a function returned for one event', () => {
  it('never throws if max is below quiet: max then counts as both', () => {
    fc.assert(
      fc.property(fc.oneof(ms, range), ms, level, (quiet, max, at) => {
        const numbers = createEventWindow({ quiet, max }).numbers(at)
        expect(numbers.max).toBe(max)
        expect(numbers.quiet).toBeLessThanOrEqual(max * (1 + 1e-12))
        if ((typeof quiet === 'number' ? quiet : quiet.to) <= max) {
          expect(numbers).toEqual(createWindow({ quiet, max }).numbers(at))
        } else if (typeof quiet === 'number' || quiet.from >= max) {
          expect(numbers.quiet).toBe(max)
        }
      }),
      { numRuns: 500 },
    )
  })
})

const wrong: readonly [string, WindowOptions][] = [
  ['rank must have quiet or every', { quiet: '1s', every: '1s' }],
  ['rank must not have both every and max', { every: '1s', max: '2s' }],
  ['rank must not have both every and max', { every: '1s', max: Infinity }],
  ['rank.quiet ', { quiet: 'soon' as Duration }],
  ['rank.quiet ', { quiet: -1 }],
  ['rank.quiet ', { quiet: Number.NaN }],
  ['rank.quiet.from ', { quiet: { from: -1, to: 5 } }],
  ['rank.quiet.to ', { quiet: { from: 1, to: '5 s' as Duration } }],
  ['rank.quiet ', { quiet: { from: 0, to: 5 } }],
  ['rank.quiet ', { quiet: { from: 6, to: 5 }, max: 100 }],
  ['rank.every ', { every: -1 }],
  ['rank.every ', { every: Number.NaN }],
  ['rank.max ', { quiet: 1, max: -1 }],
  ['rank.max ', { max: Number.NaN }],
  ['rank.maxEvents ', { maxEvents: 0 }],
  ['rank.maxEvents ', { maxEvents: Number.NaN }],
  ['rank.maxBytes ', { maxBytes: -1 }],
  ['rank.maxBytes ', { maxBytes: 0.5 }],
  ['rank.jitter ', { quiet: 1, jitter: -0.1 }],
  ['rank.jitter ', { quiet: 1, jitter: 1.1 }],
  ['rank.jitter ', { quiet: 1, jitter: Number.NaN }],
  ['rank.leading ', { leading: true }],
  ['rank.leading ', { every: '1s', leading: true }],
  ['rank.leading ', { max: '1s', leading: true }],
]

describe('L3 contradictions are rejected with the name of the option', () => {
  it.each(wrong)('%s: %j', (named, options) => {
    expect(refusal(() => createWindow(options, 'rank')).message).toContain(named)
    expect(refusal(() => createEventWindow(options, 'rank')).message).toContain(named)
  })

  it('a max below quiet is rejected', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: DAY }), fc.nat(), (quiet, less) => {
        const max = quiet - 1 - (less % quiet)
        const { message } = refusal(() => createWindow({ quiet, max }, 'rank'))
        expect(message).toContain(`rank.max must be at least its quiet (${quiet} ms); got ${max} ms`)
      }),
    )
  })

  it('any mixture of options is rejected with CONFIG_INVALID, or gives numbers that a store accepts', () => {
    const number = fc.oneof(fc.nat(100), fc.constantFrom(-1, 0.5, Infinity, Number.NaN))
    const any = fc.record(
      {
        quiet: fc.oneof(number, fc.record({ from: number, to: number })),
        every: number,
        max: number,
        maxEvents: number,
        maxBytes: number,
        jitter: fc.oneof(level, number),
        leading: fc.boolean(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(any, level, fc.constantFrom(createWindow, createEventWindow), (options, at, read) => {
        let numbers
        try {
          numbers = read(options).numbers(at)
        } catch {
          refusal(() => read(options))
          return
        }
        for (const name of ['quiet', 'max', 'maxEvents', 'maxBytes', 'jitter'] as const) {
          expect(numbers[name]).toBeGreaterThanOrEqual(0)
        }
        expect(numbers.jitter).toBeLessThanOrEqual(1)
      }),
      { numRuns: 2_000 },
    )
  })
})
