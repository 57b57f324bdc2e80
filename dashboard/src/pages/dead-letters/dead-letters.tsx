// Dead letters: why they died, how many are alike, and what happens if they are retried.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { At, Bones, Button, Chip, Empty, Failure, Field, Panel, Segments, Select } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { address } from '../../lib/api.ts'
import { clock, plural, visible } from '../../lib/format.ts'
import { LANE_LOOKS } from '../../lib/states.ts'
import type { DeadLetter, DeadReasons } from '../../lib/types.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { useLive } from '../../state/live.ts'
import { usePages } from '../../state/pages.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery, withQuery } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { status } from '../../state/status.ts'
import { ActProgress, BulkAct, ChosenAct } from './bulk-act.tsx'
import { filterOf, type Filter } from './filter.ts'
import { Export } from './export.tsx'
import { Letter } from './letter.tsx'
import { Reasons } from './reasons.tsx'

const PAGE_SIZE = 50
const EVERY = 5_000

export function DeadLetters(): JSX.Element {
  const { query } = place.value
  const { id, ask, act: actId } = query
  const filter = filterOf(query)
  const target = address('dead-letters', { ...filter, limit: PAGE_SIZE })
  const letters = usePages<DeadLetter>(target, EVERY)
  const reasons = useResource<DeadReasons>(address('dead-letters/reasons', { kind: filter.kind }), { every: EVERY })
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => setMarked(new Set()), [target])
  const refresh = (): void => {
    letters.refresh()
    reasons.refresh()
  }
  useLive(
    ({ kind, id: run }) =>
      kind === 'dead' ||
      kind === 'steered' ||
      (kind === 'settled' && letters.items.some((letter) => letter.id === run)),
    refresh,
  )
  const may = mayOperate.value
  const { items, data, error } = letters
  return (
    <Frame title="Dead letters" remark="Runs that failed for good. Their events are kept, and can run again.">
      <Filters filter={filter} />
      <div class={`cols ${id === undefined ? '' : 'side-right detail-open'}`}>
        <div class="stack">
          {actId !== undefined && <ActProgress id={actId} />}
          {reasons.data !== undefined && (
            <Reasons
              reasons={reasons.data}
              flow={filter.flow ?? ''}
              reason={filter.reason ?? ''}
              isAll={query['all'] === 'reasons'}
            />
          )}
          <Panel
            title={filter.kind === 'run' ? 'Dead letters' : 'Unrouted events'}
            remark={data === undefined ? undefined : 'newest first'}
            controls={
              may &&
              items.length > 0 && (
                <>
                  <Export filter={filter} />
                  <Button small icon="s-retry" onClick={() => setQuery({ ask: 'retry' })}>
                    Retry all…
                  </Button>
                  <Button small kind="danger" onClick={() => setQuery({ ask: 'drop' })}>
                    Drop all…
                  </Button>
                </>
              )
            }
          >
            {may && marked.size > 0 ? (
              <ChosenAct
                ids={[...marked]}
                kind={filter.kind}
                onDone={() => {
                  setMarked(new Set())
                  refresh()
                }}
              />
            ) : (
              may && (ask === 'retry' || ask === 'drop') && <BulkAct filter={filter} asked={ask} onChanged={refresh} />
            )}
            {error !== undefined && <Failure error={error} onRetry={refresh} />}
            {data === undefined && error === undefined && <Bones rows={8} />}
            {items.length > 0 && (
              <div class={letters.isStale ? 'stale' : ''}>
                <Table
                  label="Dead letters"
                  class={`letter-table ${filter.kind}`}
                  columns={filter.kind === 'run' ? COLUMNS : UNROUTED_COLUMNS}
                  rows={items}
                  content={letters.isStale ? undefined : target}
                  idOf={(letter) => letter.id}
                  hrefOf={(letter) => withQuery({ id: letter.id })}
                  chosenId={id}
                  {...(may && { marked, onMark: setMarked })}
                />
              </div>
            )}
            {data !== undefined && items.length === 0 && <Nothing filter={filter} />}
            {letters.more !== undefined && (
              <footer class="row">
                <span>{plural(items.length, 'row')} shown, newest first.</span>
                <span class="push">
                  <Button small onClick={letters.more}>
                    Show {PAGE_SIZE} more
                  </Button>
                </span>
              </footer>
            )}
          </Panel>
        </div>
        {id !== undefined && <Letter key={id} id={id} onChanged={refresh} />}
      </div>
    </Frame>
  )
}

/** Another filter shows another list, so nothing of it is open. */
function setFilter(values: Readonly<Record<string, string | undefined>>): void {
  setQuery({ ...values, id: undefined, ask: undefined }, { replace: true })
}

