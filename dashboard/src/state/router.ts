// Where the reader is. Links are plain anchors with addresses relative to the mount; clicks on them stay in the page.
import { signal } from '@preact/signals'
import { linkTo, placeOf, type Place } from '../lib/routes.ts'

const base = new URL(document.baseURI)

export const place = signal<Place>(read())

function read(): Place {
  const { pathname, search } = globalThis.location
  return placeOf(pathname.slice(base.pathname.length), search)
}

/** `go` opens an address of the dashboard, which is relative to the mount. */
export function go(target: string, { replace = false } = {}): void {
  const url = new URL(target, base)
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  const before = place.value.page
  place.value = read()
  if (!replace && (before !== place.value.page || url.search === '')) globalThis.scrollTo(0, 0)
}

/** `setQuery` changes some values of the query and keeps the others. */
export function setQuery(change: Readonly<Record<string, string | undefined>>, { replace = false } = {}): void {
  const path = globalThis.location.pathname.slice(base.pathname.length)
  go(linkTo(path, { ...place.value.query, ...change }), { replace })
}

/** `withQuery` is the address that `setQuery` would open, for a link. */
export function withQuery(change: Readonly<Record<string, string | undefined>>): string {
  const path = globalThis.location.pathname.slice(base.pathname.length)
  return linkTo(path, { ...place.value.query, ...change })
}

export function startRouter(): void {
  globalThis.addEventListener('popstate', () => (place.value = read()))
  document.addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    const url = new URL(link.href)
    if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname) || url.hash !== '') return
    event.preventDefault()
    go(url.href.slice(base.href.length))
  })
}
