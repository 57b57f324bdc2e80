// Draws marks in one `<svg>`: times become percentages of the axis, so the picture stretches with its column.
import type { JSX } from 'preact'
import { percentText, xOf, type Axis } from '../lib/axis.ts'
import type { Mark } from '../lib/lane-marks.ts'

/** What lies further out is cut off here: the frame shows at most the axis itself and what glides into it. */
const LEFT = -20
const RIGHT = 170

interface MarksProps {
  marks: readonly Mark[]
  axis: Axis
  base: number
  height: number
}

export function MarksView({ marks, axis, base, height }: MarksProps): JSX.Element {
  const x = (at: number): number => Math.max(LEFT, Math.min(RIGHT, xOf(axis, at, base)))
  return (
    <svg class="pic" width="100%" height={height}>
      {marks.map((mark, index) => (
        <MarkView key={index} mark={mark} x={x} />
      ))}
    </svg>
  )
}

function MarkView({ mark, x }: { mark: Mark; x: (at: number) => number }): JSX.Element | null {
  switch (mark.is) {
    case 'bar':
      return <BarMark mark={mark} x={x} />
    case 'line': {
      const [from, to] = [x(mark.from), x(mark.to)]
      if (to <= from) return null
      return <line class={mark.class} x1={percentText(from)} x2={percentText(to)} y1={mark.y} y2={mark.y} />
    }
    case 'rise': {
      const at = x(mark.at)
      if (at <= LEFT) return null
      return <line class={mark.class} x1={percentText(at)} x2={percentText(at)} y1={mark.y} y2={mark.to} />
    }
    case 'drop': {
      const at = x(mark.at)
      return at <= LEFT ? null : <circle class={mark.class} cx={percentText(at)} cy={mark.y} r="3" />
    }
    case 'gate':
      return <GateMark mark={mark} x={x} />
    case 'text':
      return (
        <text class={mark.class} x={percentText(x(mark.at))} y={mark.y}>
          {mark.text}
        </text>
      )
  }
}

function BarMark({ mark, x }: { mark: Extract<Mark, { is: 'bar' }>; x: (at: number) => number }): JSX.Element | null {
  const [from, to] = [x(mark.from), x(mark.to)]
  if (to <= LEFT || from >= RIGHT || to < from) return null
  const { y, height, radius, least } = mark
  return (
    <>
      {least !== undefined && (
        <rect class={mark.class} x={percentText(from)} width={least} y={y} height={height} rx={radius} />
      )}
      <rect class={mark.class} x={percentText(from)} width={percentText(to - from)} y={y} height={height} rx={radius} />
    </>
  )
}

/** A gate is a T of 4 px; a cap is its thin post. */
function GateMark({ mark, x }: { mark: Extract<Mark, { is: 'gate' }>; x: (at: number) => number }): JSX.Element | null {
  const at = x(mark.at)
  if (at <= LEFT || at >= RIGHT) return null
  const isPost = mark.post === true
  const [width, head] = isPost ? [2, 8] : [4, 12]
  const [top, end] = isPost ? [17, 33] : [4, 33]
  const name = isPost ? 'cap' : `gate ${mark.tone}`
  return (
    <svg x={percentText(at)} y="0" width="1" height="1" overflow="visible">
      <rect class={name} x={-width / 2} y={top} width={width} height={end - top} rx={isPost ? 1 : 1.5} />
      <rect class={name} x={-head / 2} y={top - 1} width={head} height={isPost ? 2.5 : 3.5} rx={isPost ? 1.25 : 1.75} />
    </svg>
  )
}
