// One event: where it is, what became of it, what was in it.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Bones, Button, copy, Empty, Facts, Failure, Mono, Panel } from '../../components/basics.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Phrases, SentenceBar } from '../../components/sentence.tsx'
import { Frame } from '../../components/shell.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { bytes, clockMs, dateOf, plural, visible, when } from '../../lib/format.ts'
import { linkTo } from '../../lib/routes.ts'
import type { EventDetail } from '../../lib/types.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { go, place } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { act } from '../../state/toast.ts'
import { AttemptTable } from '../runs/attempts.tsx'
import { curlOf, fixtureOf } from './copies.ts'
import { Life } from './life.tsx'
import { livesOf, summaryOf, type LaneLife } from './outcome.ts'
import { Payload } from './payload.tsx'

export function EventPage(): JSX.Element {
  const id = place.value.id ?? ''
  const { data: event, error, refresh } = useResource<EventDetail>(`v1/events/${segment(id)}`, { every: 3_000 })
  const [isReplaying, setReplaying] = useState(false)
  useLive(({ lane, id: changed }) => changed === id || event?.lanes.some((one) => one.id === lane) === true, refresh)
  useKeys({ c: () => void copy(id), r: () => mayOperate.value && setReplaying(true), Escape: () => go('events') })
  if (event === undefined) {
    return (
      <Frame title="Event" path={[{ text: 'Events', to: 'events' }]}>
        {error === undefined ? (
          <Bones rows={8} />
        ) : error.status === 404 ? (
          <Panel>
            <Empty icon="events" title="There is no such event.">
              It was never stored, or its retention is over. <a href={linkTo('events', { q: id })}>Search for it</a>
            </Empty>
          </Panel>
        ) : (
          <Failure error={error} onRetry={refresh} />
        )}
      </Frame>
    )
  }
  const now = second.value
  const lives = livesOf(event, now)
  const summary = summaryOf(event, lives, now)
  const flows = [...new Set(lives.map(({ flow }) => flow))]
  return (
    <Frame title={visible(event.type)} remark={<Mono>{event.id}</Mono>} path={[{ text: 'Events', to: 'events' }]}>
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      <section class="panel" aria-label="What became of it">
        <SentenceBar
          look={summary.look}
          word={summary.word}
          acts={
            <>
              {mayOperate.value && !event.purged && (
                <Button kind="solid" icon="replays" onClick={() => setReplaying(true)}>
                  Replay…
                </Button>
              )}
              <Button icon="copy" onClick={() => void copy(curlOf(event, globalThis.location.origin))}>
                Copy as curl
              </Button>
              <Button icon="copy" onClick={() => void copy(fixtureOf(event))}>
                Copy as test fixture
              </Button>
            </>
          }
        >
          <Phrases of={summary.sentence} />
        </SentenceBar>
        <footer>
          <Facts items={factsOf(event, now)} />
        </footer>
      </section>
      <Life event={event} lives={lives} />
      <div class="cols event-cols">
        <Payload event={event} />
        <div class="stack">
          <Attempts lives={lives} />
          <Deliveries event={event} />
        </div>
      </div>
      {isReplaying && <ReplayDialog event={event} flows={flows} onClose={() => setReplaying(false)} onDone={refresh} />}
    </Frame>
  )
}

function factsOf(event: EventDetail, now: number): readonly (readonly [string, JSX.Element | string] | undefined)[] {
  const { subject, tenant, request, keptUntil } = event
  return [
    ['Source', <a href={linkTo('events', { source: event.source })}>{visible(event.source)}</a>],
    subject === '' ? undefined : ['Subject', <a href={linkTo('events', { subject })}>{visible(subject)}</a>],
    tenant === '' ? undefined : ['Tenant', <a href={linkTo('events', { tenant })}>{visible(tenant)}</a>],
    ['Made', when(event.time, now)],
    ['Arrived', now - event.arrived < 86_400_000 ? clockMs(event.arrived) : when(event.arrived, now)],
    ['Body', bytes(event.bytes)],
    request === undefined ? undefined : ['From', <Mono>{request.address}</Mono>],
    event.duplicates === 0 ? undefined : ['Sent again', plural(event.duplicates, 'time')],
    keptUntil === undefined ? undefined : ['Kept until', dateOf(keptUntil)],
  ]
}

