// Reads something anew when the stream reports a change of it.
import { useEffect, useRef } from 'preact/hooks'
import { listen, type Change } from './stream.ts'

/** A page reads anew at most this often, however many changes come. The first change after a pause is shown at once. */
const PAUSE = 1_500

/** `useLive` calls `refresh` soon after a change that `matters`, or when changes may be missing. */
export function useLive(matters: (change: Change) => boolean, refresh: () => void): void {
  const latest = useRef({ matters, refresh })
  latest.current = { matters, refresh }
  useEffect(() => {
    let last = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = listen((changes, skipped) => {
      if (timer !== undefined || (!skipped && !changes.some((change) => latest.current.matters(change)))) return
      timer = setTimeout(
        () => {
          timer = undefined
          last = Date.now()
          latest.current.refresh()
        },
        Math.max(0, last + PAUSE - Date.now()),
      )
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [])
}