function Filters({ filter }: { filter: Filter }): JSX.Element {
  const { kind, flow = '', key = '', reason = '', tenant = '' } = filter
  const flows = new Set([...(status.value?.flows.map((one) => one.flow) ?? []), ...(flow === '' ? [] : [flow])])
  const isUnfiltered = flow + reason + tenant === ''
  return (
    <div class="filters">
      <Segments
        label="Kind"
        value={kind}
        options={[
          { value: 'run', text: 'Dead letters', count: status.value?.deadLetters },
          { value: 'unrouted', text: 'Unrouted events', count: status.value?.unrouted },
        ]}
        onChange={(value) => setFilter({ kind: value === 'run' ? undefined : value, reason: undefined })}
      />
      <Select
        label="Flow"
        value={flow}
        options={[{ value: '', text: 'any' }, ...[...flows].map((value) => ({ value, text: visible(value) }))]}
        onChange={(value) => setFilter({ flow: value, key: undefined })}
      />
      <Field label="Reason has" value={reason} icon="search" onChange={(value) => setFilter({ reason: value })} />
      {flow !== '' && kind === 'run' && (
        <Field label="Key" value={key} onChange={(value) => setFilter({ key: value })} />
      )}
      <Field label="Tenant" value={tenant} onChange={(value) => setFilter({ tenant: value })} />
      {!isUnfiltered && (
        <a class="link" href={kind === 'run' ? 'dead-letters' : 'dead-letters?kind=unrouted'}>
          Show all
        </a>
      )}
    </div>
  )
}

function Nothing({ filter }: { filter: Filter }): JSX.Element {
  const { kind, flow, reason, tenant } = filter
  if (flow !== undefined || reason !== undefined || tenant !== undefined) {
    return (
      <Empty icon="dead-letters" title="Nothing matches.">
        <a href="dead-letters">All dead letters</a>
      </Empty>
    )
  }
  return kind === 'run' ? (
    <Empty icon="dead-letters" title="No dead letters.">
      A run that fails its last attempt shows here, and is kept for a year.
    </Empty>
  ) : (
    <Empty icon="dead-letters" title="No unrouted events.">
      A stored event shows here while it lacks its lane, e.g. because the <code>key</code> function of a flow throws.
    </Empty>
  )
}

const DIED: Column<DeadLetter> = {
  title: 'Died',
  class: 'mono nowrap',
  cell: ({ id, at }) => (
    <a href={withQuery({ id })} aria-label={`${clock(at)}, dead letter ${id}`}>
      <At at={at} />
    </a>
  ),
}
const COLUMNS: readonly Column<DeadLetter>[] = [
  DIED,
  {
    title: 'Lane',
    class: 'cut',
    cell: (letter) => (
      <>
        <b class="type">{laneName({ flow: letter.flow, key: letter.key ?? '' })}</b>
        <span class="sub cut wide-only">{visible(letter.flow)}</span>
        <span class="sub cut narrow-only">{reasonOf(letter)}</span>
      </>
    ),
  },
  {
    title: 'Reason',
    isWide: true,
    class: 'soft cut',
    cell: reasonOf,
  },
  { title: 'Events', isNumber: true, isWide: true, cell: ({ events }) => events.length },
  { title: 'Attempts', isNumber: true, isWide: true, cell: ({ attempts, tries }) => attempts?.length ?? tries },
  {
    title: 'State',
    cell: ({ state, blocks }) =>
      state === 'queued' || state === 'running' ? (
        <Chip
          look={LANE_LOOKS[state === 'queued' ? 'ready' : 'running']}
          plain
          text={state === 'queued' ? 'Queued' : 'Running'}
        />
      ) : blocks === true ? (
        <Chip look={LANE_LOOKS.blocked} plain text="Blocks" />
      ) : (
        <span class="dim">dead</span>
      ),
  },
]
const UNROUTED_COLUMNS: readonly Column<DeadLetter>[] = [
  { ...DIED, title: 'Since' },
  { title: 'Flow', class: 'cut', cell: ({ flow }) => <b class="type">{visible(flow)}</b> },
  { title: 'Reason', class: 'nowrap', cell: ({ reason }) => visible(reason) },
  { title: 'Error', isWide: true, class: 'soft cut', cell: ({ error = '' }) => visible(error) },
  { title: 'Attempts', isNumber: true, isWide: true, cell: ({ tries }) => tries },
]

function reasonOf({ reason, attempts }: DeadLetter): string {
  return visible(reason === '' ? (attempts?.at(-1)?.error ?? '') : reason)
}
