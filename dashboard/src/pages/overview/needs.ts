// What needs somebody, most urgent first, each with the page that helps.
import { count, countdown, plural, since, visible } from '../../lib/format.ts'
import { linkTo } from '../../lib/routes.ts'
import { healthOf, isExhausted, type Look } from '../../lib/states.ts'
import type { DeadReasons, Endpoint, Limit, Source, Status } from '../../lib/types.ts'
import type { IconName } from '../../components/icon.tsx'

export interface Need {
  readonly to: string
  readonly icon: IconName
  readonly tone: Look['tone']
  readonly what: string
  readonly detail: string
  readonly when: string
}

export interface NeedsInput {
  readonly status: Status
  readonly endpoints: readonly Endpoint[]
  readonly limits: readonly Limit[]
  readonly reasons: DeadReasons | undefined
  readonly sources: readonly Source[]
  readonly now: number
}

/** More of one kind than this are one line. */
const MOST_OF_A_KIND = 2
const MOST_LESSER = 4

/** `urgentNeeds` are broken now: somebody must act. */
export function urgentNeeds(input: NeedsInput): readonly Need[] {
  return [...pausedFlows(input), ...downEndpoints(input), ...deadLetters(input), ...alerts(input)]
}

/** `lesserNeeds` may pass on their own. */
export function lesserNeeds(input: NeedsInput): readonly Need[] {
  const needs = [...tightLimits(input), ...slowEndpoints(input), ...refusals(input), ...unrouted(input)]
  return needs.slice(0, MOST_LESSER)
}

function pausedFlows({ status, now }: NeedsInput): Need[] {
  return status.flows.flatMap((flow): Need[] =>
    flow.paused === undefined
      ? []
      : [
          {
            to: linkTo('lanes', { flow: flow.flow }),
            icon: 's-held',
            tone: 'still',
            what: `${visible(flow.flow)} is paused.`,
            detail: `by ${visible(flow.paused.by)}: ${visible(flow.paused.reason)}`,
            when: since(flow.paused.since, now),
          },
        ],
  )
}

function downEndpoints({ endpoints, now }: NeedsInput): Need[] {
  const down = endpoints.filter((endpoint) => ['down', 'disabled'].includes(healthOf(endpoint)))
  const shown = down.slice(0, down.length > MOST_OF_A_KIND + 1 ? MOST_OF_A_KIND : undefined)
  const needs = shown.map((endpoint): Need => {
    const health = endpoint.health
    const waits = (endpoint.waiting ?? 0) > 0 ? `${plural(endpoint.waiting ?? 0, 'event')} waiting` : ''
    return {
      to: `endpoints/${encodeURIComponent(endpoint.id)}`,
      icon: 's-dead',
      tone: 'fail',
      what: `${visible(endpoint.name === '' ? endpoint.url : endpoint.name)} is ${healthOf(endpoint)}.`,
      detail: [visible(health?.why ?? '').replace(/\.$/, ''), waits].filter((text) => text !== '').join(', '),
      when: health?.failingSince === undefined ? '' : countdown(now - health.failingSince),
    }
  })
  if (shown.length < down.length) {
    needs.push({
      to: 'endpoints?health=down',
      icon: 's-dead',
      tone: 'fail',
      what: `${count(down.length - shown.length)} more endpoints are down.`,
      detail: '',
      when: '',
    })
  }
  return needs
}

function deadLetters({ status, reasons, now }: NeedsInput): Need[] {
  const total = status.deadLetters
  if (total === 0) return []
  const groups = reasons?.groups.filter(({ kind }) => kind !== 'unrouted') ?? []
  // The largest group says most; the rest is one line.
  const shown = groups.slice(0, groups.length > MOST_OF_A_KIND ? 1 : undefined)
  if (shown.length === 0) {
    return [{ ...DEAD, to: 'dead-letters', what: `${plural(total, 'dead letter')}.`, detail: '', when: '' }]
  }
  const needs = shown.map((group): Need => ({
    ...DEAD,
    to: linkTo('dead-letters', { flow: group.flow, reason: group.pattern ?? group.reason }),
    what: `${plural(group.count, 'dead letter')} of ${visible(group.flow)}.`,
    detail: visible(group.reason),
    when: since(group.first, now),
  }))
  const rest = total - shown.reduce((sum, group) => sum + group.count, 0)
  if (rest > 0) {
    needs.push({
      ...DEAD,
      to: 'dead-letters',
      what: `${plural(rest, 'more dead letter', 'more dead letters')}.`,
      detail: `${count(total)} in all`,
      when: '',
    })
  }
  return needs
}

