// Waiting, by the clock that was handed in, until time or somebody ends it.
import type { Clock, Millis } from 'sluice'

/** Resolves after `delay`, or as soon as the signal is aborted. Says whether the time was slept out. */
export function sleep(clock: Clock, delay: Millis, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false)
  return new Promise((resolve) => {
    const woken = (): void => {
      cancel()
      resolve(false)
    }
    const cancel = clock.after(delay, () => {
      signal.removeEventListener('abort', woken)
      resolve(true)
    })
    signal.addEventListener('abort', woken, { once: true })
  })
}
