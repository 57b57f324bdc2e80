// Which flow calls under which limit, and which delivery posts to which endpoints. A flow that does neither has no link.
import type { JSX } from 'preact'

export interface LinkEnd {
  readonly tone: string
  /** The places of the flows that lead here. */
  readonly from: readonly number[]
}

const WIDTH = 74
const BEND = WIDTH / 2
const [THINNEST, THICKEST] = [2, 16]

export function Links(props: { height: number; weights: readonly number[]; ends: readonly LinkEnd[] }): JSX.Element {
  const { height, weights, ends } = props
  const most = Math.max(1, ...weights)
  const middle = (index: number, of: number): number => (height / of) * (index + 0.5)
  return (
    <svg class="ribbons" viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {ends.flatMap(({ tone, from }, index) =>
        from.map((flow) => {
          const [start, end] = [middle(flow, weights.length), middle(index, ends.length)]
          const share = Math.sqrt((weights[flow] ?? 0) / most)
          return (
            <path
              key={`${flow} ${index}`}
              class={`link ${tone}`}
              stroke-width={THINNEST + share * (THICKEST - THINNEST)}
              d={`M0 ${start}C${BEND} ${start} ${BEND} ${end} ${WIDTH} ${end}`}
            />
          )
        }),
      )}
    </svg>
  )
}
