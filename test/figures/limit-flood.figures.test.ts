// Far more runs than the limit can serve soon: those that are put off (M6) must not leave holes in the line behind them.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { PER, RATE, underLimit } from './limit-load.ts'

test('runs that are put off give their slots back: the limit is used while they wait', async () => {
  const load = { demand: { burst: 2, every: 5 }, ms: 5_000, stalls: [], stall: 0, maxWait: '2s' } as const
  const figure = await inFolder((folder) => underLimit({ ...load, folder }))
  expect(figure).toMatchObject({ failed: 0 })
  expect(figure.putOff).toBeGreaterThan(0)
  expect(figure.closestHanded, JSON.stringify(figure)).toBeGreaterThanOrEqual(PER)
  // A few seconds have edges: one slot's worth of calls, more or less, says nothing.
  expect(figure.made + RATE, JSON.stringify(figure)).toBeGreaterThanOrEqual(0.85 * figure.allowed)
})
