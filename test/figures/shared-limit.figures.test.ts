// The short form of `npm run prove -- postgres-limit`: a few seconds of one load, in which one process is stopped. The edges of
// such a short load may change the count by one slot, and the receiver is only as punctual as its core.
import { expect, test } from 'vitest'
import { sharedLimit } from '../postgres/limit/shared-limit.ts'
import { startServer } from '../postgres/server.ts'
import { PER, RATE } from './limit-load.ts'

const LEAST_SHARE = 0.85

test('four processes under a limit of 3 a second, one of them stopped for 1 s, never exceed it and use most of it', async () => {
  const server = await startServer({ version: 18 })
  try {
    const load = { demand: { waiting: 20 }, ms: 4_900, stall: 1_000, stalls: [], stops: [1_500] } as const
    const figure = await sharedLimit({ ...load, url: server.url, processes: 4 })
    expect(figure).toMatchObject({ failed: 0 })
    expect(figure.byProcess.filter((calls) => calls > 0).length, JSON.stringify(figure)).toBeGreaterThan(1)
    expect(figure.closestHanded, JSON.stringify(figure)).toBeGreaterThanOrEqual(PER)
    expect(figure.closest + figure.receiverLag, JSON.stringify(figure)).toBeGreaterThanOrEqual(PER)
    expect(figure.made + RATE, JSON.stringify(figure)).toBeGreaterThanOrEqual(LEAST_SHARE * figure.allowed)
  } finally {
    await server.stop()
  }
})
