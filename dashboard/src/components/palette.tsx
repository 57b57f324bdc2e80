// One search for everything: pages by name, then events and lanes that contain the text.
import type { JSX } from 'preact'
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { address } from '../lib/api.ts'
import { visible } from '../lib/format.ts'
import { linkTo } from '../lib/routes.ts'
import { LANE_LOOKS, shownState } from '../lib/states.ts'
import type { EventPage, Lane, Page } from '../lib/types.ts'
import { useResource } from '../state/resource.ts'
import { go } from '../state/router.ts'
import { useReport } from './basics.tsx'
import { Dialog } from './dialog.tsx'
import { Icon, type IconName } from './icon.tsx'
import { PAGES } from './pages-list.ts'

export const isPaletteOpen = signal(false)

interface Hit {
  readonly to: string
  readonly icon: IconName
  readonly text: string
  readonly detail: string
}

function close(): void {
  isPaletteOpen.value = false
}

export function Palette(): JSX.Element {
  const [text, setText] = useState('')
  const [query, setQuery] = useState('')
  const [chosen, setChosen] = useState(0)
  useReport(text.trim(), query, setQuery)
  // The lanes come first: they are answered at once, while a search of payloads reads events.
  const lanes = useResource<Page<Lane>>(query === '' ? undefined : address('lanes', { q: query, limit: 6 }))
  const events = useResource<EventPage>(query === '' ? undefined : address('events', { q: query, limit: 6 }))
  const hits = hitsFor(text.trim(), query === '' ? [] : events.data?.items, query === '' ? [] : lanes.data?.items)
  const open = (hit: Hit | undefined): void => {
    if (hit === undefined) return
    close()
    go(hit.to)
  }
  const at = Math.min(chosen, Math.max(0, hits.length - 1))
  return (
    <Dialog title="Search" onClose={close}>
      <label class="palette-input">
        <Icon name="search" />
        <input
          autofocus
          type="text"
          aria-label="Find events, lanes, payloads"
          placeholder="An id, a key, a type, or text of a payload"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value)
            setChosen(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') setChosen(Math.min(at + 1, hits.length - 1))
            else if (event.key === 'ArrowUp') setChosen(Math.max(at - 1, 0))
            else if (event.key === 'Enter') open(hits[at])
            else return
            event.preventDefault()
          }}
        />
      </label>
      <ul class="palette-hits">
        {hits.map((hit, index) => (
          <li key={hit.to}>
            <a href={hit.to} class={index === at ? 'chosen' : ''} onClick={close}>
              <Icon name={hit.icon} size={14} />
              <span class="cut">{hit.text}</span>
              <span class="dim cut">{hit.detail}</span>
            </a>
          </li>
        ))}
      </ul>
      {query !== '' && events.data?.searched !== undefined && (
        <p class="small dim">
          {events.data.searched.complete ? 'All' : 'The newest'} {events.data.searched.events.toLocaleString('en')}{' '}
          events were searched.
        </p>
      )}
    </Dialog>
  )
}

function hitsFor(text: string, events: EventPage['items'] = [], lanes: readonly Lane[] = []): Hit[] {
  const wanted = text.toLowerCase()
  const pages = PAGES.filter(({ text: name }) => name.toLowerCase().includes(wanted)).map(
    ({ path, text: name, icon }): Hit => ({ to: path, icon, text: name, detail: 'page' }),
  )
  if (text === '') return pages
  return [
    ...lanes.map((lane): Hit => {
      const state = LANE_LOOKS[shownState(lane)]
      return {
        to: `lanes/${lane.id}`,
        icon: state.icon,
        text: visible(lane.key),
        detail: `${lane.flow}, ${state.word.toLowerCase()}`,
      }
    }),
    ...events.map((event): Hit => ({
      to: `events/${encodeURIComponent(event.id)}`,
      icon: 'events',
      text: visible(event.type),
      detail: `${event.source}, ${event.id}${event.found === 'payload' ? ', in the payload' : ''}`,
    })),
    { to: linkTo('events', { q: text }), icon: 'search', text: `Search all events for “${text}”`, detail: '' },
    ...pages.slice(0, 3),
  ]
}
