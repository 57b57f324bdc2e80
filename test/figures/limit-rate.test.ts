// The short form of `npm run prove -- limit-rate`: a few seconds of each load, with one stall each.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { closest, exactCalls, mostInAWindow, RATE, underLimit, type LimitLoad } from './limit-load.ts'

const LEAST_SHARE = 0.85
const LOADS: Readonly<Record<string, LimitLoad['demand']>> = {
  saturating: 'saturating',
  bursty: { burst: 6, every: 3_000 },
}

test.each(Object.entries(LOADS))(
  'a %s load under a limit of 3 a second and a stall of 2 s: never more than 3 in a second, and not many fewer',
  async (_, demand) => {
    const figure = await inFolder((folder) => underLimit({ demand, ms: 5_900, stalls: [1_700], stall: 2_000, folder }))
    expect(figure).toMatchObject({ failed: 0 })
    expect(figure.mostInASecond, JSON.stringify(figure)).toBeLessThanOrEqual(RATE)
    expect(figure.share, JSON.stringify(figure)).toBeGreaterThanOrEqual(LEAST_SHARE)
  },
)

test('the reckoning: what an exact limiter could have made', () => {
  const asked = Array.from({ length: 100 }, () => 0)
  expect(exactCalls(asked, [], 3_500)).toBe(12)
  expect(exactCalls(asked, [{ from: 500, to: 2_500 }], 3_600)).toBe(9)
  expect(exactCalls([0, 0, 0, 0, 200], [], 900)).toBe(3)
})

test('the check sees a fourth call within a second, and none that is a second later', () => {
  expect(mostInAWindow([0, 10, 20, 1_000, 1_009.9])).toBe(4)
  expect(closest([0, 10, 20, 1_000, 1_009.9])).toBeCloseTo(999.9)
  expect(mostInAWindow([0, 10, 20, 1_000, 1_010, 1_020])).toBe(3)
  expect(closest([0, 10, 20, 1_000, 1_010, 1_020])).toBe(1_000)
})
