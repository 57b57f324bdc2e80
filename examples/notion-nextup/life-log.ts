// The life of a user in the words of the design: enqueued, dequeued, started, finished, requeued, skipped. The engine emits
// all of them; this module only renames them.
import type { EventMap, EventName, Millis, Sluice } from 'sluice'

export interface LifeLine {
  readonly what: 'enqueued' | 'dequeued' | 'started' | 'finished' | 'requeued' | 'retries' | 'dead' | 'skipped'
  readonly user: string
  /** What else there is to say. */
  readonly more: string
}

const FLOW = 'rank-user'

type Lines = { readonly [N in EventName]?: (what: EventMap[N]) => readonly LifeLine[] }

const LINES: Lines = {
  'event.skipped': ({ flow, source }) => [
    {
      what: 'skipped',
      user: '-',
      more: flow === FLOW ? `nobody is assigned (${source})` : 'our own write, or no task',
    },
  ],
  // A lane is in the order of ready lanes from its deadline on; no timer fires before it is claimed.
  'lane.due': ({ key, late }) => [
    { what: 'enqueued', user: key, more: `${seconds(late)} ago` },
    { what: 'dequeued', user: key, more: `waited ${seconds(late)}` },
  ],
  'run.started': ({ key, events, attempt }) => [
    { what: 'started', user: key, more: `${events} events, attempt ${attempt}` },
  ],
  'run.done': ({ key, ms, counts }) => {
    const { loaded = 0, updated = 0 } = counts
    const changes = `${updated} of ${loaded} tasks updated in ${seconds(ms)}`
    return [
      { what: 'finished', user: key, more: changes },
      ...(updated === 0 ? [{ what: 'skipped', user: key, more: 'no changes' } as const] : []),
    ]
  },
  'run.snoozed': ({ key, after }) => [{ what: 'requeued', user: key, more: `more to write, after ${seconds(after)}` }],
  'run.deferred': ({ key, why }) => [{ what: 'requeued', user: key, more: why }],
  'run.retry': ({ key, error, after }) => [{ what: 'retries', user: key, more: `after ${seconds(after)}: ${error}` }],
  'run.dead': ({ key, error }) => [{ what: 'dead', user: key, more: error }],
}

/** Also when the app has yet to start. */
export function lifeLog(app: Sluice, tell: (line: LifeLine) => void): void {
  app.onAny((name, what) => {
    if ('flow' in what && what.flow !== FLOW && name !== 'event.skipped') return
    for (const line of LINES[name]?.(what) ?? []) tell(line)
  })
  // What came during a run is in the line again when that ends.
  app.on('run.done', async ({ flow, key }) => {
    if (flow !== FLOW) return
    const lane = await app.admin.lanes.get(FLOW, key)
    if (lane !== undefined && lane.waiting > 0)
      tell({ what: 'requeued', user: key, more: `${lane.waiting} new events` })
  })
}

function seconds(ms: Millis): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
