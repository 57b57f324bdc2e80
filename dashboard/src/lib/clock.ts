// The present by the store's clock. `second` changes once a second and drives every countdown of the page.
import { signal } from '@preact/signals'

/** How far the store's clock is ahead of the browser's, by the last answer that named the time. */
let ahead = 0
let isKnown = false

export function now(): number {
  return Date.now() + ahead
}

/** `learnTime` takes the store's time from an answer. Small differences are the network's and are ignored. */
export function learnTime(storeNow: number): void {
  const measured = storeNow - Date.now()
  if (isKnown && Math.abs(measured - ahead) < 250) return
  ahead = measured
  isKnown = true
}

export const second = signal(now())

setInterval(() => {
  if (!document.hidden) second.value = now()
}, 1_000)

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) second.value = now()
})
