// M1 in real time: a call that was handed over just before the event loop stalled counts from the end of the stall.
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createLimit } from '../../src/limit/limit.ts'
import { openStore } from '../../src/store/open.ts'

const STALL = 300
const PER = 1_000

test('M1 after a stall that held up calls, the next ones wait as if these had been made at its end', async () => {
  const store = await openStore('memory:')
  const parts = { store: async () => store, clock: systemClock, emit: () => {}, fetch: globalThis.fetch }
  const limit = createLimit('api', { rate: 2, per: PER }, parts)
  await limit.run(() => {})
  await limit.run(() => {
    const until = performance.now() + STALL
    while (performance.now() < until);
  })
  const wentOn = performance.now()
  const next = await limit.run(() => performance.now())
  expect(next - wentOn).toBeGreaterThan(PER)
  expect(await limit.run(() => performance.now())).toBeLessThan(next + 100)
  await store.close()
})

test('M1 without a stall nothing pauses', async () => {
  const store = await openStore('memory:')
  const parts = { store: async () => store, clock: systemClock, emit: () => {}, fetch: globalThis.fetch }
  const limit = createLimit('api', { rate: 3, per: PER }, parts)
  const began = performance.now()
  for (let n = 0; n < 3; n++) await limit.run(() => {})
  expect(performance.now() - began).toBeLessThan(PER)
  await store.close()
})
