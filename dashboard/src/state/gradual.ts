// Long lists are drawn in two steps: what fits the window with the answer itself, and the rest after the browser has painted it.
import { useEffect, useReducer, useRef } from 'preact/hooks'

/** Few rows are lower than this, and the head of the page takes some of the window. */
const ROW = 48

/**
 * `useGradual` returns how many of the rows to draw. `content` names what the list shows: when it changes, the drawing begins
 * anew. Undefined means that the rows of the content before are still shown.
 */
export function useGradual(rows: number, content: string | undefined): number {
  const drawn = useRef<{ content: string | undefined; most: number }>(undefined)
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0)
  if (drawn.current === undefined || (content !== undefined && drawn.current.content !== content)) {
    drawn.current = { content, most: Math.ceil(globalThis.innerHeight / ROW) }
  }
  const { most } = drawn.current
  // Effects run after the paint.
  useEffect(() => {
    if (most >= rows || drawn.current === undefined) return
    drawn.current.most = Infinity
    redraw()
  }, [most, rows])
  return most
}
