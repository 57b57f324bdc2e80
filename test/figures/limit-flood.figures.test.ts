// Far more runs than the limit can serve soon: deferred runs (M6) must not leave unused slots behind.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { PER, RATE, underLimit } from './limit-load.ts'

test('deferred runs give their slots back: other runs use the whole limit while they wait', async () => {
  const load = { demand: { burst: 2, every: 5 }, ms: 5_000, stalls: [], stall: 0, maxWait: '2s' } as const
  const figure = await inFolder((folder) => underLimit({ ...load, folder }))
  expect(figure).toMatchObject({ failed: 0 })
  expect(figure.putOff).toBeGreaterThan(0)
  expect(figure.closestHanded, JSON.stringify(figure)).toBeGreaterThanOrEqual(PER)
  // The edges of a few seconds may change the count by one slot.
  expect(figure.made + RATE, JSON.stringify(figure)).toBeGreaterThanOrEqual(0.85 * figure.allowed)
})
