// Lines over time. All charts of a page share one crosshair.
import type { JSX } from 'preact'
import { signal } from '@preact/signals'
import { minuteOf } from '../lib/format.ts'
import { niceTicks } from '../lib/ticks.ts'

export interface ChartLine {
  readonly tone: 'wait' | 'run' | 'ready' | 'fail' | 'limit' | 'ink' | 'still'
  readonly values: readonly (number | undefined)[]
  readonly area?: boolean
}

const HEIGHT = 120
const TOP = 12
/** The figures of the axis stand right of the lines. */
const WIDTH = 86

const crosshair = signal<number | undefined>(undefined)

interface ChartProps {
  lines: readonly ChartLine[]
  from: number
  step: number
  format: (value: number) => string
  /** The values are whole numbers, and so are those of the axis. */
  isWhole?: boolean
  label: string
}

export function Chart({ lines, from, step, format, isWhole = false, label }: ChartProps): JSX.Element {
  const length = Math.max(2, ...lines.map(({ values }) => values.length))
  const most = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const ticks = niceTicks(most, isWhole ? 1 : 0)
  const top = ticks.highest
  const y = (value: number): number => HEIGHT - (value / top) * (HEIGHT - TOP)
  const at = crosshair.value
  const index = at === undefined ? undefined : Math.min(length - 1, Math.round(at * (length - 1)))
  const middle = Math.floor(length / 2)
  return (
    <svg
      class="chart"
      width="100%"
      height="136"
      role="img"
      aria-label={label}
      onPointerMove={(event) => {
        const box = event.currentTarget.getBoundingClientRect()
        const share = (event.clientX - box.left) / (box.width * (WIDTH / 100))
        crosshair.value = share > 1.02 ? undefined : Math.max(0, Math.min(1, share))
      }}
      onPointerLeave={() => (crosshair.value = undefined)}
    >
      {ticks.values.map((value) => (
        <line key={value} class="grid" x1="0" x2={`${WIDTH}%`} y1={y(value)} y2={y(value)} />
      ))}
      <svg width={`${WIDTH}%`} height={HEIGHT} viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none">
        {lines.map((line, key) => {
          const path = pathOf(line.values, length, y)
          return (
            <g key={key}>
              {line.area === true && path.area !== '' && <path class={`a-${line.tone}`} d={path.area} />}
              <path class={`l-${line.tone}`} d={path.line} />
            </g>
          )
        })}
      </svg>
      {ticks.values.map((value) => (
        <text key={value} x="100%" y={y(value) + 4} text-anchor="end">
          {format(value)}
        </text>
      ))}
      {index === undefined ? (
        <>
          <text x="0" y="134">
            {minuteOf(from)}
          </text>
          <text x={`${WIDTH / 2}%`} y="134" text-anchor="middle">
            {minuteOf(from + middle * step)}
          </text>
          <text x={`${WIDTH}%`} y="134" text-anchor="end">
            now
          </text>
        </>
      ) : (
        <Crosshair lines={lines} index={index} length={length} time={minuteOf(from + index * step)} format={format} />
      )}
    </svg>
  )
}

function Crosshair(props: {
  lines: readonly ChartLine[]
  index: number
  length: number
  time: string
  format: (value: number) => string
}): JSX.Element {
  const { lines, index, length, time, format } = props
  const x = `${(index / (length - 1)) * WIDTH}%`
  const values = lines.flatMap(({ values: all }) => (all[index] === undefined ? [] : [format(all[index])]))
  const anchor = index < length / 4 ? 'start' : index > (length * 3) / 4 ? 'end' : 'middle'
  return (
    <>
      <line class="cross" x1={x} x2={x} y1={TOP} y2={HEIGHT} />
      <text class="t-on" x={x} y="8" text-anchor={anchor}>
        {values.join(' · ')}
      </text>
      <text class="t-on" x={x} y="134" text-anchor={anchor}>
        {time}
      </text>
    </>
  )
}

function pathOf(
  values: readonly (number | undefined)[],
  length: number,
  y: (value: number) => number,
): { line: string; area: string } {
  let line = ''
  let area = ''
  let start: number | undefined
  const x = (index: number): number => Math.round((index / (length - 1)) * 10_000) / 10
  const close = (end: number): void => {
    if (start !== undefined) area += `L${x(end)} ${HEIGHT}L${x(start)} ${HEIGHT}Z`
    start = undefined
  }
  for (const [index, value] of values.entries()) {
    if (value === undefined) {
      close(index - 1)
      continue
    }
    const point = `${start === undefined ? 'M' : 'L'}${x(index)} ${Math.round(y(value) * 10) / 10}`
    start ??= index
    line += point
    area += point
  }
  close(values.length - 1)
  return { line, area }
}
