// One lane: why it waits, what happens next, and what came before.
import type { JSX } from 'preact'
import { Bones, copy, Empty, Failure, Facts, Mono, Panel } from '../../components/basics.tsx'
import { Phrases, SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { Steps } from '../../components/steps.tsx'
import { segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { bytes, clockMs, duration, plural, shortId, visible } from '../../lib/format.ts'
import { sentenceOf } from '../../lib/lane-sentence.ts'
import { linkTo } from '../../lib/routes.ts'
import { LANE_LOOKS, shownState } from '../../lib/states.ts'
import type { Explanation, LaneDetail } from '../../lib/types.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { go, place } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { status } from '../../state/status.ts'
import { LaneActButtons, useLaneActs } from './acts.tsx'
import { Batches } from './batches.tsx'
import { BigPicture } from './big-picture.tsx'
import { nextSteps } from './next-steps.ts'

export function LanePage(): JSX.Element {
  const id = place.value.id ?? ''
  const path = `v1/lanes/${segment(id)}`
  const lane = useResource<LaneDetail>(path, { every: 2_000 })
  const explanation = useResource<Explanation>(`${path}/explain`, { every: 3_000 })
  useLive((change) => change.lane === id || change.lanes?.some((one) => one.lane === id) === true, lane.refresh)
  const { data, error } = lane
  const acts = useLaneActs(data, lane.refresh)
  useKeys({ r: acts.runNow, h: acts.hold, c: () => void copy(id), Escape: () => go('lanes') })
  if (data === undefined || error?.status === 404) {
    return (
      <Frame title={data === undefined ? 'Lane' : laneName(data)} path={[{ text: 'Lanes', to: 'lanes' }]}>
        {error === undefined ? (
          <Bones rows={6} />
        ) : error.status === 404 ? (
          <Gone lane={data} id={id} />
        ) : (
          <Failure error={error} onRetry={lane.refresh} />
        )}
      </Frame>
    )
  }
  const at = second.value
  const flow = status.value?.flows.find((one) => one.flow === data.flow)
  const look = LANE_LOOKS[shownState(data)]
  return (
    <Frame
      title={laneName(data)}
      path={[
        { text: 'Lanes', to: 'lanes' },
        { text: visible(data.flow), to: linkTo('lanes', { flow: data.flow }) },
      ]}
    >
      {error !== undefined && <Failure error={error} onRetry={lane.refresh} />}
      <section class="panel" aria-label="Why it waits">
        <SentenceBar look={look} acts={mayOperate.value ? <LaneActButtons lane={data} acts={acts} /> : undefined}>
          <Phrases of={sentenceOf(data, at, flow)} />
        </SentenceBar>
        <BigPicture lane={data} />
        <footer>
          <Facts items={factsOf(data)} />
        </footer>
      </section>
      <div class="cols lane-cols">
        <div class="stack">
          <Panel title="What happens next">
            <Steps steps={nextSteps(data, at, flow)} />
          </Panel>
          {explanation.data !== undefined && (
            <Panel title="In full" remark="as sluice explain says it">
              <p class="pad soft explain">{explanation.data.text}</p>
            </Panel>
          )}
        </div>
        <div class="stack">
          <Waiting lane={data} />
          <Batches runs={data.lastRuns ?? []} now={at} />
        </div>
      </div>
      {acts.dialog}
    </Frame>
  )
}

function factsOf(lane: LaneDetail): readonly (readonly [string, JSX.Element | string] | undefined)[] {
  const { flowOptions: options, slots } = lane
  return [
    options === undefined ? undefined : ['Window', options.windowText],
    options?.whileRunning === undefined ? undefined : ['While it runs', options.whileRunning],
    slots === undefined ? undefined : ['Permits', `${slots.used} of ${slots.of} taken`],
    options === undefined ? undefined : ['Attempts', String(options.attempts)],
    options?.timeoutMs === undefined ? undefined : ['Timeout', duration(options.timeoutMs)],
    lane.tenant === '' ? undefined : ['Tenant', visible(lane.tenant)],
    ['Lane', <Mono>{shortId(lane.id)}</Mono>],
  ]
}

const MOST_EVENTS = 100

function Waiting({ lane }: { lane: LaneDetail }): JSX.Element {
  const events = lane.events ?? []
  const inRun = events.filter((event) => event.inRun)
  const waiting = events.filter((event) => !event.inRun)
  const quiet = lane.flowOptions?.window?.quiet
  return (
    <>
      {inRun.length > 0 && (
        <EventTable title="In this run" events={inRun} total={lane.run?.events ?? inRun.length} quiet={undefined} />
      )}
      {(waiting.length > 0 || inRun.length === 0) && (
        <EventTable
          title={inRun.length > 0 ? 'In the next batch' : 'In this batch'}
          events={waiting}
          total={lane.waiting}
          quiet={quiet}
        />
      )}
    </>
  )
}

type Row = NonNullable<LaneDetail['events']>[number]

function EventTable(props: {
  title: string
  events: readonly Row[]
  total: number
  quiet: number | undefined
}): JSX.Element {
  const { title, events, total, quiet } = props
  const size = events.reduce((sum, event) => sum + event.bytes, 0)
  return (
    <Panel title={title} remark={`${plural(total, 'event')}, ${bytes(size)}`}>
      {events.length === 0 ? (
        <Empty icon="events" title="No event waits." />
      ) : (
        <table class="tight">
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">Number</span>
              </th>
              <th scope="col" class="wide-only">
                Arrived
              </th>
              <th scope="col">Type</th>
              <th scope="col" class="wide-only">
                Subject
              </th>
              <th scope="col" class="num">
                {quiet === undefined ? 'Size' : 'Gate'}
              </th>
            </tr>
          </thead>
          <tbody>
            {events.map((event, index) => (
              <tr key={event.id}>
                <td>
                  <span class="drop-number">{index + 1}</span>
                </td>
                <td class="mono wide-only">{clockMs(event.at)}</td>
                <td class="cut">
                  <a href={`events/${segment(event.id)}`}>{visible(event.type)}</a>
                </td>
                <td class="soft cut wide-only">{event.subject === '' ? '–' : visible(event.subject)}</td>
                <td class={`num${quiet !== undefined && index > 0 ? ' c-wait' : ' dim'}`}>
                  {quiet === undefined ? bytes(event.bytes) : pushText(events, index, quiet)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {total > events.length && events.length >= MOST_EVENTS && (
        <footer>
          The first {MOST_EVENTS} are shown; {plural(total - events.length, 'more event')} wait.
        </footer>
      )}
    </Panel>
  )
}

/** How far an event pushed the gate. */
function pushText(events: readonly Row[], index: number, quiet: number): string {
  const [event, before] = [events[index], events[index - 1]]
  if (event === undefined) return ''
  return before === undefined ? `set to ${duration(quiet)} later` : `+${duration(event.at - before.at)}`
}

function Gone({ lane, id }: { lane: LaneDetail | undefined; id: string }): JSX.Element {
  return (
    <Panel>
      <Empty icon="lanes" title="This lane holds no event any more.">
        Its events have run, or were dropped. A new event with the same key opens it again.{' '}
        <a class="link" href={linkTo('runs', { lane: id })}>
          Runs of this lane
        </a>
        {lane !== undefined && (
          <>
            {' '}
            <a class="link" href={linkTo('lanes', { flow: lane.flow })}>
              Lanes of {visible(lane.flow)}
            </a>
          </>
        )}
      </Empty>
    </Panel>
  )
}