const DEAD = { icon: 'dead-letters', tone: 'fail' } as const

function alerts({ status }: NeedsInput): Need[] {
  const { raised } = status.alerts
  if (raised === 0) return []
  const what = raised === 1 ? '1 alert is raised.' : `${count(raised)} alerts are raised.`
  return [{ to: 'alerts', icon: 'alerts', tone: 'fail', what, detail: '', when: '' }]
}

function tightLimits({ limits, now }: NeedsInput): Need[] {
  return limits.flatMap((limit): Need[] => {
    const need = (what: string, detail: string, when = '', tone: Look['tone'] = 'limit'): Need[] => [
      {
        to: `limits/${encodeURIComponent(limit.name)}`,
        icon: tone === 'still' ? 's-held' : 's-limit',
        tone,
        what: `${visible(limit.name)} ${what}`,
        detail,
        when,
      },
    ]
    const waiting = (limit.waiting ?? 0) > 0 ? `${plural(limit.waiting ?? 0, 'lane')} waiting` : ''
    if (limit.pausedUntil !== undefined && limit.pausedUntil > now) {
      const cause = limit.paused?.cause
      const left = `${countdown(limit.pausedUntil - now)} left`
      if (cause === 'operator') return need('is paused by a person.', waiting, left, 'still')
      return need(cause === 'response' ? `is paused by a ${limit.paused?.status ?? 429}.` : 'is paused.', waiting, left)
    }
    if (limit.stretch !== undefined && limit.stretch > 1.005)
      return need(`is slowed ${limit.stretch.toFixed(1)} times.`, waiting === '' ? 'after a 429' : waiting)
    if (isExhausted(limit, now)) return need('is exhausted.', waiting)
    return []
  })
}

function slowEndpoints({ endpoints, now }: NeedsInput): Need[] {
  const slow = endpoints.filter((endpoint) => healthOf(endpoint) === 'degraded')
  return slow.slice(0, MOST_OF_A_KIND).map((endpoint): Need => ({
    to: `endpoints/${encodeURIComponent(endpoint.id)}`,
    icon: 's-warn',
    tone: 'ready',
    what: `${visible(endpoint.name === '' ? endpoint.url : endpoint.name)} is degraded.`,
    detail: visible(endpoint.health?.why ?? ''),
    when: endpoint.health?.failingSince === undefined ? '' : countdown(now - endpoint.health.failingSince),
  }))
}

function refusals({ status, sources }: NeedsInput): Need[] {
  const refusing = sources.filter(({ refusedHour = 0 }) => refusedHour > 0)
  if (refusing.length === 0 && status.refused > 0) {
    const what = `${plural(status.refused, 'request')} refused.`
    return [{ to: 'sources', icon: 's-warn', tone: 'ready', what, detail: '', when: 'this hour' }]
  }
  return refusing.slice(0, MOST_OF_A_KIND).map((source): Need => ({
    to: `sources/${encodeURIComponent(source.name)}`,
    icon: 's-warn',
    tone: 'ready',
    what: `${visible(source.name)} refused ${plural(source.refusedHour ?? 0, 'request')}.`,
    detail: Object.keys(source.byReason ?? {})
      .map((code) => wordsOf(code))
      .join(', '),
    when: 'this hour',
  }))
}

/** Writes an error code as words: SIGNATURE_WRONG becomes "signature wrong". */
function wordsOf(code: string): string {
  return visible(code.toLowerCase().replaceAll('_', ' '))
}

function unrouted({ status }: NeedsInput): Need[] {
  if (status.unrouted === 0) return []
  const what = `${plural(status.unrouted, 'event is', 'events are')} unrouted.`
  return [{ to: 'dead-letters?kind=unrouted', icon: 's-warn', tone: 'ready', what, detail: '', when: '' }]
}
