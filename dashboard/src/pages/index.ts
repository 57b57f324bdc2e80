// Every page of the dashboard. A page other than the first is loaded when it is opened.
import type { ComponentType } from 'preact'
import type { PageName } from '../lib/routes.ts'

export type PageView = ComponentType

export const PAGE_LOADERS: Readonly<Partial<Record<PageName, () => Promise<PageView>>>> = {
  events: async () => (await import('./events/events.tsx')).Events,
  event: async () => (await import('./events/event.tsx')).EventPage,
  lanes: async () => (await import('./lanes/lanes.tsx')).Lanes,
  lane: async () => (await import('./lane/lane.tsx')).LanePage,
  runs: async () => (await import('./runs/runs.tsx')).Runs,
  'dead-letters': async () => (await import('./dead-letters/dead-letters.tsx')).DeadLetters,
  endpoints: async () => (await import('./endpoints/endpoints.tsx')).Endpoints,
  endpoint: async () => (await import('./endpoints/endpoint.tsx')).EndpointPage,
  replays: async () => (await import('./replays/replays.tsx')).Replays,
  'replay-new': async () => (await import('./replays/planner.tsx')).Planner,
  limits: async () => (await import('./limits/limits.tsx')).Limits,
  sources: async () => (await import('./sources/sources.tsx')).Sources,
  alerts: async () => (await import('./alerts/alerts.tsx')).Alerts,
  audit: async () => (await import('./audit/audit.tsx')).Audit,
  keys: async () => (await import('./keys/keys.tsx')).Keys,
  run: async () => (await import('./runs/run.tsx')).RunPage,
}
