// The overview: what is wrong, where everything flows, and how the last hour went.
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Bones } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { second } from '../../lib/clock.ts'
import { dayAndTime } from '../../lib/format.ts'
import type { DeadReasons, Endpoint, Limit, Page, Pulse, Source, Stats } from '../../lib/types.ts'
import { useResource } from '../../state/resource.ts'
import { status } from '../../state/status.ts'
import { FirstRun } from './first-run.tsx'
import { Tiles } from './tiles.tsx'
import { VerdictPanel } from './verdict.tsx'
import { Works } from './works.tsx'

const HOUR = 'v1/stats?window=1h&step=1m'

export function Overview(): JSX.Element {
  const state = status.value
  const isFirst = useFirstRun()
  const isFresh = state === undefined || isFirst
  const stats = useResource<Stats>(isFresh ? undefined : HOUR, { every: 5_000 })
  const bySource = useResource<Stats>(isFresh ? undefined : `${HOUR}&by=source`, { every: 10_000 })
  const byFlow = useResource<Stats>(isFresh ? undefined : `${HOUR}&by=flow`, { every: 10_000 })
  const pulse = useResource<Pulse>(isFresh ? undefined : 'v1/pulse', { every: 1_000 })
  const endpoints = useResource<Page<Endpoint>>(isFresh ? undefined : 'v1/webhooks/subscribers', { every: 5_000 })
  const limits = useResource<Page<Limit>>(isFresh ? undefined : 'v1/limits', { every: 3_000 })
  const reasons = useResource<DeadReasons>(isFresh ? undefined : 'v1/dead-letters/reasons', { every: 5_000 })
  const sources = useResource<Page<Source>>('v1/sources', { every: 10_000 })
  // The pace of a replay is an internal limit, which needs no action.
  const shownLimits = limits.data?.items.filter(({ name }) => !name.startsWith('sluice.')) ?? []
  const title = 'Overview'
  const remark = dayAndTime(second.value)
  if (state === undefined) {
    return (
      <Frame title={title}>
        <Bones rows={6} />
      </Frame>
    )
  }
  if (isFirst) {
    return (
      <Frame title={title} remark={globalThis.location.origin}>
        <FirstRun sources={sources.data?.items ?? []} />
      </Frame>
    )
  }
  return (
    <Frame title={title} remark={remark}>
      <VerdictPanel
        status={state}
        stats={stats.data}
        endpoints={endpoints.data?.items ?? []}
        limits={shownLimits}
        reasons={reasons.data}
        sources={sources.data?.items ?? []}
      />
      <Works
        status={state}
        pulse={pulse.data}
        bySource={bySource.data}
        byFlow={byFlow.data}
        endpoints={endpoints.data?.items ?? []}
        limits={shownLimits}
        sources={sources.data?.items ?? []}
      />
      <Tiles status={state} stats={stats.data} endpoints={endpoints.data?.items ?? []} />
    </Frame>
  )
}

/** The first-run state stays until its reader leaves the page, so that the first event can be seen on its way. */
function useFirstRun(): boolean {
  const began = useRef<boolean | undefined>(undefined)
  const state = status.value
  if (began.current === undefined && state !== undefined) {
    began.current = state.lastEvent === undefined && state.lanes.total === 0 && state.deadLetters === 0
  }
  useEffect(() => () => (began.current = undefined), [])
  return began.current === true
}
