// All lanes on one moving time axis: who waits, for what, how long, and what happens next.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Bones, Empty, Failure, Field, Segments, Select, Button, type Segment } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { SCALE_TEXTS, SCALES, scaleOf, type ScaleName } from '../../lib/axis.ts'
import { now as present, second } from '../../lib/clock.ts'
import { count, countdown, plural, visible } from '../../lib/format.ts'
import { LANE_LOOKS, type ShownState } from '../../lib/states.ts'
import type { LanePage, Pulse, Status } from '../../lib/types.ts'
import { useKeys } from '../../state/keyboard.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery, withQuery } from '../../state/router.ts'
import { status, statusError } from '../../state/status.ts'
import { LaneLegend } from './legend.tsx'
import { PAGE_SIZE, useLanes } from './live-lanes.ts'
import { LaneRows } from './rows.tsx'

/** The states of the filter, in the order of the page. `all` is no filter. */
const STATES: readonly ShownState[] = [
  'ready',
  'running',
  'waiting',
  'limited',
  'retrying',
  'snoozed',
  'lapsed',
  'blocked',
  'held',
]
/** These are shown even if no lane is in them. */
const ALWAYS: ReadonlySet<string> = new Set(['ready', 'running', 'waiting'])
const SCALE_NAMES = Object.keys(SCALES) as ScaleName[]

export function Lanes(): JSX.Element {
  const { query } = place.value
  const scale = scaleOf(query['scale'])
  const [frozenAt, setFrozenAt] = useState<number>()
  const state = status.value
  const filter = {
    state: query['state'] ?? '',
    flow: query['flow'] ?? '',
    q: query['key'] ?? '',
    cursor: query['cursor'] ?? '',
  }
  const { lanes, content, error, next, counts, seen, refresh, hover } = useLanes(filter, frozenAt !== undefined)
  const pulse = useResource<Pulse>('v1/pulse', { every: frozenAt === undefined ? 1_000 : 600_000 })
  const move = (by: number): void => {
    const index = SCALE_NAMES.indexOf(scale) + by
    const wanted = SCALE_NAMES[Math.max(0, Math.min(SCALE_NAMES.length - 1, index))] ?? scale
    setQuery({ scale: wanted === '100s' ? undefined : wanted }, { replace: true })
  }
  const freeze = (): void => setFrozenAt((at) => (at === undefined ? present() : undefined))
  useKeys({ '[': () => move(-1), ']': () => move(1), space: freeze })
  // Without an answer, nothing on the page is of the present.
  const stoppedAt = frozenAt ?? (statusError.value?.status === 0 ? state?.now : undefined)
  return (
    <Frame title="Lanes" remark={state === undefined ? undefined : summaryOf(state)}>
      <div class="filters lane-filters">
        <Segments
          label="State"
          value={filter.state}
          options={segmentsOf(counts ?? state?.lanes.byState, filter.state)}
          onChange={(value) => setQuery({ state: value, cursor: undefined })}
        />
        <Select
          label="Flow"
          value={filter.flow}
          options={flowsOf(state, filter.flow)}
          onChange={(value) => setQuery({ flow: value, cursor: undefined })}
        />
        <Field
          label="Key"
          icon="search"
          value={filter.q}
          onChange={(value) => setQuery({ key: value, cursor: undefined }, { replace: true })}
        />
        <span class="push row">
          <Segments
            label="Time on the axis"
            value={scale}
            options={SCALE_NAMES.map((value) => ({ value, text: SCALE_TEXTS[value] }))}
            onChange={(value) => setQuery({ scale: value === '100s' ? undefined : value }, { replace: true })}
          />
          <Button icon={frozenAt === undefined ? 's-held' : 's-run'} onClick={freeze}>
            {frozenAt === undefined ? 'Freeze' : 'Follow'}
          </Button>
        </span>
      </div>
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      <section class="panel" aria-label="Lanes, the next to act first">
        <LaneRows
          lanes={lanes ?? []}
          content={content}
          seen={seen}
          axis={SCALES[scale]}
          pulse={pulse.data}
          status={state}
          stoppedAt={stoppedAt}
          onHover={hover}
          onChanged={refresh}
        />
        {lanes === undefined && error === undefined && <Bones rows={8} />}
        {lanes?.length === 0 && <NoLanes isFiltered={filter.state + filter.flow + filter.q !== ''} />}
        {(next !== undefined || filter.cursor !== '') && (
          <footer class="row">
            <span>
              {plural(lanes?.length ?? 0, 'lane')} of {amountOf(state)}, at most {PAGE_SIZE} at a time; those that act
              next come first.
            </span>
            <span class="push" />
            {filter.cursor !== '' && (
              <a class="link" href={withQuery({ cursor: undefined })}>
                From the first
              </a>
            )}
            {next !== undefined && (
              <a class="link" href={withQuery({ cursor: next, open: undefined })}>
                The next {PAGE_SIZE}
              </a>
            )}
          </footer>
        )}
      </section>
      <LaneLegend />
    </Frame>
  )
}

function amountOf({ lanes }: Status | { lanes?: undefined } = {}): string {
  if (lanes === undefined) return 'all'
  return lanes.exact ? count(lanes.total) : `more than ${count(lanes.total)}`
}

function summaryOf(state: Status): string {
  const { lanes, oldestDue } = state
  if (lanes.total === 0) return 'No lane holds an event.'
  const holding = `${plural(lanes.total, 'lane holds', 'lanes hold')} ${plural(lanes.events, 'event')}`
  if (oldestDue === undefined) return `${holding}; none is ready and waits`
  return `${holding}; the oldest has been due for ${countdown(second.value - oldestDue)}`
}

function segmentsOf(counts: LanePage['counts'], chosen: string): readonly Segment[] {
  const known = counts ?? {}
  const shown = STATES.filter((name) => ALWAYS.has(name) || (known[name] ?? 0) > 0 || name === chosen)
  const total = Object.values(known).reduce((sum, value) => sum + value, 0)
  return [
    { value: '', text: 'All', count: counts === undefined ? undefined : total },
    ...shown.map((name) => ({
      value: name,
      text: LANE_LOOKS[name].word,
      count: counts === undefined ? undefined : (counts[name] ?? 0),
      look: LANE_LOOKS[name],
    })),
  ]
}

function flowsOf(state: Status | undefined, chosen: string): readonly { value: string; text: string }[] {
  const names = new Set(state?.flows.map(({ flow }) => flow))
  if (chosen !== '') names.add(chosen)
  return [{ value: '', text: 'any' }, ...[...names].toSorted().map((value) => ({ value, text: visible(value) }))]
}

function NoLanes({ isFiltered }: { isFiltered: boolean }): JSX.Element {
  return isFiltered ? (
    <Empty icon="lanes" title="No lane matches.">
      A lane exists while events wait or run in it. <a href="lanes">Show all lanes</a>
    </Empty>
  ) : (
    <Empty icon="lanes" title="No lane holds an event.">
      A lane appears when an event arrives for a key of a flow, and goes when its run has ended.
    </Empty>
  )
}
