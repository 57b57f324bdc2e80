// The batches of a lane before: why each closed, and where its time went. The page of a run shares the words.
import type { JSX } from 'preact'
import { Chip, Empty, Panel } from '../../components/basics.tsx'
import { percentText } from '../../lib/axis.ts'
import { duration, plural, when } from '../../lib/format.ts'
import { RUN_LOOKS } from '../../lib/states.ts'
import type { Attempt, ClosedBy, PastRun } from '../../lib/types.ts'

/** `closedText` says why a batch closed. */
export function closedText(by: ClosedBy | undefined): string {
  switch (by) {
    case 'quiet':
      return 'quiet period'
    case 'max':
      return 'latest time'
    case 'full':
      return 'full'
    case 'none':
      return 'no window'
    case 'early':
      return 'run now'
    case 'unknown':
    case undefined:
      return 'not known'
  }
}

export interface Span {
  readonly tone: 'wait' | 'ready' | 'run' | 'fail' | 'limit' | 'still'
  readonly word: string
  readonly from: number
  readonly to: number
}

interface Timed {
  readonly opened?: number
  readonly due?: number
  readonly started: number
  readonly ended: number
  readonly attempts: readonly Attempt[]
  readonly kind: PastRun['kind']
}

/** `spansOf` divides the life of a batch: its window, the time it was ready, its attempts, and the waits between them. */
export function spansOf(run: Timed): readonly Span[] {
  const spans: Span[] = []
  const { opened = run.started, started, ended, attempts } = run
  const due = Math.min(started, Math.max(opened, run.due ?? started))
  const add = (tone: Span['tone'], word: string, from: number, to: number): void => {
    if (to > from) spans.push({ tone, word, from, to })
  }
  add('wait', 'window', opened, due)
  add('ready', 'ready', due, started)
  let at = started
  for (const { at: failedAt, ms } of attempts) {
    const began = failedAt - ms
    if (began - at > 50) add('still', 'waited', at, began)
    add('fail', 'failed', Math.max(at, began), failedAt)
    at = failedAt
  }
  // A dead run ended with its last attempt.
  if (run.kind !== 'dead') add('run', 'run', at, ended)
  return spans
}

export function SpanBar({ spans, longest }: { spans: readonly Span[]; longest: number }): JSX.Element {
  const from = spans[0]?.from ?? 0
  const label = spans.map(({ word, from: began, to }) => `${word} ${duration(to - began)}`).join(', ')
  return (
    <svg class="pic mini" width="100%" height="16" role="img" aria-label={label}>
      {spans.map((span, index) => (
        <rect
          key={index}
          class={`u-${span.tone}`}
          x={percentText(((span.from - from) / longest) * 99)}
          width={percentText(Math.max(0.5, ((span.to - span.from) / longest) * 99))}
          y="3"
          height="10"
          rx="1.5"
        />
      ))}
    </svg>
  )
}

export function Batches({ runs, now }: { runs: readonly PastRun[]; now: number }): JSX.Element {
  const longest = Math.max(1, ...runs.map((run) => run.ended - (run.opened ?? run.started)))
  return (
    <Panel
      title="Batches before"
      remark="closed by"
      controls={
        <span class="row small wide-only">
          <span class="key-line block wait">window</span>
          <span class="key-line block ready">ready</span>
          <span class="key-line block run">run</span>
          <span class="key-line block fail">failed</span>
        </span>
      }
    >
      {runs.length === 0 ? (
        <Empty icon="runs" title="No run of this lane has ended yet." />
      ) : (
        <div class="scroll-x">
          <table class="tight batches">
            <thead class="unseen-head">
              <tr>
                <th scope="col">Ended</th>
                <th scope="col" class="num">
                  Events
                </th>
                <th scope="col">Closed by</th>
                <th scope="col" class="wide-only">
                  Where its time went
                </th>
                <th scope="col" class="num">
                  Took
                </th>
                <th scope="col">Ending</th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <tr key={run.id}>
                  <td class="mono">
                    <a href={`runs/${encodeURIComponent(run.id)}`}>{when(run.ended, now)}</a>
                  </td>
                  <td class="num">{run.events}</td>
                  <td class="soft">{closedText(run.closedBy)}</td>
                  <td class="w-bar wide-only">
                    <SpanBar spans={spansOf(run)} longest={longest} />
                  </td>
                  <td class="num soft">{duration(run.ended - (run.opened ?? run.started))}</td>
                  <td>
                    <Chip look={RUN_LOOKS[run.kind]} plain text={endingText(run)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}

function endingText({ kind, attempts }: PastRun): string {
  const { word } = RUN_LOOKS[kind]
  if (attempts.length === 0) return word
  return kind === 'dead'
    ? `${word} after ${plural(attempts.length, 'attempt')}`
    : `${word}, attempt ${attempts.length + 1}`
}
