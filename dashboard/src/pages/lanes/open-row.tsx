// A lane opened in place: why it waits, and what can be done.
import type { JSX } from 'preact'

import { Phrases } from '../../components/sentence.tsx'
import { sentenceOf } from '../../lib/lane-sentence.ts'
import type { FlowStatus, Lane } from '../../lib/types.ts'
import { mayOperate } from '../../state/session.ts'
import { LaneActButtons, type LaneActs } from '../lane/acts.tsx'

export { useLaneActs } from '../lane/acts.tsx'

interface OpenRowProps {
  lane: Lane
  at: number
  flow: FlowStatus | undefined
  acts: LaneActs
}

export function OpenRow({ lane, at, flow, acts }: OpenRowProps): JSX.Element {
  return (
    <div class="lane-open">
      <p>
        <Phrases of={sentenceOf(lane, at, flow)} />
      </p>
      <div class="btns" data-acts>
        {mayOperate.value && <LaneActButtons lane={lane} acts={acts} isSmall />}
        <a class="btn small-btn" href={`lanes/${lane.id}`}>
          Open <kbd aria-hidden="true">↵</kbd>
        </a>
      </div>
      {acts.dialog}
    </div>
  )
}
