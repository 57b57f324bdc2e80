import type { JSX } from 'preact'

const FLOOR = 175

/** A lane as an example: three events, the gate, and the latest time it may move to. */
export function HowToRead(): JSX.Element {
  return (
    <svg
      class="pic"
      width="100%"
      height="242"
      role="img"
      aria-label="A lane collects events. Each event raises the water. The gate opens 2 seconds after the last event, and at the latest 10 seconds after the first. Then one run takes all of them."
    >
      <rect class="was" width="35.7%" height="242" />
      {['−4 s', '−2 s', '', '+2 s', '+4 s', '+6 s', '+8 s'].map((text, index) =>
        text === '' ? null : (
          <g key={text}>
            <line class="grid" x1={`${index * 14.28 + 7.14}%`} x2={`${index * 14.28 + 7.14}%`} y1="24" y2={FLOOR} />
            <text class="t-dim" x={`${index * 14.28 + 7.14}%`} y="18" text-anchor="middle">
              {text}
            </text>
          </g>
        ),
      )}
      <line class="bed" x1="0" x2="100%" y1={FLOOR} y2={FLOOR} />
      <Water from={8.6} to={21.4} height={28} below={0} />
      <Water from={21.4} to={31.4} height={56} below={28} />
      <Water from={31.4} to={35.7} height={83} below={56} />
      <rect class="water to-come" x="35.7%" width="10%" y={FLOOR - 83} height="83" />
      <line class="surface to-come" x1="35.7%" x2="45.7%" y1={FLOOR - 83} y2={FLOOR - 83} />
      {[8.6, 21.4, 31.4].map((x, index) => (
        <circle key={x} class="drop big" cx={`${x}%`} cy={FLOOR - (index === 2 ? 83 : (index + 1) * 28)} r="6.5" />
      ))}
      <rect class="slide" x="45.7%" width="34.3%" y={FLOOR - 26} height="26" />
      <rect class="gate" x="45.7%" y="48" width="7" height={FLOOR - 48} rx="2" transform="translate(-3.5 0)" />
      <rect class="gate" x="45.7%" y="46" width="26" height="6" rx="3" transform="translate(-13 0)" />
      <text class="t-wait gate-time" x="45.7%" dx="16" y="70">
        1.4 s
      </text>
      <rect class="cap" x="80%" y="92" width="3" height={FLOOR - 92} transform="translate(-1.5 0)" />
      <rect class="cap" x="80%" y="91" width="16" height="3.5" rx="1.75" transform="translate(-8 0)" />
      <rect class="maybe run" x="50.7%" width="14.3%" y="92" height="48" rx="4" />
      <text class="t-run t-strong" x="57.85%" y="113" text-anchor="middle">
        4 One run
      </text>
      <text class="t-run" x="57.85%" y="129" text-anchor="middle">
        with all of them
      </text>
      <line class="now" x1="35.7%" x2="35.7%" y1="24" y2="242" />
      <rect class="now-pill" x="35.7%" y="5" width="46" height="20" rx="10" transform="translate(-23 0)" />
      <text class="now-text" x="35.7%" y="19" text-anchor="middle">
        now
      </text>
      <Caption x={17.8} title="1 Events join" text="each raises the water" />
      <Caption x={45.7} title="2 The gate" text="opens 2 s after the last event" />
      <Caption x={80} title="3 The cap" text="10 s after the first event" />
    </svg>
  )
}

function Water({ from, to, height, below }: { from: number; to: number; height: number; below: number }): JSX.Element {
  return (
    <>
      <rect class="water" x={`${from}%`} width={`${to - from}%`} y={FLOOR - height} height={height} />
      <line class="surface" x1={`${from}%`} x2={`${to}%`} y1={FLOOR - height} y2={FLOOR - height} />
      <line class="surface" x1={`${from}%`} x2={`${from}%`} y1={FLOOR - below} y2={FLOOR - height} />
    </>
  )
}

function Caption({ x, title, text }: { x: number; title: string; text: string }): JSX.Element {
  return (
    <>
      <text class="t-strong" x={`${x}%`} y="201" text-anchor="middle">
        {title}
      </text>
      <text x={`${x}%`} y="217" text-anchor="middle">
        {text}
      </text>
    </>
  )
}
