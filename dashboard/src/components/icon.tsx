// Icons on a 16 px grid. State icons are filled or heavier, and each has an outline of its own.
import type { JSX } from 'preact'

const LINES = {
  alerts: 'M4.25 11V7.25a3.75 3.75 0 0 1 7.5 0V11l1 1.25h-9.5zM6.9 14.25h2.2',
  audit: 'M2.75 4.5l1 1 1.75-2M8 4.5h5.5M2.75 11l1 1 1.75-2M8 11h5.5',
  check: 'M3.5 8.5 6.5 11.5 12.5 4.75',
  close: 'M4.25 4.25l7.5 7.5M11.75 4.25l-7.5 7.5',
  copy: 'M5.75 5.75h7v7h-7zM10.25 5.5V3.25h-7v7H5.5',
  'dead-letters': 'M2.5 4h11v8.5h-11zM6.4 6.6l3.3 3.3M9.7 6.6 6.4 9.9',
  disk: 'M3 4.25c0-1 2.25-1.9 5-1.9s5 .9 5 1.9-2.25 1.9-5 1.9-5-.9-5-1.9zv7.5c0 1 2.25 1.9 5 1.9s5-.9 5-1.9v-7.5M3 8c0 1 2.25 1.9 5 1.9S13 9 13 8',
  down: 'M3.75 6 8 10.25 12.25 6',
  edit: 'M3 13l.75-3L10.5 3.25l2.25 2.25L6 12.25zM9.25 4.5 11.5 6.75',
  endpoints: 'M7 3H3v10h4M6 8h7.25M10.75 5.5 13.25 8l-2.5 2.5',
  events: 'M6 4h7.5M6 8h7.5M6 12h7.5M2.75 4h.01M2.75 8h.01M2.75 12h.01',
  keys: 'M7.75 10.75a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0zM7.1 8.9 13 3M10.6 5.4l1.9 1.9',
  lanes: 'M3 2.75v10.5M13 2.75v10.5M3 5.75h10M3 10.75c1.7-1.2 3.3-1.2 5 0s3.3 1.2 5 0',
  limits: 'M2.75 11.5a5.5 5.5 0 1 1 10.5 0M8 10.5l2.75-3.75',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  overview: 'M2.75 13V9M6.25 13V3.5M9.75 13V7M13.25 13V4.75',
  plus: 'M8 3.25v9.5M3.25 8h9.5',
  replays: 'M3 8a5 5 0 1 0 1.7-3.75M2.9 2.75v2.9h2.9',
  right: 'M6 3.75 10.25 8 6 12.25',
  runs: 'M5 3.25v9.5L12.5 8z',
  search: 'M11.25 7a4.25 4.25 0 1 1-8.5 0 4.25 4.25 0 0 1 8.5 0zM10.25 10.25 13.5 13.5',
  signout: 'M9 3h4v10H9M7 5.5 4.5 8 7 10.5M4.5 8H10',
  sources: 'M9 3h4v10H9M2.5 8h6.75M6.75 5.5 9.25 8l-2.5 2.5',
  user: 'M10.5 5.5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0zM3.25 13.25c.5-2.4 2.4-3.75 4.75-3.75s4.25 1.35 4.75 3.75',
  's-idle': 'M12.5 8a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0z',
  's-held': 'M5.25 3.25v9.5M10.75 3.25v9.5',
  's-limit': 'M2.75 9.75 7.5 2.9M4.75 13.1 11.6 3.1M9 13.1l4.25-6.2',
  's-pending':
    'M5.6 3.7A5 5 0 0 1 8 3M10.8 3.9A5 5 0 0 1 12.6 6M13 8.6a5 5 0 0 1-1 2.5M9.9 12.7a5 5 0 0 1-2.6.3M5 12.1a5 5 0 0 1-1.6-2.1M3 7.6A5 5 0 0 1 3.9 5.3',
  's-ready': 'M3.75 4 7.5 8l-3.75 4M8.75 4l3.75 4-3.75 4',
  's-retry': 'M3.25 8a4.75 4.75 0 1 0 1.6-3.55M3.1 2.6v3h3',
  's-off': 'M13 8A5 5 0 1 1 3 8a5 5 0 0 1 10 0zM4.5 4.5l7 7',
} as const

const SHAPES = {
  's-blocked': 'M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5zM4.5 7h7v2h-7z',
  's-dead':
    'M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5zM5.1 6.2 6.2 5.1 8 6.9l1.8-1.8 1.1 1.1L9.1 8l1.8 1.8-1.1 1.1L8 9.1l-1.8 1.8-1.1-1.1L6.9 8z',
  's-lapsed': 'M9.5 1.5 3.5 9h3.75L6.5 14.5l6-7.75H8.75z',
  's-run': 'M4.25 2.9v10.2c0 .4.45.65.8.42l7.9-5.1a.5.5 0 0 0 0-.84l-7.9-5.1a.5.5 0 0 0-.8.42z',
  's-up': 'M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5zm-.9 9.2L4.4 8.2l1.1-1.1 1.6 1.65 3.4-3.65 1.1 1.05z',
  's-wait':
    'M4.75 2A2.75 2.75 0 0 0 2 4.75v6.5A2.75 2.75 0 0 0 4.75 14h6.5A2.75 2.75 0 0 0 14 11.25v-6.5A2.75 2.75 0 0 0 11.25 2zM3.5 8.25v-3.5c0-.7.55-1.25 1.25-1.25h6.5c.7 0 1.25.55 1.25 1.25v3.5z',
  's-warn': 'M8 1.9 14.6 13.6H1.4zM7.2 6h1.6v3.8H7.2zm0 4.8h1.6v1.5H7.2z',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 1.5a4.5 4.5 0 1 1 0 9z',
} as const

const HEAVY: ReadonlySet<string> = new Set(['s-held', 's-limit', 's-ready', 's-retry', 'more'])

export type IconName = keyof typeof LINES | keyof typeof SHAPES

export function Icon({ name, size = 16, tone }: { name: IconName; size?: 12 | 14 | 16; tone?: string }): JSX.Element {
  const isLine = Object.hasOwn(LINES, name)
  const kind = isLine ? (HEAVY.has(name) ? ' heavy' : '') : ' full'
  const path = isLine ? LINES[name as keyof typeof LINES] : SHAPES[name as keyof typeof SHAPES]
  return (
    <svg class={`icon i${size}${kind}${tone === undefined ? '' : ` c-${tone}`}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={path} fill-rule="evenodd" />
    </svg>
  )
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
      <rect class="logo-ground" width="24" height="24" rx="6" />
      <path class="logo-water" d="M5.5 15.2c2.2-1.5 4.3-1.5 6.5 0s4.3 1.5 6.5 0v3.3h-13z" />
      <path class="logo-gate" d="M5.5 4.75V18.5m13-13.75V18.5M5.5 6h13m-10 0v5.5h7V6" />
    </svg>
  )
}
