// The addresses of the pages, as pure functions. Every filter, choice and open row is part of the address.

export type PageName =
  | 'overview'
  | 'sources'
  | 'events'
  | 'event'
  | 'lanes'
  | 'lane'
  | 'runs'
  | 'run'
  | 'endpoints'
  | 'endpoint'
  | 'limits'
  | 'dead-letters'
  | 'replays'
  | 'replay-new'
  | 'alerts'
  | 'audit'
  | 'keys'
  | 'not-found'

export interface Place {
  readonly page: PageName
  readonly id?: string
  readonly query: Readonly<Record<string, string>>
}

/** A pattern has at most one parameter, at its end. A more exact pattern stands before a wider one. */
const PATTERNS: readonly (readonly [string, PageName])[] = [
  ['', 'overview'],
  ['sources', 'sources'],
  ['sources/:id', 'sources'],
  ['events', 'events'],
  ['events/:id', 'event'],
  ['lanes', 'lanes'],
  ['lanes/:id', 'lane'],
  ['runs', 'runs'],
  ['runs/:id', 'run'],
  ['endpoints', 'endpoints'],
  ['endpoints/:id', 'endpoint'],
  ['limits', 'limits'],
  ['limits/:id', 'limits'],
  ['dead-letters', 'dead-letters'],
  ['replays', 'replays'],
  ['replays/new', 'replay-new'],
  ['replays/:id', 'replays'],
  ['alerts', 'alerts'],
  ['audit', 'audit'],
  ['keys', 'keys'],
]

/** `placeOf` reads an address below the mount, without its leading slash. */
export function placeOf(path: string, search: string): Place {
  const query = Object.fromEntries(new URLSearchParams(search))
  const parts = path.split('/').filter((part) => part !== '')
  for (const [pattern, page] of PATTERNS) {
    const wanted = pattern.split('/').filter((part) => part !== '')
    if (wanted.length !== parts.length) continue
    const last = wanted.at(-1)
    if (!wanted.every((part, index) => part.startsWith(':') || part === parts[index])) continue
    if (last?.startsWith(':') !== true) return { page, query }
    const id = decoded(parts.at(-1) ?? '')
    if (id !== undefined) return { page, id, query }
  }
  return { page: 'not-found', query }
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** `linkTo` writes an address relative to the mount. Values that are undefined or empty are left out. */
export function linkTo(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(name, value)
  const text = search.toString()
  return `${path === '' ? './' : path}${text === '' ? '' : `?${text}`}`
}

/** The page in the navigation that a page belongs to. */
export function sectionOf(page: PageName): PageName {
  if (page === 'event') return 'events'
  if (page === 'lane') return 'lanes'
  if (page === 'run') return 'runs'
  if (page === 'endpoint') return 'endpoints'
  if (page === 'replay-new') return 'replays'
  return page
}
