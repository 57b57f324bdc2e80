import type { IconName } from './icon.tsx'

/** The pages of the navigation, for the search. */
export const PAGES: readonly { readonly path: string; readonly text: string; readonly icon: IconName }[] = [
  { path: './', text: 'Overview', icon: 'overview' },
  { path: 'sources', text: 'Sources', icon: 'sources' },
  { path: 'events', text: 'Events', icon: 'events' },
  { path: 'lanes', text: 'Lanes', icon: 'lanes' },
  { path: 'runs', text: 'Runs', icon: 'runs' },
  { path: 'endpoints', text: 'Endpoints', icon: 'endpoints' },
  { path: 'limits', text: 'Limits', icon: 'limits' },
  { path: 'dead-letters', text: 'Dead letters', icon: 'dead-letters' },
  { path: 'replays', text: 'Replays', icon: 'replays' },
  { path: 'replays/new', text: 'Plan a replay', icon: 'replays' },
  { path: 'alerts', text: 'Alerts', icon: 'alerts' },
  { path: 'audit', text: 'Audit log', icon: 'audit' },
  { path: 'keys', text: 'Keys', icon: 'keys' },
]
