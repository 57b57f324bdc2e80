// Opik alerts in real time. The full form is `npm run prove -- opik-alerts`.
import { expect, it } from 'vitest'
import { loadOn } from './load.ts'

it.each(['sqlite', 'postgres'])(
  'each event is in exactly one notification, and each window is one, on %s',
  async (name) => {
    const seed = Number(process.env['SEED'] ?? 7)
    const result = await loadOn(name, { seed, workspaces: 10, rounds: 2, eventsPerBurst: 10 })
    expect(result, `SEED=${seed}`).toMatchObject({
      alerts: 100,
      events: 2_000,
      missing: 0,
      repeated: 0,
      deadLetters: 0,
    })
    expect(result.late.windows).toBe(100)
    // On a machine that stands still for seconds, an event may come too close to the end of a window for our count.
    expect(Math.abs(result.notifications - result.windows)).toBeLessThanOrEqual(result.doubtful)
  },
)
