// The frame around every page: navigation, top bar, notes about the connection, toast.
import type { ComponentChildren, JSX } from 'preact'
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { second } from '../lib/clock.ts'
import { bytes, clock, countdown, count } from '../lib/format.ts'
import { sectionOf, type PageName } from '../lib/routes.ts'
import type { Status } from '../lib/types.ts'
import { go, place } from '../state/router.ts'
import { mayOperate, session, signOut } from '../state/session.ts'
import { status, statusError } from '../state/status.ts'
import { isLive, lost, reconnect } from '../state/stream.ts'
import { toggleTheme } from '../state/theme.ts'
import { dismissToast, toast } from '../state/toast.ts'
import { useKeys } from '../state/keyboard.ts'
import { Bones, IconButton, Note } from './basics.tsx'
import { Icon, Logo, type IconName } from './icon.tsx'
import { Help, isHelpOpen } from './help.tsx'
import { isPaletteOpen, Palette } from './palette.tsx'
import { Patterns } from './patterns.tsx'

interface Target {
  readonly page: PageName & IconName
  readonly path: string
  readonly text: string
  readonly key: string
  readonly badge?: (status: Status) => { readonly count: number; readonly tone?: string }
}

const OVERVIEW: Target = { page: 'overview', path: './', text: 'Overview', key: 'o' }
const GROUPS: readonly { readonly name: string; readonly targets: readonly Target[] }[] = [
  {
    name: 'Watch',
    targets: [
      {
        page: 'sources',
        path: 'sources',
        text: 'Sources',
        key: 's',
        badge: ({ refused }) => ({ count: refused, tone: 'ready' }),
      },
      { page: 'events', path: 'events', text: 'Events', key: 'e' },
      { page: 'lanes', path: 'lanes', text: 'Lanes', key: 'l', badge: ({ lanes }) => ({ count: lanes.total }) },
      { page: 'runs', path: 'runs', text: 'Runs', key: 'r' },
      {
        page: 'endpoints',
        path: 'endpoints',
        text: 'Endpoints',
        key: 'n',
        badge: ({ endpoints }) =>
          endpoints.down > 0 ? { count: endpoints.down, tone: 'fail' } : { count: endpoints.degraded, tone: 'ready' },
      },
      {
        page: 'limits',
        path: 'limits',
        text: 'Limits',
        key: 'm',
        badge: ({ limits }) => ({ count: limits.slowed + limits.paused, tone: 'limit' }),
      },
    ],
  },
  {
    name: 'Fix',
    targets: [
      {
        page: 'dead-letters',
        path: 'dead-letters',
        text: 'Dead letters',
        key: 'd',
        badge: ({ deadLetters, unrouted }) => ({ count: deadLetters + unrouted, tone: 'fail' }),
      },
      {
        page: 'replays',
        path: 'replays',
        text: 'Replays',
        key: 'p',
        badge: ({ replays }) => ({ count: replays.running }),
      },
      {
        page: 'alerts',
        path: 'alerts',
        text: 'Alerts',
        key: 'w',
        badge: ({ alerts }) => ({ count: alerts.raised, tone: 'fail' }),
      },
    ],
  },
  {
    name: 'Trust',
    targets: [
      { page: 'audit', path: 'audit', text: 'Audit log', key: 'a' },
      { page: 'keys', path: 'keys', text: 'Keys', key: 'k' },
    ],
  },
]

const TARGETS = [OVERVIEW, ...GROUPS.flatMap(({ targets }) => targets)]
const STORES: Readonly<Record<string, string>> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  redis: 'Redis',
  memory: 'Memory',
}

function NavLink({ target }: { target: Target }): JSX.Element {
  const isHere = sectionOf(place.value.page) === target.page
  const badge = status.value === undefined ? undefined : target.badge?.(status.value)
  return (
    <a class="to" href={target.path} aria-current={isHere ? 'page' : undefined}>
      <Icon name={target.page} />
      {target.text}
      {badge !== undefined && badge.count > 0 && (
        <span class={`badge${badge.tone === undefined ? '' : ` ${badge.tone}`}`}>{count(badge.count)}</span>
      )}
    </a>
  )
}

function Foot(): JSX.Element {
  const who = session.value
  const app = who?.app
  return (
    <div class="nav-foot">
      {app !== undefined && (
        <div>
          <Icon name="disk" size={14} />
          <span>
            <b>{STORES[app.store] ?? app.store}</b>
            {app.bytes !== undefined && `, ${bytes(app.bytes)}`}
            {app.durable === false && ', loses events in a crash'}
          </span>
        </div>
      )}
      {who !== null && who !== undefined && (
        <div>
          <Icon name="user" size={14} />
          <span>
            <b>{who.name}</b>, {mayOperate.value ? 'may operate' : 'may read'}
          </span>
          {who.canSignOut && <IconButton icon="signout" label="Sign out" onClick={() => void signOut()} />}
        </div>
      )}
    </div>
  )
}

function Nav(): JSX.Element {
  return (
    <nav class="nav" aria-label="Main">
      <a class="brand" href="./">
        <Logo />
        Sluice
      </a>
      <NavLink target={OVERVIEW} />
      {GROUPS.map(({ name, targets }) => (
        <div key={name}>
          <h2>{name}</h2>
          {targets.map((target) => (
            <NavLink key={target.page} target={target} />
          ))}
        </div>
      ))}
      <Foot />
    </nav>
  )
}

