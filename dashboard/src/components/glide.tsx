// The moving time axis. Everything that was glides at the left of the now line, everything that will be at its right. Both
// layers move as a whole, on the compositor, however many rows they hold.
import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { now as present } from '../lib/clock.ts'
import type { Axis } from '../lib/axis.ts'

/** The layers are drawn for one time; when it is this share of the axis ago, they are drawn anew. */
const REDRAW_AFTER = 0.3
/** Longer axes move by less than a pixel a second, so that they need no frame of their own. */
const GLIDES_BELOW = 200_000

/** `useBase` returns the time for which the layers are drawn: it stays for a while, so that they need not be drawn anew. */
export function useBase(axis: Axis, at: number): number {
  const base = useRef({ axis, at })
  const age = at - base.current.at
  if (base.current.axis !== axis || age < 0 || age > axis.span * REDRAW_AFTER) base.current = { axis, at }
  return base.current.at
}

interface GlideProps {
  axis: Axis
  base: number
  /** The picture stands still at this time. */
  stoppedAt?: number | undefined
  past: ComponentChildren
  ahead: ComponentChildren
  /** What stands still: it has its place relative to the now line. */
  children?: ComponentChildren
  class?: string
}

export function Glide({ axis, base, stoppedAt, past, ahead, children, class: extra }: GlideProps): JSX.Element {
  const [left, right] = [useRef<HTMLDivElement>(null), useRef<HTMLDivElement>(null)]
  useLayoutEffect(() => {
    const shift = (at: number): string => `translateX(${((base - at) / axis.span) * 100}%)`
    const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches || axis.span > GLIDES_BELOW
    const from = stoppedAt ?? present()
    // The animation runs a little longer than the layers are used, so that a late redraw does not stop it.
    const length = stoppedAt === undefined ? axis.span * REDRAW_AFTER * 2 : 1
    const easing = isCalm ? `steps(${Math.ceil(length / 1_000)}, end)` : 'linear'
    const frames = [{ transform: shift(from) }, { transform: shift(stoppedAt ?? from + length) }]
    const moving = [left, right].map(({ current }) =>
      current?.animate(frames, { duration: length, easing, fill: 'both' }),
    )
    return () => moving.forEach((animation) => animation?.cancel())
  }, [axis, base, stoppedAt])
  return (
    <div class={`glide${extra === undefined ? '' : ` ${extra}`}`} aria-hidden="true">
      <div class="glide-past">
        <div ref={left}>{past}</div>
      </div>
      <div class="glide-ahead">
        <div ref={right}>{ahead}</div>
      </div>
      <div class="glide-still">{children}</div>
    </div>
  )
}
