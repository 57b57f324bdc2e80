// Stored events: search as you type, and see how far the search has looked.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { At, Bones, Button, Empty, Failure, Field, Mono, Panel, Select } from '../../components/basics.tsx'
import { Icon } from '../../components/icon.tsx'
import { Frame } from '../../components/shell.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { address, ApiError, get, segment } from '../../lib/api.ts'
import { bytes, count, plural, visible, when } from '../../lib/format.ts'
import { second } from '../../lib/clock.ts'
import type { EventItem, EventPage, Page, Source } from '../../lib/types.ts'
import { useLive } from '../../state/live.ts'
import { useResource } from '../../state/resource.ts'
import { place, setQuery } from '../../state/router.ts'
import { Histogram } from './histogram.tsx'

const PAGE_SIZE = 50
const ENOUGH = 20
const MOST_PAGES = 20
const FILTERS = ['q', 'source', 'type', 'tenant', 'subject', 'flow', 'key', 'from', 'to'] as const

export function Events(): JSX.Element {
  const { query } = place.value
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query[name] ?? '']))
  const target = address('events', { ...filter, limit: PAGE_SIZE })
  const first = useResource<EventPage>(target, { every: 10_000 })
  const sources = useResource<Page<Source>>('v1/sources')
  const more = useMore(target, first.data)
  useLive(({ kind }) => kind === 'event', first.refresh)
  const found = [...(first.data?.items ?? []), ...more.items]
  const searched = sumOf([first.data?.searched, ...more.searched])
  // A page of a search looks at a bounded number of events; the search goes on by itself until there is something to see.
  const isLooking =
    filter['q'] !== '' && more.next !== undefined && found.length < ENOUGH && more.searched.length < MOST_PAGES
  useEffect(() => {
    if (isLooking && !more.isBusy) more.load()
  }, [isLooking, more.isBusy, more.next])
  const isFiltered = FILTERS.some((name) => filter[name] !== '')
  return (
    <Frame title="Events" remark="Stored once, before the sender gets an answer, and never changed.">
      <div class="filters event-filters">
        <Field
          wide
          label="Search events"
          placeholder="An id, type, key, tenant, subject, or text of the payload"
          icon="search"
          value={filter['q'] ?? ''}
          onChange={(q) => setQuery({ q }, { replace: true })}
        />
        <Select
          label="Source"
          value={filter['source'] ?? ''}
          options={sourcesOf(sources.data?.items ?? [], found, filter['source'] ?? '')}
          onChange={(source) => setQuery({ source })}
        />
        <Field label="Type" value={filter['type'] ?? ''} onChange={(type) => setQuery({ type }, { replace: true })} />
        {isFiltered && (
          <Button
            kind="bare"
            icon="close"
            onClick={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
          >
            Clear
          </Button>
        )}
      </div>
      {first.error !== undefined && <Failure error={first.error} onRetry={first.refresh} />}
      <Histogram filter={filter} />
      <Panel label="Events, newest first">
        {first.data === undefined && first.error === undefined && <Bones rows={8} />}
        {found.length > 0 && (
          <div class={first.isStale ? 'stale' : ''}>
            <Table
              label="Events, newest first"
              class="event-table"
              columns={columnsOf(filter['q'] ?? '')}
              rows={found}
              content={first.isStale ? undefined : target}
              idOf={({ id }) => id}
              hrefOf={({ id }) => `events/${segment(id)}`}
            />
          </div>
        )}
        {first.data !== undefined && found.length === 0 && more.next === undefined && (
          <NoEvents isFiltered={isFiltered} />
        )}
        <Further q={filter['q'] ?? ''} searched={searched} shown={found.length} more={more} />
      </Panel>
    </Frame>
  )
}

interface More {
  readonly items: readonly EventItem[]
  readonly searched: readonly EventPage['searched'][]
  readonly next: string | undefined
  readonly isBusy: boolean
  readonly error: ApiError | undefined
  readonly load: () => void
}

/** Further pages below the first, which alone is kept fresh. */
function useMore(target: string, first: EventPage | undefined): More {
  const [pages, setPages] = useState<readonly EventPage[]>([])
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  useEffect(() => {
    setPages([])
    setError(undefined)
  }, [target])
  const next = pages.length === 0 ? first?.next : pages.at(-1)?.next
  const known = new Set(first?.items.map(({ id }) => id))
  const load = async (): Promise<void> => {
    if (next === undefined || isBusy) return
    setBusy(true)
    try {
      const page = await get<EventPage>(`${target}&cursor=${encodeURIComponent(next)}`)
      setPages((before) => [...before, page])
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      setError(problem)
    } finally {
      setBusy(false)
    }
  }
  return {
    items: pages.flatMap(({ items }) => items).filter(({ id }) => !known.has(id)),
    searched: pages.map(({ searched }) => searched),
    next,
    isBusy,
    error,
    load: () => void load(),
  }
}

