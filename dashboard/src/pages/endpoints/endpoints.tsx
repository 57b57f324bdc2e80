// All endpoints with their health: who does not take what we send, since when, and how much waits.
import type { JSX } from 'preact'
import { At, Bones, Button, Chip, Empty, Failure, Field, Panel, Segments } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { post, segment } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, countdown, duration, percent, plural, visible } from '../../lib/format.ts'
import { HEALTH_LOOKS, healthOf, type Health } from '../../lib/states.ts'
import type { Endpoint, Page } from '../../lib/types.ts'
import { isDelivery } from '../../state/endpoint-names.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery } from '../../state/router.ts'
import { mayOperate } from '../../state/session.ts'
import { say, sayFailed } from '../../state/toast.ts'
import { CreateEndpoint } from './create.tsx'
import { HealthStrip } from './health-strip.tsx'

/** What is wrong stands first. */
const ORDER: readonly Health[] = ['down', 'disabled', 'degraded', 'unproven', 'paused', 'up']

export function Endpoints(): JSX.Element {
  const { health = '', q = '', new: isNew } = place.value.query
  const { data, error, refresh } = useResource<Page<Endpoint>>('v1/webhooks/subscribers', { every: 5_000 })
  useLive(({ kind, flow }) => (kind === 'settled' || kind === 'dead') && isDelivery(flow), refresh)
  const all = data?.items ?? []
  const wanted = q.toLowerCase()
  const shown = all
    .filter((endpoint) => health === '' || healthOf(endpoint) === health)
    .filter(({ name, url, id }) => `${name} ${url} ${id}`.toLowerCase().includes(wanted))
    .toSorted((one, other) => ORDER.indexOf(healthOf(one)) - ORDER.indexOf(healthOf(other)))
  const waiting = all.reduce((sum, endpoint) => sum + (endpoint.waiting ?? 0), 0)
  const sizes = new Map(ORDER.map((one) => [one, all.filter((endpoint) => healthOf(endpoint) === one).length]))
  const kinds = ORDER.filter((one) => (sizes.get(one) ?? 0) > 0 || one === health)
  return (
    <Frame
      title="Endpoints"
      remark={data === undefined ? undefined : `${plural(all.length, 'endpoint')}; ${plural(waiting, 'event')} waiting`}
    >
      <div class="filters">
        <Segments
          label="Health"
          value={health}
          options={[
            { value: '', text: 'All', count: all.length },
            ...kinds.map((value) => ({
              value,
              text: HEALTH_LOOKS[value].word,
              count: sizes.get(value),
              look: HEALTH_LOOKS[value],
            })),
          ]}
          onChange={(value) => setQuery({ health: value }, { replace: true })}
        />
        <Field
          label="Name or URL"
          icon="search"
          value={q}
          onChange={(value) => setQuery({ q: value }, { replace: true })}
        />
        {mayOperate.value && (
          <span class="push row wrap">
            <Button onClick={() => void trigger()}>End all windows now</Button>
            <Button kind="solid" icon="plus" onClick={() => setQuery({ new: '1' })}>
              Add an endpoint
            </Button>
          </span>
        )}
      </div>
      <Panel label="Endpoints">
        {error !== undefined && <Failure error={error} onRetry={refresh} />}
        {data === undefined && error === undefined && <Bones rows={8} />}
        {shown.length > 0 && (
          <Table
            label="Endpoints"
            class="endpoint-table"
            columns={COLUMNS}
            rows={shown}
            idOf={({ id }) => id}
            hrefOf={({ id }) => `endpoints/${segment(id)}`}
          />
        )}
        {data !== undefined && shown.length === 0 && (
          <Empty icon="endpoints" title={all.length === 0 ? 'There is no endpoint yet.' : 'No endpoint matches.'}>
            {all.length === 0 ? (
              'An endpoint is the URL of a subscriber. A delivery posts it signed batches of the events that it wants.'
            ) : (
              <a href="endpoints">All endpoints</a>
            )}
          </Empty>
        )}
      </Panel>
      {isNew !== undefined && mayOperate.value && (
        <CreateEndpoint onClose={() => setQuery({ new: undefined })} onCreated={refresh} />
      )}
    </Frame>
  )
}

async function trigger(): Promise<void> {
  try {
    const { triggered } = await post<{ triggered: number }>('webhooks/trigger')
    say(triggered === 0 ? 'No window is open.' : `${plural(triggered, 'batch', 'batches')} due now.`)
  } catch (error) {
    sayFailed(error)
  }
}

export function nameOf({ name, url }: Pick<Endpoint, 'name' | 'url'>): string {
  return visible(name === '' ? url : name)
}

function globsText(globs: readonly string[]): string {
  return globs.every((glob) => glob === '**') ? 'everything published' : visible(globs.join(', '))
}

function healthText(endpoint: Endpoint): string {
  const { health, eventFilter } = endpoint
  const since = health?.failingSince === undefined ? '' : `${countdown(second.value - health.failingSince)}: `
  if (health !== undefined && health.why !== '') return `${since}${visible(health.why)}`
  return globsText(eventFilter)
}

const COLUMNS: readonly Column<Endpoint>[] = [
  {
    title: 'Endpoint',
    class: 'cut',
    cell: (endpoint) => (
      <>
        <a class="type" href={`endpoints/${segment(endpoint.id)}`}>
          {nameOf(endpoint)}
        </a>
        <span class="sub cut">{visible(endpoint.url)}</span>
      </>
    ),
  },
  {
    title: 'Health, or what it takes',
    class: 'cut',
    cell: (endpoint) => (
      <>
        <Chip look={HEALTH_LOOKS[healthOf(endpoint)]} plain />
        <span class="sub cut">{healthText(endpoint)}</span>
      </>
    ),
  },
  {
    title: 'Last 24 h, each half hour',
    isWide: true,
    cell: ({ lastDay }) => (lastDay === undefined ? '–' : <HealthStrip of={lastDay} />),
  },
  {
    title: 'Delivered',
    isNumber: true,
    isWide: true,
    cell: ({ health }) =>
      health?.successRate === undefined ? (
        <span class="dim">–</span>
      ) : (
        <span class={health.successRate < 0.99 ? 'c-fail' : ''}>{percent(health.successRate)}</span>
      ),
  },
  {
    title: 'Response',
    isNumber: true,
    isWide: true,
    class: 'soft nowrap',
    cell: ({ health }) => (health?.responseMs === undefined ? '–' : duration(health.responseMs)),
  },
  {
    title: 'Waiting',
    isNumber: true,
    cell: ({ waiting = 0, ...endpoint }) => (
      <span class={waiting === 0 ? 'dim' : healthOf(endpoint) === 'down' ? 'c-fail' : ''}>{count(waiting)}</span>
    ),
  },
  {
    title: 'Last delivered',
    isNumber: true,
    isWide: true,
    class: 'soft nowrap',
    cell: ({ lastSuccessfulDeliveryAt: at }) => (at === undefined ? 'never' : <At at={at} />),
  },
]
