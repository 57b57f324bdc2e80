// The short form of `npm run prove -- limit-rate`: a few seconds of each load, with one stall each. The edges of such a short
// load may change the count by one slot, and the receiver shares its cores with other tests, so the test tolerates the delay
// that the receiver measured. The full form tolerates nothing.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { PER, RATE, underLimit, type LimitLoad } from './limit-load.ts'

const LEAST_SHARE = 0.85
const LOADS: Readonly<Record<string, LimitLoad['demand']>> = {
  saturating: { waiting: 20 },
  bursty: { burst: 6, every: 3_000 },
}

test.each(Object.entries(LOADS))(
  'a %s load with a stall of 2 s never exceeds a limit of 3 per second, and uses most of it',
  async (_, demand) => {
    const figure = await inFolder((folder) => underLimit({ demand, ms: 5_900, stalls: [1_700], stall: 2_000, folder }))
    expect(figure).toMatchObject({ failed: 0 })
    expect(figure.closestHanded, JSON.stringify(figure)).toBeGreaterThanOrEqual(PER)
    expect(figure.closest + figure.receiverLag, JSON.stringify(figure)).toBeGreaterThanOrEqual(PER)
    expect(figure.made + RATE, JSON.stringify(figure)).toBeGreaterThanOrEqual(LEAST_SHARE * figure.allowed)
  },
)