function sumOf(parts: readonly EventPage['searched'][]): EventPage['searched'] {
  const known = parts.filter((part) => part !== undefined)
  const last = known.at(-1)
  if (last === undefined) return undefined
  return { ...last, events: known.reduce((sum, { events }) => sum + events, 0) }
}

function Further(props: { q: string; searched: EventPage['searched']; shown: number; more: More }): JSX.Element | null {
  const { q, searched, shown, more } = props
  const now = second.value
  if (more.next === undefined && (q === '' || searched === undefined)) return null
  return (
    <footer class="row wrap">
      <span role="status">
        {q !== '' && searched !== undefined ? (
          <>
            {shown === 0 && 'Nothing found yet. '}
            {searched.complete ? 'All' : 'The newest'} <b>{count(searched.events)}</b> events were searched
            {searched.from !== undefined && !searched.complete && `, back to ${when(searched.from, now)}`}.
          </>
        ) : (
          `${plural(shown, 'event')}, newest first.`
        )}
      </span>
      {more.error !== undefined && <span class="c-fail">{more.error.message}</span>}
      {more.next !== undefined && (
        <span class="push">
          <Button small disabled={more.isBusy} onClick={more.load}>
            {q === '' ? `Show ${PAGE_SIZE} more` : 'Search further'}
          </Button>
        </span>
      )}
    </footer>
  )
}

function sourcesOf(
  sources: readonly Source[],
  found: readonly EventItem[],
  chosen: string,
): readonly { value: string; text: string }[] {
  const names = new Set([...sources.map(({ name }) => name), ...found.map(({ source }) => source)])
  if (chosen !== '') names.add(chosen)
  return [{ value: '', text: 'any' }, ...[...names].toSorted().map((value) => ({ value, text: visible(value) }))]
}

function columnsOf(q: string): readonly Column<EventItem>[] {
  return [
    {
      title: 'Arrived',
      class: 'mono nowrap',
      cell: ({ id, arrived }) => (
        <a href={`events/${segment(id)}`}>
          <At at={arrived} />
          <span class="unseen"> event {id}</span>
        </a>
      ),
    },
    {
      title: 'Type',
      class: 'cut',
      cell: ({ type, subject }) => (
        <>
          <b class="type">{marked(visible(type), q)}</b>
          {subject !== '' && <span class="sub cut">{marked(visible(subject), q)}</span>}
        </>
      ),
    },
    { title: 'Source', class: 'soft cut', cell: ({ source }) => marked(visible(source), q) },
    {
      title: 'Tenant',
      class: 'soft cut',
      isWide: true,
      cell: ({ tenant }) => marked(visible(tenant === '' ? '–' : tenant), q),
    },
    { title: 'Where it went', class: 'soft cut', isWide: true, cell: (event) => <Went event={event} /> },
    { title: 'Id', isWide: true, class: 'cut', cell: ({ id }) => <Mono>{marked(id, q)}</Mono> },
    { title: 'Size', isNumber: true, class: 'soft nowrap', isWide: true, cell: ({ bytes: size }) => bytes(size) },
  ]
}

/** The found text is marked, as a text node like all the rest. */
function marked(text: string, q: string): JSX.Element | string {
  const at = q === '' ? -1 : text.toLowerCase().indexOf(q.toLowerCase())
  if (at === -1) return text
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + q.length)}</mark>
      {text.slice(at + q.length)}
    </>
  )
}

function Went({ event }: { event: EventItem }): JSX.Element {
  const { lanes, note, found, purged, duplicates, unrouted } = event
  if (purged) return <>purged</>
  return (
    <>
      {unrouted.length > 0 && <Icon name="s-warn" size={12} tone="ready" />}{' '}
      {lanes.length > 0 ? plural(lanes.length, 'lane') : note === '' ? 'no lane' : visible(note)}
      {duplicates > 0 && `, ${plural(duplicates, 'duplicate')}`}
      {found === 'payload' && <span class="tag">in the payload</span>}
    </>
  )
}

function NoEvents({ isFiltered }: { isFiltered: boolean }): JSX.Element {
  return isFiltered ? (
    <Empty icon="search" title="No event matches." />
  ) : (
    <Empty icon="events" title="No event is stored.">
      An event appears here as soon as a source has verified it, or code has published it. The overview has a command
      that sends one.
    </Empty>
  )
}
