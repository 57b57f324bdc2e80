// Lets virtual time pass until something is over: a minute of the demo takes a fraction of a second.
import { setImmediate } from 'node:timers/promises'
import type { VirtualClock } from 'sluice/testing'

const STEP = 5

export async function drive<T>(clock: VirtualClock, running: Promise<T>): Promise<T> {
  const over = new AbortController()
  const end = (): void => over.abort()
  running.then(end, end)
  while (!over.signal.aborted) {
    clock.advance(STEP)
    // Everything that follows from this moment happens before the next.
    await setImmediate()
  }
  return running
}