const isMoreOpen = signal(false)

/** On narrow screens the navigation is four tabs and the rest. */
function Tabs(): JSX.Element {
  const here = sectionOf(place.value.page)
  const tab = (page: PageName & IconName, path: string, text: string): JSX.Element => (
    <a href={path} aria-current={here === page ? 'page' : undefined}>
      <Icon name={page} />
      {text}
    </a>
  )
  useEffect(() => {
    isMoreOpen.value = false
  }, [place.value])
  return (
    <>
      {isMoreOpen.value && (
        <nav class="more-tabs" aria-label="More pages">
          {TARGETS.map((target) => (
            <NavLink key={target.page} target={target} />
          ))}
          <Foot />
        </nav>
      )}
      <nav class="tabs" aria-label="Tabs">
        {tab('overview', './', 'Overview')}
        {tab('lanes', 'lanes', 'Lanes')}
        {tab('events', 'events', 'Events')}
        {tab('dead-letters', 'dead-letters', 'Dead')}
        <button type="button" aria-expanded={isMoreOpen.value} onClick={() => (isMoreOpen.value = !isMoreOpen.value)}>
          <Icon name="more" />
          More
        </button>
      </nav>
    </>
  )
}

function Live(): JSX.Element {
  return isLive.value ? (
    <span class="live">
      <i />
      Live
    </span>
  ) : (
    <span class="live off">
      <i />
      {lost.value === undefined ? 'Connecting' : 'Not live'}
    </span>
  )
}

/** One note for the whole page says that what is shown may be old, and how old. */
function Connection(): JSX.Element | null {
  const at = second.value
  const failure = statusError.value
  if (failure !== undefined && failure.status !== 401) {
    return (
      <Note tone="fail" icon="s-dead">
        <b>{failure.message}</b> What you see is of {clock(status.value?.now ?? at)}. {failure.fix}{' '}
        <code>{failure.code}</code>
      </Note>
    )
  }
  const gone = lost.value
  // A reconnect that succeeds at once is not shown.
  if (gone === undefined || Date.now() - gone.at < 2_500) return null
  return (
    <Note tone="still" icon="s-pending">
      <b>The live stream stopped {countdown(Date.now() - gone.at)} ago.</b> Lists still refresh every few seconds. The
      next attempt is in {countdown(Math.max(0, gone.retryAt - Date.now()))}.{' '}
      <button type="button" class="link" onClick={reconnect}>
        Connect now
      </button>
    </Note>
  )
}

function Toast(): JSX.Element {
  const shown = toast.value
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown !== undefined && (
        <div class="toast">
          <Icon name={shown.tone === 'done' ? 'check' : 's-dead'} tone={shown.tone === 'done' ? 'run' : 'fail'} />
          <span>
            {shown.text} {shown.detail !== undefined && <span class="soft">{shown.detail}</span>}
          </span>
          {shown.link !== undefined && <a href={shown.link.to}>{shown.link.text}</a>}
          <IconButton icon="close" label="Dismiss" onClick={dismissToast} />
        </div>
      )}
    </div>
  )
}

/** The keys that work on every page. */
function useShellKeys(): void {
  useKeys({
    '/': () => (isPaletteOpen.value = true),
    '?': () => (isHelpOpen.value = !isHelpOpen.value),
    t: toggleTheme,
    ...Object.fromEntries(TARGETS.map(({ key, path }) => [`g ${key}`, () => go(path)])),
  })
}

export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
  useShellKeys()
  return (
    <div class="app">
      <Patterns />
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main')?.focus()}>
        Skip to content
      </button>
      <Nav />
      <div class="page">{children}</div>
      <Tabs />
      <Toast />
      {isPaletteOpen.value && <Palette />}
      {isHelpOpen.value && <Help />}
    </div>
  )
}

/** A page: its title, one remark, and its content. */
export function Frame(props: {
  title: string
  remark?: ComponentChildren
  path?: readonly { readonly text: string; readonly to: string }[]
  children: ComponentChildren
}): JSX.Element {
  const { title, remark, path = [], children } = props
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  return (
    <>
      <header class="top">
        <div class="crumbs">
          {path.map(({ text, to }) => (
            <span key={to} class="crumb">
              <a href={to}>{text}</a>
              <i aria-hidden="true">/</i>
            </span>
          ))}
          <h1 class="cut">{title}</h1>
        </div>
        {remark !== undefined && <span class="dim cut remark">{remark}</span>}
        <span class="push" />
        <button
          type="button"
          class="search"
          onClick={() => (isPaletteOpen.value = true)}
          aria-label="Find events, lanes, payloads"
        >
          <Icon name="search" size={14} />
          <span class="cut">Find events, lanes, payloads</span>
          <kbd aria-hidden="true">/</kbd>
        </button>
        <Live />
        <IconButton icon="theme" label="Switch between light and dark" onClick={toggleTheme} />
      </header>
      <main class="main" tabIndex={-1}>
        <Connection />
        {children}
      </main>
    </>
  )
}

export function LoadingPage({ title }: { title: string }): JSX.Element {
  return (
    <Frame title={title}>
      <Bones rows={6} />
    </Frame>
  )
}