/** The attempts of the lane that needs somebody: one that fails now, else the last that failed. */
function Attempts({ lives }: { lives: readonly LaneLife[] }): JSX.Element | null {
  const failing = lives.filter(({ attempts }) => attempts.length > 0)
  const shown =
    failing.find(({ state }) => state === 'open') ?? failing.find(({ state }) => state === 'dead') ?? failing[0]
  if (shown === undefined) return null
  return (
    <Panel
      title={shown.state === 'open' ? 'What it waits behind' : 'Failed attempts'}
      remark={`${plural(shown.attempts.length, 'attempt')} in ${visible(shown.flow)}`}
      controls={
        <a
          class="btn small-btn"
          href={shown.run === undefined ? `lanes/${shown.id}` : `runs/${encodeURIComponent(shown.run)}`}
        >
          {shown.run === undefined ? 'Lane' : 'Run'}
        </a>
      }
    >
      <AttemptTable attempts={shown.attempts} />
    </Panel>
  )
}

function Deliveries({ event }: { event: EventDetail }): JSX.Element | null {
  const { deliveries = [] } = event
  if (deliveries.length === 0) return null
  return (
    <Panel title="Deliveries" remark={plural(deliveries.length, 'endpoint')}>
      <table class="tight">
        <thead>
          <tr>
            <th scope="col">Endpoint</th>
            <th scope="col">Status</th>
            <th scope="col">Last answer</th>
          </tr>
        </thead>
        <tbody>
          {deliveries.map(({ endpoint, name, status, attempts }) => {
            const last = attempts.at(-1)
            return (
              <tr key={endpoint}>
                <td class="cut">
                  <a href={`endpoints/${segment(endpoint)}`}>{visible(name === '' ? endpoint : name)}</a>
                </td>
                <td class={status === 'SUCCESS' ? 'c-run' : status === 'FAILED' ? 'c-fail' : 'c-wait'}>
                  {DELIVERY_WORDS[status] ?? status}
                </td>
                <td class="soft cut">
                  {last === undefined ? '–' : last.status === undefined ? visible(last.error) : `HTTP ${last.status}`}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </Panel>
  )
}

const DELIVERY_WORDS: Readonly<Record<string, string>> = {
  PENDING: 'waits',
  DELIVERING: 'on its way',
  SUCCESS: 'delivered',
  FAILED: 'failed',
}

function ReplayDialog(props: {
  event: EventDetail
  flows: readonly string[]
  onClose: () => void
  onDone: () => void
}): JSX.Element {
  const { event, flows, onClose, onDone } = props
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(flows))
  const toggle = (flow: string): void => {
    const next = new Set(chosen)
    if (!next.delete(flow)) next.add(flow)
    setChosen(next)
  }
  const replay = async (): Promise<void> => {
    const isAll = chosen.size === flows.length
    const body = isAll ? {} : { into: [...chosen] }
    const text = `The event is placed again in ${isAll ? 'all flows that take it' : plural(chosen.size, 'flow')}.`
    if (await act(() => post(`events/${segment(event.id)}/replay`, body), text)) {
      onClose()
      onDone()
    }
  }
  return (
    <Dialog title="Replay this event" onClose={onClose}>
      <p class="soft">
        The event keeps its id and enters the same lanes again, behind live events and without a window. Its handlers
        run again, so they must bear that.
      </p>
      {flows.length > 1 && (
        <fieldset class="choices">
          <legend class="small dim">Into</legend>
          {flows.map((flow) => (
            <label key={flow} class="row">
              <input type="checkbox" class="check" checked={chosen.has(flow)} onChange={() => toggle(flow)} />
              {visible(flow)}
            </label>
          ))}
        </fieldset>
      )}
      <div class="btns end">
        <Button kind="bare" onClick={onClose}>
          Cancel
        </Button>
        <Button kind="solid" disabled={flows.length > 0 && chosen.size === 0} onClick={() => void replay()}>
          Replay 1 event
        </Button>
      </div>
    </Dialog>
  )
}
