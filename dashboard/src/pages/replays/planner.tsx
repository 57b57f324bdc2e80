// Plans a replay: which events, into which flows, how fast. The right side says what will happen before anything does.
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { Bones, Button, Code, Failure, Field, Note, Panel, Select } from '../../components/basics.tsx'
import { Icon } from '../../components/icon.tsx'
import { Frame } from '../../components/shell.tsx'
import { address, post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, countdown, dateOf, plural, visible, when } from '../../lib/format.ts'
import type { EventHistogram, Page, Replay, ReplayPlan, Source } from '../../lib/types.ts'
import { useResource } from '../../state/resource.ts'
import { go, place, setQuery } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { status } from '../../state/status.ts'
import { sayFailed } from '../../state/toast.ts'
import { bodyOf, commandOf, DEFAULT_RATE, planOf, type Plan } from './plan.ts'
import { RangeChart } from './range-chart.tsx'

/** How many of the oldest events a try runs. */
const TRIED = 10
const RATES = [1, 5, 10, 25, 50, 100, 250, 500, 1_000] as const

function change(values: Readonly<Record<string, string | undefined>>): void {
  setQuery(values, { replace: true })
}

export function Planner(): JSX.Element {
  const plan = planOf(place.value.query)
  const { filter, into } = plan
  const query = { ...filter, ...(into.length > 0 && { into: into.join(',') }) }
  const planned = useResource<ReplayPlan>(address('replays/plan', query), { every: 15_000 })
  return (
    <Frame title="Plan a replay" path={[{ text: 'Replays', to: 'replays' }]}>
      <div class="cols side-right plan-cols">
        <div class="stack">
          <Which plan={plan} />
          <Into plan={plan} planned={planned.data} />
          <HowFast plan={plan} />
        </div>
        <Panel title="What will happen" remark="nothing has begun">
          {planned.data === undefined ? (
            planned.error === undefined ? (
              <Bones rows={6} />
            ) : (
              <Failure error={planned.error} onRetry={planned.refresh} />
            )
          ) : (
            <Preview plan={plan} planned={planned.data} isStale={planned.isStale} />
          )}
        </Panel>
      </div>
    </Frame>
  )
}

function StepNumber({ n }: { n: number }): JSX.Element {
  return (
    <span class="step-number" aria-hidden="true">
      {n}
    </span>
  )
}

function Which({ plan }: { plan: Plan }): JSX.Element {
  const { source = '', type = '', tenant = '', subject = '', flow = '', key = '', event = '', from, to } = plan.filter
  const sources = useResource<Page<Source>>('v1/sources')
  const histogram = useResource<EventHistogram>(
    address('events/histogram', { source, type, tenant, subject, ...(key !== '' && { flow, key }), step: '30m' }),
    { every: 30_000 },
  )
  const names = new Set([...(sources.data?.items.map(({ name }) => name) ?? []), ...(source === '' ? [] : [source])])
  return (
    <Panel
      title={
        <>
          <StepNumber n={1} /> Which events
        </>
      }
      label="Which events"
    >
      <div class="pad stack plan-part">
        <div class="filters">
          <Select
            label="Source"
            value={source}
            options={[{ value: '', text: 'any' }, ...[...names].map((value) => ({ value, text: visible(value) }))]}
            onChange={(value) => change({ source: value })}
          />
          <Field label="Type" value={type} onChange={(value) => change({ type: value })} />
          <Field label="Tenant" value={tenant} onChange={(value) => change({ tenant: value })} />
          <Field label="Subject" value={subject} onChange={(value) => change({ subject: value })} />
          {(event !== '' || key !== '') && (
            <span class="row">
              <span class="tag cut">{event === '' ? `lane ${visible(flow)} / ${visible(key)}` : `event ${event}`}</span>
              <button
                type="button"
                class="link small"
                onClick={() => change({ event: undefined, flow: undefined, key: undefined })}
              >
                Clear
              </button>
            </span>
          )}
        </div>
        {histogram.data !== undefined && event === '' && (
          <RangeChart
            data={histogram.data}
            from={from === undefined ? undefined : Number(from)}
            to={to === undefined ? undefined : Number(to)}
            onChoose={(start, end) => change({ from: String(start), to: String(end) })}
          />
        )}
        <div class="form-cols form">
          <Moment label="Arrived from" value={from} onChange={(value) => change({ from: value })} />
          <Moment label="until" value={to} onChange={(value) => change({ to: value })} />
        </div>
        <p class="small dim">Drag over the picture to choose a range. Without a time, all stored events are read.</p>
      </div>
    </Panel>
  )
}

