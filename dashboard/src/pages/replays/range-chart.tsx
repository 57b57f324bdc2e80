// Events by time, where the reader drags to choose a range. The two fields below it choose the same by keyboard.
import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { second } from '../../lib/clock.ts'
import { plural, when } from '../../lib/format.ts'
import type { EventHistogram } from '../../lib/types.ts'

const HEIGHT = 110
const TOP = 22

export function RangeChart(props: {
  data: EventHistogram
  from: number | undefined
  to: number | undefined
  onChoose: (from: number, to: number) => void
}): JSX.Element {
  const { data, from, to, onChoose } = props
  const picture = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<{ readonly a: number; readonly b: number }>()
  const steps = data.counts.length
  const width = 100 / steps
  const most = Math.max(1, ...data.counts)
  const indexAt = (x: number): number => {
    const box = picture.current?.getBoundingClientRect()
    if (box === undefined || box.width === 0) return 0
    return Math.max(0, Math.min(steps - 1, Math.floor(((x - box.left) / box.width) * steps)))
  }
  const timeAt = (index: number): number => data.from + index * data.step
  const chosen =
    drag === undefined
      ? { from: from ?? data.from, to: to ?? timeAt(steps) }
      : { from: timeAt(Math.min(drag.a, drag.b)), to: timeAt(Math.max(drag.a, drag.b) + 1) }
  const isIn = (index: number): boolean => timeAt(index) + data.step > chosen.from && timeAt(index) < chosen.to
  const inside = data.counts.reduce((sum, value, index) => sum + (isIn(index) ? value : 0), 0)
  const x = (at: number): number => Math.max(0, Math.min(100, ((at - data.from) / (steps * data.step)) * 100))
  const now = second.value
  return (
    <svg
      ref={picture}
      class="pic range"
      width="100%"
      height={HEIGHT + 22}
      role="img"
      aria-label={`Events of the last 24 hours; ${plural(inside, 'event')} in the chosen range`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        setDrag({ a: indexAt(event.clientX), b: indexAt(event.clientX) })
      }}
      onPointerMove={(event) => drag !== undefined && setDrag({ a: drag.a, b: indexAt(event.clientX) })}
      onPointerCancel={() => setDrag(undefined)}
      onPointerUp={() => {
        if (drag !== undefined) onChoose(chosen.from, chosen.to)
        setDrag(undefined)
      }}
    >
      <rect class="hit" x="0" width="100%" height={HEIGHT} />
      <rect class="range-ground" x={`${x(chosen.from)}%`} width={`${x(chosen.to) - x(chosen.from)}%`} height={HEIGHT} />
      {data.counts.map((value, index) => {
        const height = value === 0 ? 0 : Math.max(2, (value / most) * (HEIGHT - TOP))
        return (
          <rect
            key={index}
            class={isIn(index) ? 'u-wait' : 'u-still'}
            x={`${index * width + width * 0.1}%`}
            width={`${width * 0.8}%`}
            y={HEIGHT - height}
            height={height}
            rx="1"
          />
        )
      })}
      <line class="bed" x1="0" x2="100%" y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
      {(from !== undefined || drag !== undefined) && (
        <rect class="u-wait" x={`${x(chosen.from)}%`} width="2" height={HEIGHT} />
      )}
      {(to !== undefined || drag !== undefined) && (
        <rect class="u-wait" x={`${x(chosen.to)}%`} width="2" height={HEIGHT} />
      )}
      <text class="t-dim" x="0" y={HEIGHT + 16}>
        {when(data.from, now)}
      </text>
      <text class="t-dim" x="50%" y={HEIGHT + 16} text-anchor="middle">
        {when(timeAt(Math.floor(steps / 2)), now)}
      </text>
      <text class="t-dim" x="100%" y={HEIGHT + 16} text-anchor="end">
        now
      </text>
    </svg>
  )
}
