// Chooses what to show: the sign-in, or a page in its frame.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure } from './components/basics.tsx'
import { Frame, LoadingPage, Shell } from './components/shell.tsx'
import type { PageName } from './lib/routes.ts'
import { PAGE_LOADERS, type PageView } from './pages/index.ts'
import { Overview } from './pages/overview/overview.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { place } from './state/router.ts'
import { loadSession, session, sessionError } from './state/session.ts'

const loaded = new Map<PageName, PageView>([['overview', Overview]])

async function load(name: PageName): Promise<void> {
  const view = await PAGE_LOADERS[name]?.()
  if (view !== undefined) loaded.set(name, view)
}

/** The other pages are fetched once the first one has had time to show itself, so that they open without a request for code. */
const FETCH_PAGES_AFTER = 1_500

async function loadAll(): Promise<void> {
  for (const name of Object.keys(PAGE_LOADERS) as PageName[]) if (!loaded.has(name)) await load(name)
}

function usePage(name: PageName): PageView | undefined {
  const [, setLoaded] = useState<PageName>()
  useEffect(() => {
    if (loaded.has(name)) return
    void load(name).then(() => setLoaded(name))
  }, [name])
  return loaded.get(name)
}

export function App(): JSX.Element {
  const who = session.value
  const isSignedIn = who !== null && who !== undefined
  useEffect(() => {
    if (!isSignedIn) return undefined
    // A page that cannot be fetched now is fetched when it is opened.
    const timer = setTimeout(() => void loadAll().catch(() => {}), FETCH_PAGES_AFTER)
    return () => clearTimeout(timer)
  }, [isSignedIn])
  if (who === null) return <SignIn />
  return <Shell>{who === undefined ? <Start /> : <Current />}</Shell>
}

function Start(): JSX.Element {
  const error = sessionError.value
  if (error === undefined) return <LoadingPage title="Sluice" />
  return (
    <Frame title="Sluice">
      <Failure error={error} onRetry={() => void loadSession()} />
    </Frame>
  )
}

function Current(): JSX.Element {
  const { page } = place.value
  const View = usePage(page)
  if (View !== undefined) return <View />
  if (PAGE_LOADERS[page] !== undefined) return <LoadingPage title="Loading" />
  return (
    <Frame title="Not found">
      <p>
        There is no such page. <a href="./">Open the overview</a>
      </p>
    </Frame>
  )
}
