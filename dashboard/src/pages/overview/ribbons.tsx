// What enters flows together into one store, and out of it to what is next. The picture shows amounts, not single paths.
import type { JSX } from 'preact'

export interface RibbonEnd {
  readonly weight: number
  readonly tone: string
}

const WIDTH = 74
const MIDDLE = WIDTH / 2
/** The share of the height that the trunk in the middle takes. */
const TRUNK = 0.3
const THINNEST = 2

export function Ribbons(props: {
  height: number
  left: readonly RibbonEnd[]
  right: readonly RibbonEnd[]
}): JSX.Element {
  const { height, left, right } = props
  const paths = [...half(left, height, 0), ...half(right, height, WIDTH)]
  return (
    <svg class="ribbons" viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {paths.map(({ tone, d }, index) => (
        <path key={index} class={tone} d={d} />
      ))}
    </svg>
  )
}

/** One side: each end is a band that joins its share of the trunk. */
function half(ends: readonly RibbonEnd[], height: number, x: number): { tone: string; d: string }[] {
  const total = ends.reduce((sum, { weight }) => sum + weight, 0)
  if (total === 0) return []
  const bend = (x + MIDDLE) / 2
  const trunk = height * TRUNK
  let y = height / 2 - trunk / 2
  return ends.map(({ weight, tone }, index) => {
    const share = (weight / total) * trunk
    const thick = weight === 0 ? 0 : Math.max(THINNEST, Math.min(share, (height / ends.length) * 0.7))
    const middle = (height / ends.length) * (index + 0.5)
    const [top, bottom] = [middle - thick / 2, middle + thick / 2]
    const [from, to] = [y, y + share]
    y = to
    if (weight === 0) return { tone, d: '' }
    return {
      tone,
      d: `M${x} ${top}C${bend} ${top} ${bend} ${from} ${MIDDLE} ${from}V${to}C${bend} ${to} ${bend} ${bottom} ${x} ${bottom}Z`,
    }
  })
}