function Moment(props: {
  label: string
  value: string | undefined
  onChange: (value: string | undefined) => void
}): JSX.Element {
  const { label, value, onChange } = props
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        value={value === undefined ? '' : localText(Number(value))}
        onChange={({ currentTarget: { value: text } }) =>
          onChange(text === '' ? undefined : String(new Date(text).getTime()))
        }
      />
    </label>
  )
}

/** The text that a `datetime-local` field takes, in the time zone of the reader. */
function localText(at: number): string {
  if (Number.isNaN(at)) return ''
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * 60_000)
  return shifted.toISOString().slice(0, 16)
}

function Into({ plan, planned }: { plan: Plan; planned: ReplayPlan | undefined }): JSX.Element {
  const byFlow = new Map(planned?.flows?.map((one) => [one.flow, one]))
  const flows = [...new Set([...(status.value?.flows.map(({ flow }) => flow) ?? []), ...byFlow.keys(), ...plan.into])]
  const toggle = (flow: string): void => {
    const next = new Set(plan.into)
    if (!next.delete(flow)) next.add(flow)
    change({ into: [...next].join(',') })
  }
  return (
    <Panel
      title={
        <>
          <StepNumber n={2} /> Into which flows
        </>
      }
      label="Into which flows"
      remark="as they are now; none chosen: all that want them"
    >
      <table class="tight into-table">
        <thead class="unseen-head">
          <tr>
            <th scope="col">
              <span class="unseen">Choose</span>
            </th>
            <th scope="col">Flow</th>
            <th scope="col">What happens in it</th>
          </tr>
        </thead>
        <tbody>
          {flows.map((flow) => (
            <tr key={flow}>
              <td class="mark-cell">
                <input
                  type="checkbox"
                  class="check"
                  aria-label={`Only into chosen flows: ${visible(flow)}`}
                  checked={plan.into.includes(flow)}
                  onChange={() => toggle(flow)}
                />
              </td>
              <td class="cut">
                <b class="type">{visible(flow)}</b>
              </td>
              <td class="soft">{flowText(byFlow.get(flow))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  )
}

function flowText(flow: NonNullable<ReplayPlan['flows']>[number] | undefined): string {
  if (flow === undefined) return ''
  const { placed, skipped, unwanted, failed, lanes } = flow
  const parts = [
    placed === 0 ? '' : `about ${plural(placed, 'event')} in ${plural(lanes, 'lane')}`,
    skipped === 0 ? '' : `${count(skipped)} without a key`,
    failed === 0 ? '' : `${count(failed)} fail in its key function`,
  ].filter((part) => part !== '')
  if (parts.length > 0) return parts.join(', ')
  return unwanted > 0 ? 'wants none of them' : ''
}

function setRate(rate: number): void {
  change({ rate: rate === DEFAULT_RATE ? undefined : String(rate) })
}

function HowFast({ plan }: { plan: Plan }): JSX.Element {
  const nearest = RATES.findLastIndex((rate) => rate <= plan.rate)
  return (
    <Panel
      title={
        <>
          <StepNumber n={3} /> How fast
        </>
      }
      label="How fast"
      remark="live events go first"
    >
      <div class="pad pace">
        <label class="field">
          <input
            type="number"
            min="1"
            max="1000000"
            aria-label="Events a second"
            value={plan.rate}
            onChange={(event) => setRate(Math.max(1, Math.round(Number(event.currentTarget.value)) || DEFAULT_RATE))}
          />
          <span class="dim">a second</span>
        </label>
        <input
          type="range"
          min="0"
          max={RATES.length - 1}
          step="1"
          aria-label="Pace"
          aria-valuetext={`${count(plan.rate)} a second`}
          value={Math.max(0, nearest)}
          onInput={(event) => setRate(RATES[Number(event.currentTarget.value)] ?? DEFAULT_RATE)}
        />
      </div>
    </Panel>
  )
}

function Preview({ plan, planned, isStale }: { plan: Plan; planned: ReplayPlan; isStale: boolean }): JSX.Element {
  const now = second.value
  const [isBusy, setBusy] = useState(false)
  // The same plan started twice by mistake is one replay.
  const id = useMemo(
    () => `dashboard-${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`}`,
    [JSON.stringify(plan)],
  )
  const total = planned.count
  const ms = (total / plan.rate) * 1_000
  const start = async (most?: number): Promise<void> => {
    setBusy(true)
    try {
      const replay = await post<Replay>('replays', bodyOf(plan, most === undefined ? id : `${id}-try`, most))
      go(`replays/${segment(replay.id)}`)
    } catch (error) {
      setBusy(false)
      sayFailed(error)
    }
  }
  const isEverything = Object.keys(plan.filter).length === 0
  return (
    <div class={`pad stack preview${isStale ? ' stale' : ''}`}>
      <p class="plan-count">
        {planned.exact === false && 'at least '}
        <b>{count(total)}</b> events, oldest first
      </p>
      <p class="soft">{wanted(planned)}They keep their ids, times and bytes, and wait for no window.</p>
      {total > 0 && (
        <p>
          At {count(plan.rate)} a second it is done in about <b>{countdown(Math.max(1_000, ms))}</b>, at about{' '}
          <b>{when(now + ms, now)}</b>.
        </p>
      )}
      {isEverything && total > 0 && (
        <Note tone="ready" icon="s-warn">
          <b>No filter is set.</b> The replay reads every stored event.
        </Note>
      )}
      <ul class="checks">
        {planned.oldest !== undefined && (
          <li>
            <Icon name="check" size={14} tone="run" />
            <span>
              The oldest is of {dateOf(planned.oldest)}
              {planned.newest !== undefined &&
                dateOf(planned.newest) !== dateOf(planned.oldest) &&
                `, the newest of ${dateOf(planned.newest)}`}
            </span>
          </li>
        )}
        <li>
          <Icon name="check" size={14} tone="run" />
          <span>Live events go first; every ninth claim of a lane is the replay’s</span>
        </li>
        <li>
          <Icon name="check" size={14} tone="run" />
          <span>It can be cancelled at any time; what was placed still runs</span>
        </li>
        <li>
          <Icon name="s-warn" size={14} tone="ready" />
          <span>Handlers see ids that they have seen before, so they must bear that</span>
        </li>
      </ul>
      <Code text={commandOf(plan)} label="the same as a command" />
      {mayOperate.value && (
        <div class="btns plan-acts">
          <Button kind="solid" disabled={isBusy || total === 0} onClick={() => void start()}>
            Replay {plural(total, 'event')}
          </Button>
          {total > TRIED && (
            <Button disabled={isBusy} onClick={() => void start(TRIED)}>
              Try {TRIED} first
            </Button>
          )}
        </div>
      )}
    </div>
  )
}

function wanted({ flows }: ReplayPlan): string {
  const placed = (flows ?? []).filter(({ placed: n }) => n > 0)
  if (placed.length === 0) return flows === undefined || flows.length === 0 ? '' : 'No chosen flow wants them. '
  const list = placed.map(({ flow, placed: n }) => `${count(n)} in ${visible(flow)}`).join(', ')
  return `About ${list}. `
}
