// Ended runs: what ran, how long, and how it ended.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { At, Bones, Button, Chip, Empty, Failure, Panel, Segments, Select } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { address, ApiError, get, segment } from '../../lib/api.ts'
import { duration, plural, visible } from '../../lib/format.ts'
import { RUN_LOOKS } from '../../lib/states.ts'
import type { Page, Run, RunKind } from '../../lib/types.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery, withQuery } from '../../state/router.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { status } from '../../state/status.ts'
import { closedText } from '../lane/batches.tsx'

const PAGE_SIZE = 50
const ENOUGH = 20
const MOST_PAGES = 20
const KINDS = Object.keys(RUN_LOOKS) as RunKind[]

export function Runs(): JSX.Element {
  const { query } = place.value
  const { flow = '', kind = '', lane = '', event = '', key = '' } = query
  const target = address('runs', { flow, kind, lane, event, key, limit: PAGE_SIZE })
  const { data, error, isStale, refresh } = useResource<Page<Run>>(target, { every: 10_000 })
  const [older, setOlder] = useState<readonly Page<Run>[]>([])
  useEffect(() => setOlder([]), [target])
  useLive((change) => change.kind === 'settled' || change.kind === 'dead', refresh)
  const next = older.length === 0 ? data?.next : older.at(-1)?.next
  const known = new Set(data?.items.map(({ id }) => id))
  const runs = [...(data?.items ?? []), ...older.flatMap(({ items }) => items).filter(({ id }) => !known.has(id))]
  const isBusy = useRef(false)
  const load = async (): Promise<void> => {
    if (isBusy.current) return
    isBusy.current = true
    try {
      const page = await get<Page<Run>>(`${target}&cursor=${encodeURIComponent(next ?? '')}`)
      setOlder((before) => [...before, page])
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      refresh()
    } finally {
      isBusy.current = false
    }
  }
  // A page looks at a bounded number of runs, so one of a rare ending may be empty; the search goes on by itself.
  const isLooking = next !== undefined && runs.length < ENOUGH && older.length < MOST_PAGES && !isStale
  useEffect(() => {
    if (isLooking) void load()
  }, [isLooking, next])
  const flows = new Set([...(status.value?.flows.map((one) => one.flow) ?? []), ...(flow === '' ? [] : [flow])])
  return (
    <Frame
      title="Runs"
      remark="Each is one execution of a handler for the batch of one lane. Live runs are with their lanes."
    >
      <div class="filters">
        <Segments
          label="Ending"
          value={kind}
          options={[
            { value: '', text: 'All' },
            ...KINDS.map((value) => ({ value, text: RUN_LOOKS[value].word, look: RUN_LOOKS[value] })),
          ]}
          onChange={(value) => setQuery({ kind: value })}
        />
        <Select
          label="Flow"
          value={flow}
          options={[
            { value: '', text: 'any' },
            ...[...flows].toSorted().map((value) => ({ value, text: visible(value) })),
          ]}
          onChange={(value) => setQuery({ flow: value })}
        />
        {(lane !== '' || event !== '' || key !== '') && (
          <a class="btn bare" href={withQuery({ lane: undefined, event: undefined, key: undefined })}>
            {lane !== '' ? 'One lane' : event !== '' ? 'One event' : 'One key'}: show all
          </a>
        )}
      </div>
      {error !== undefined && <Failure error={error} onRetry={refresh} />}
      <Panel label="Ended runs, newest first">
        {data === undefined && error === undefined && <Bones rows={8} />}
        {runs.length > 0 && (
          <div class={isStale ? 'stale' : ''}>
            <Table
              label="Ended runs, newest first"
              class="run-table"
              columns={COLUMNS}
              rows={runs}
              content={isStale ? undefined : target}
              idOf={({ id }) => id}
              hrefOf={({ id }) => `runs/${segment(id)}`}
            />
          </div>
        )}
        {data !== undefined && runs.length === 0 && next === undefined && (
          <Empty icon="runs" title={kind + flow + lane + event === '' ? 'No run has ended yet.' : 'No run matches.'}>
            A run shows here when it has ended. <a href="lanes?state=running">Runs that are live</a>
          </Empty>
        )}
        {next !== undefined && (
          <footer class="row">
            <span role="status">
              {runs.length === 0 ? 'None of the newest runs ended so.' : `${plural(runs.length, 'run')}, newest first.`}
            </span>
            <span class="push">
              <Button small onClick={() => void load()}>
                {runs.length === 0 ? 'Search further' : `Show ${PAGE_SIZE} more`}
              </Button>
            </span>
          </footer>
        )}
      </Panel>
    </Frame>
  )
}

const COLUMNS: readonly Column<Run>[] = [
  {
    title: 'Ended',
    class: 'mono nowrap',
    cell: ({ id, ended }) => (
      <a href={`runs/${segment(id)}`}>
        <At at={ended} />
        <span class="unseen"> run {id}</span>
      </a>
    ),
  },
  {
    title: 'Lane',
    class: 'cut',
    cell: (run) => (
      <>
        <b class="type">{laneName(run)}</b>
        <span class="sub cut">{visible(run.flow)}</span>
      </>
    ),
  },
  { title: 'Ending', cell: ({ kind }) => <Chip look={RUN_LOOKS[kind]} plain /> },
  { title: 'Reason', isWide: true, class: 'soft cut', cell: (run) => reasonOf(run) },
  { title: 'Events', isNumber: true, isWide: true, cell: ({ events }) => events.length },
  {
    title: 'Attempts',
    isNumber: true,
    isWide: true,
    cell: ({ attempts, kind }) => attempts.length + (kind === 'dead' ? 0 : 1),
  },
  { title: 'Took', isNumber: true, class: 'soft nowrap', cell: ({ started, ended }) => duration(ended - started) },
]

function reasonOf({ reason, attempts, closedBy }: Run): string {
  if (reason !== '') return visible(reason)
  const error = attempts.at(-1)?.error
  if (error !== undefined) return `before: ${visible(error)}`
  return closedBy === undefined || closedBy === 'unknown' ? '' : `batch closed by: ${closedText(closedBy)}`
}
