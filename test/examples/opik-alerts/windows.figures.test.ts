// How late the notifications are whose windows end in the same second. The full form is `npm run prove -- opik-alerts`.
import { expect, it } from 'vitest'
import { loadOn } from './load.ts'

it.each(['sqlite', 'postgres'])('of 500 windows, 99 %% are sent within 100 ms of their end, on %s', async (name) => {
  const { late } = await loadOn(name, { seed: 7, workspaces: 50, rounds: 1, eventsPerBurst: 4 })
  expect(late.windows).toBe(500)
  expect(late.p99).toBeLessThanOrEqual(100)
})
