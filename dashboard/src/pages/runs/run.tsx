// One ended run: its attempts side by side, and the anatomy of its batch.
import type { JSX } from 'preact'
import { Bones, Button, copy, Empty, Facts, Failure, Mono, Panel } from '../../components/basics.tsx'
import { Phrases, SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { address, post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { bytes, clockMs, duration, plural, shortId, visible, when } from '../../lib/format.ts'
import type { Phrase } from '../../lib/lane-sentence.ts'
import { linkTo } from '../../lib/routes.ts'
import { RUN_LOOKS } from '../../lib/states.ts'
import type { DeadLetter, EventItem, Page, Run } from '../../lib/types.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useResource } from '../../state/resource.ts'
import { go, place } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { act } from '../../state/toast.ts'
import { closedText, SpanBar, spansOf } from '../lane/batches.tsx'
import { AttemptTable } from './attempts.tsx'

export function RunPage(): JSX.Element {
  const id = place.value.id ?? ''
  const { data: run, error, refresh } = useResource<Run>(`v1/runs/${segment(id)}`)
  const isDead = run?.kind === 'dead'
  const letter = useResource<DeadLetter>(isDead ? `v1/dead-letters/${segment(id)}` : undefined, { every: 5_000 })
  useKeys({ c: () => void copy(id), r: () => void retry(), Escape: () => go('runs') })
  const mayRetry = letter.data?.state === 'dead' && mayOperate.value
  const retry = async (): Promise<void> => {
    if (!mayRetry || run === undefined) return
    const link = { to: `lanes/${run.lane}`, text: 'Follow' }
    if (
      await act(
        () => post(`dead-letters/${segment(id)}/retry`),
        'The dead letter is queued and runs next in its lane.',
        link,
      )
    )
      letter.refresh()
  }
  if (run === undefined) {
    return (
      <Frame title="Run" path={[{ text: 'Runs', to: 'runs' }]}>
        {error === undefined ? (
          <Bones rows={6} />
        ) : error.status === 404 ? (
          <Panel>
            <Empty icon="runs" title="There is no ended run with this id.">
              A live run is with its lane, and old runs are removed after their retention.
            </Empty>
          </Panel>
        ) : (
          <Failure error={error} onRetry={refresh} />
        )}
      </Frame>
    )
  }
  const now = second.value
  return (
    <Frame
      title={laneName(run)}
      remark={<Mono>{shortId(run.id, 8)}</Mono>}
      path={[
        { text: 'Runs', to: 'runs' },
        { text: visible(run.flow), to: linkTo('runs', { flow: run.flow }) },
      ]}
    >
      <section class="panel" aria-label="How it ended">
        <SentenceBar
          look={RUN_LOOKS[run.kind]}
          acts={
            <>
              {mayRetry && (
                <Button kind="solid" icon="s-retry" onClick={() => void retry()}>
                  Retry
                </Button>
              )}
              <a class="btn" href={`lanes/${run.lane}`}>
                Lane
              </a>
              {isDead && (
                <a class="btn" href={linkTo('dead-letters', { flow: run.flow, id: run.id })}>
                  Dead letter
                </a>
              )}
            </>
          }
        >
          <Phrases of={sentenceOf(run, letter.data?.state)} />
        </SentenceBar>
        <Anatomy run={run} />
        <footer>
          <Facts
            items={[
              ['Started', when(run.started, now)],
              ['Ended', when(run.ended, now)],
              run.lapses === 0 ? undefined : ['Lapses', String(run.lapses)],
              run.tenant === '' ? undefined : ['Tenant', visible(run.tenant)],
              run.parent === ''
                ? undefined
                : ['Rest of', <a href={`runs/${segment(run.parent)}`}>{shortId(run.parent)}</a>],
              ['Run', <Mono>{shortId(run.id)}</Mono>],
            ]}
          />
        </footer>
      </section>
      <div class={run.attempts.length > 0 ? 'cols half' : 'stack'}>
        {run.attempts.length > 0 && (
          <Panel title="Failed attempts" remark={remarkOf(run)}>
            <AttemptTable attempts={run.attempts} total={run.tries} />
          </Panel>
        )}
        <Batch run={run} />
      </div>
    </Frame>
  )
}

function remarkOf({ attempts, kind }: Run): string {
  const failed = plural(attempts.length, 'attempt')
  return kind === 'dead'
    ? `${failed}, and no more`
    : `${failed}; the next one ended as ${RUN_LOOKS[kind].word.toLowerCase()}`
}

const bold = (text: string): Phrase => ({ text })

function sentenceOf(run: Run, letter: DeadLetter['state'] | undefined): readonly Phrase[] {
  const events = bold(plural(run.events.length, 'event'))
  const length = bold(duration(run.ended - run.started))
  if (run.kind === 'dead') {
    const reason = run.reason === '' ? (run.attempts.at(-1)?.error ?? '') : run.reason
    const shown = reason.length > 160 ? `${reason.slice(0, 160)}…` : reason
    return [
      'Became a dead letter after ',
      { text: plural(Math.max(1, run.attempts.length), 'attempt'), tone: 'fail' },
      shown === '' ? '' : `: ${visible(shown)}`,
      '. ',
      ...(letter === 'queued'
        ? ['It was retried and runs next.']
        : [events, run.events.length === 1 ? ' waits in it.' : ' wait in it.']),
    ]
  }
  const reason = run.reason === '' ? '' : `: ${visible(run.reason)}`
  if (run.kind === 'done') {
    const attempts = run.attempts.length + 1
    return [
      'Handled ',
      events,
      ' in ',
      length,
      attempts === 1 ? ', at the first attempt.' : `, at attempt ${attempts}.`,
    ]
  }
  return [`${RUN_LOOKS[run.kind].word} after `, length, ' with ', events, `${reason}.`]
}

/** Where the time of the batch went, from its first event to the end. */
function Anatomy({ run }: { run: Run }): JSX.Element {
  const spans = spansOf(run)
  const from = spans[0]?.from ?? run.started
  const longest = Math.max(1, run.ended - from)
  return (
    <div class="anatomy">
      <SpanBar spans={spans} longest={longest} />
      <ul>
        {spans
          .filter(({ from: begun, to }) => to - begun >= longest / 1_000)
          .slice(0, 12)
          .map(({ tone, word, from: begun, to }, index) => (
            <li key={index}>
              <span class={`key-line block ${tone}`}>{word}</span> <b>{duration(to - begun)}</b>
            </li>
          ))}
      </ul>
    </div>
  )
}

const MOST = 100
const SLACK = 60_000

/** Which events joined, and why the window closed. */
function Batch({ run }: { run: Run }): JSX.Element {
  const isShort = run.events.length <= MOST
  // Both times come from the ids of the events, which may be older than their arrival.
  const range =
    run.opened === undefined || run.latest === undefined ? {} : { from: run.opened - SLACK, to: run.latest + SLACK }
  const page = useResource<Page<EventItem>>(address('events', { flow: run.flow, key: run.key, ...range, limit: MOST }))
  const known = new Map(page.data?.items.map((item) => [item.id, item]))
  const first = run.opened ?? known.get(run.events[0] ?? '')?.arrived
  return (
    <Panel title="The batch" remark={`${plural(run.events.length, 'event')}, closed by: ${closedText(run.closedBy)}`}>
      <div class="pad small soft">{closedSentence(run)}</div>
      <table class="tight">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Number</span>
            </th>
            <th scope="col">Event</th>
            <th scope="col" class="wide-only">
              Arrived
            </th>
            <th scope="col" class="num">
              After the first
            </th>
            <th scope="col" class="num wide-only">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {run.events.slice(0, MOST).map((id, index) => {
            const item = known.get(id)
            return (
              <tr key={id}>
                <td>
                  <span class="drop-number">{index + 1}</span>
                </td>
                <td class="cut">
                  <a href={`events/${segment(id)}`}>{item === undefined ? <Mono>{id}</Mono> : visible(item.type)}</a>
                  {item !== undefined && item.subject !== '' && <span class="sub cut">{visible(item.subject)}</span>}
                </td>
                <td class="mono wide-only">{item === undefined ? '–' : clockMs(item.arrived)}</td>
                <td class="num soft">
                  {item === undefined || first === undefined ? '–' : `+${duration(item.arrived - first)}`}
                </td>
                <td class="num soft wide-only">{item === undefined ? '–' : bytes(item.bytes)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {!isShort && (
        <footer>
          The first {MOST} of {run.events.length} events are shown.
        </footer>
      )}
    </Panel>
  )
}

function closedSentence({ closedBy, opened, latest, due, events }: Run): string {
  const window =
    opened === undefined || due === undefined ? '' : ` The window was open for ${duration(Math.max(0, due - opened))}.`
  const quiet = latest === undefined || due === undefined ? '' : duration(Math.max(0, due - latest))
  switch (closedBy) {
    case 'quiet':
      return `No further event arrived for ${quiet || 'the quiet period'}, so the window closed.${window}`
    case 'max':
      return `Events kept arriving until the latest time of the window.${window}`
    case 'full':
      return `The batch was full with ${plural(events.length, 'event')}, so it was due at once.${window}`
    case 'none':
      return 'The flow has no window: an event is due as soon as it arrives.'
    case 'early':
      return `Somebody ran the lane before its window closed.${window}`
    case 'unknown':
    case undefined:
    default:
      return 'Why the window closed is not known for this run.'
  }
}
