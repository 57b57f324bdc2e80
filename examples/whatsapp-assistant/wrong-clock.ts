// `wrongClock` is a clock that is off by up to an hour, differently in each process. The guarantees of the app must not depend on clocks.
import { hash } from 'node:crypto'
import type { Clock } from 'sluice'

const HOUR = 3_600_000

export function wrongClock(clock: Clock, process: number): Clock {
  const chance = parseInt(hash('sha256', String(process)).slice(0, 8), 16) / 2 ** 32
  const off = Math.round((2 * chance - 1) * HOUR)
  return {
    now: () => clock.now() + off,
    monotonic: () => clock.monotonic(),
    after: (delay, call) => clock.after(delay, call),
  }
}
