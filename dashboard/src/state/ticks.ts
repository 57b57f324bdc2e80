// The time of the moving pictures. It runs only while a picture is open and the page can be seen.
import { useEffect, useState } from 'preact/hooks'
import { now } from '../lib/clock.ts'

const QUICK = 250
const SLOW = 1_000

/** `useMovingNow` returns the present and renders anew as it passes: four times a second, or once for calm readers. */
export function useMovingNow(span: number, frozenAt?: number): number {
  const [at, setAt] = useState(now)
  useEffect(() => {
    if (frozenAt !== undefined) return undefined
    const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches || span > 200_000
    const timer = setInterval(
      () => {
        if (!document.hidden) setAt(now())
      },
      isCalm ? SLOW : QUICK,
    )
    return () => clearInterval(timer)
  }, [span, frozenAt])
  return frozenAt ?? at
}
