// Where everything flows: sources at the left, flows with their pulse in the middle, limits and endpoints at the right.
import type { JSX } from 'preact'
import { Icon } from '../../components/icon.tsx'
import { second } from '../../lib/clock.ts'
import { count, countdown, duration, percent, plural, visible } from '../../lib/format.ts'
import { linkTo } from '../../lib/routes.ts'
import { healthOf, isExhausted, limitLook, type Look } from '../../lib/states.ts'
import type { Endpoint, FlowStatus, Limit, Pulse, Source, Stats, Status } from '../../lib/types.ts'
import { lastMinute } from '../../lib/rates.ts'
import { Links } from './links.tsx'
import { Ribbons, type RibbonEnd } from './ribbons.tsx'

interface WorksProps {
  status: Status
  pulse: Pulse | undefined
  bySource: Stats | undefined
  byFlow: Stats | undefined
  endpoints: readonly Endpoint[]
  limits: readonly Limit[]
  sources: readonly Source[]
}

const MOST_FLOWS = 8
const ROW = 50

export function Works(props: WorksProps): JSX.Element {
  const { status, pulse, bySource, byFlow, endpoints, limits, sources } = props
  const now = second.value
  const flows = busiest(status.flows, byFlow)
  const ways = waysOf(bySource, sources)
  const outs = outsOf(endpoints, limits, now)
  const most = Math.max(1, ...flows.map((flow) => peakOf(pulse, flow.flow)))
  const height = Math.max(flows.length * ROW, Math.max(ways.length, outs.length) * 36, ROW)
  const rates = flows.map((flow) => lastMinute(groupOf(byFlow, flow.flow)?.series).received)
  const names = flows.map(({ flow }) => flow)
  const deliveries = flows.filter(({ delivery }) => delivery === true).map(({ flow }) => flow)
  return (
    <section class="panel" aria-label="What flows">
      <div class="works-head">
        <span>Sources, a minute</span>
        <span />
        <div class="flow-head">
          <span>Flows</span>
          <svg class="pic" width="100%" height="34" aria-hidden="true">
            <text class="t-dim" y="22">
              −60 s
            </text>
            <rect class="now-pill" x="50%" y="8" width="40" height="19" rx="9.5" transform="translate(-20 0)" />
            <text class="now-text" x="50%" y="21.5" text-anchor="middle">
              now
            </text>
            <text class="t-dim" x="100%" y="22" text-anchor="end">
              +60 s
            </text>
          </svg>
          <span class="num">Waiting</span>
          <span class="num">Ready</span>
          <span class="num">Runs</span>
          <span class="num">p95</span>
        </div>
        <span />
        <span>Limits and endpoints</span>
      </div>
      <div class="works">
        <ul class="ways">
          {ways.map((way) => (
            <li key={way.name}>
              {way.to === undefined ? (
                <b class="cut">{way.text}</b>
              ) : (
                <a class="cut" href={way.to}>
                  <b>{way.text}</b>
                </a>
              )}
              <span class="rate">
                {way.refused > 0 && <Icon name="s-warn" size={12} tone="ready" />} {count(way.perMinute)}
              </span>
            </li>
          ))}
          {ways.length === 0 && <li class="dim">No source</li>}
        </ul>
        <Ribbons
          height={height}
          left={ways.map((way): RibbonEnd => ({ weight: way.perMinute, tone: 'wait' }))}
          right={rates.map((weight): RibbonEnd => ({ weight, tone: 'wait' }))}
        />
        <div class="flows">
          {flows.map((flow) => (
            <FlowRow key={flow.flow} flow={flow} pulse={pulse} most={most} p95={groupOf(byFlow, flow.flow)?.p95Ms} />
          ))}
          {flows.length === 0 && <p class="dim pad">No flow is declared.</p>}
        </div>
        <Links
          height={height}
          weights={rates}
          ends={outs.map(({ flows: from = deliveries, look }) => ({
            tone: look.tone,
            from: from.map((flow) => names.indexOf(flow)).filter((index) => index !== -1),
          }))}
        />
        <ul class="outs">
          {outs.map((out) => (
            <li key={out.to + out.text} class={out.look.tone}>
              <Icon name={out.look.icon} size={14} tone={out.look.tone} />
              <a class="cut" href={out.to}>
                <b>{out.text}</b>
              </a>
              <span class={`rate cut${out.isBad ? ` c-${out.look.tone}` : ''}`}>{out.detail}</span>
            </li>
          ))}
          {outs.length === 0 && <li class="dim">None yet</li>}
        </ul>
      </div>
      {status.flows.length > flows.length && (
        <footer>
          The {count(flows.length)} busiest of {plural(status.flows.length, 'flow')}.{' '}
          <a class="link" href="lanes">
            All lanes
          </a>
        </footer>
      )}
    </section>
  )
}

function groupOf(stats: Stats | undefined, flow: string): Stats['groups'][number] | undefined {
  return stats?.groups.find((group) => group.flow === flow)
}

function busiest(flows: readonly FlowStatus[], byFlow: Stats | undefined): readonly FlowStatus[] {
  if (flows.length <= MOST_FLOWS) return flows
  const weight = (flow: FlowStatus): number => flow.events + (groupOf(byFlow, flow.flow)?.received ?? 0)
  const chosen = new Set([...flows].toSorted((one, other) => weight(other) - weight(one)).slice(0, MOST_FLOWS))
  return flows.filter((flow) => chosen.has(flow))
}

interface Way {
  readonly name: string
  readonly text: string
  readonly to: string | undefined
  readonly perMinute: number
  readonly refused: number
}

const MOST_WAYS = 8

function waysOf(stats: Stats | undefined, sources: readonly Source[]): readonly Way[] {
  const ways = new Map<string, Way>()
  for (const source of sources) {
    const refused = source.refusedHour ?? 0
    const to = `sources/${encodeURIComponent(source.name)}`
    ways.set(source.name, { name: source.name, text: visible(source.name), to, perMinute: 0, refused })
  }
  for (const group of stats?.groups ?? []) {
    const name = group.source ?? ''
    // What the engine tells flows about itself is no source of anybody's.
    if (name === 'sluice') continue
    const known = ways.get(name)
    const text = known?.text ?? (name === '' || name === 'publish' ? 'publish()' : visible(name))
    const to = known?.to
    ways.set(name, { name, text, to, perMinute: lastMinute(group.series).received, refused: known?.refused ?? 0 })
  }
  return [...ways.values()].toSorted((one, other) => other.perMinute - one.perMinute).slice(0, MOST_WAYS)
}

interface Out {
  readonly to: string
  /** The flows that lead here; undefined: all deliveries. */
  readonly flows?: readonly string[]
  readonly text: string
  readonly look: Look
  readonly detail: string
  readonly isBad: boolean
}

const MOST_LIMITS = 4
const MOST_BAD = 4

function outsOf(endpoints: readonly Endpoint[], limits: readonly Limit[], now: number): readonly Out[] {
  const bad = (limit: Limit): boolean => limitLook(limit, now).tone !== 'run' || isExhausted(limit, now)
  const shownLimits = limits
    .toSorted((one, other) => Number(bad(other)) - Number(bad(one)) || (other.used ?? 0) - (one.used ?? 0))
    .slice(0, MOST_LIMITS)
    .map((limit) => limitOut(limit, now))
  const broken = endpoints.filter((endpoint) => ['down', 'disabled', 'degraded'].includes(healthOf(endpoint)))
  const shownBad = broken
    .toSorted((one, other) => Number(healthOf(other) === 'down') - Number(healthOf(one) === 'down'))
    .slice(0, MOST_BAD)
    .map((endpoint) => endpointOut(endpoint, now))
  const rest = endpoints.length - shownBad.length
  const paused = endpoints.filter((endpoint) => healthOf(endpoint) === 'paused').length
  const well: Out[] =
    rest === 0
      ? []
      : [
          {
            to: 'endpoints',
            text: plural(rest, 'endpoint'),
            look: { tone: 'run', icon: 's-up', word: 'Up' },
            detail: paused === 0 ? 'up' : `up, ${count(paused)} paused`,
            isBad: false,
          },
        ]
  return [...shownLimits, ...shownBad, ...well]
}

function limitOut(limit: Limit, now: number): Out {
  const look = limitLook(limit, now)
  const isFull = isExhausted(limit, now)
  const waiting = limit.waiting ?? 0
  const detail =
    limit.pausedUntil !== undefined && limit.pausedUntil > now
      ? `paused ${countdown(limit.pausedUntil - now)}`
      : (limit.stretch ?? 1) > 1.005
        ? `slowed ×${(limit.stretch ?? 1).toFixed(1)}`
        : isFull && waiting > 0
          ? `${count(waiting)} wait`
          : limit.used === undefined
            ? ''
            : percent(limit.used)
  const shown = isFull && look.tone === 'run' ? ({ ...look, tone: 'limit', icon: 's-limit' } as const) : look
  return {
    to: `limits/${encodeURIComponent(limit.name)}`,
    flows: limit.flows ?? [],
    text: visible(limit.name),
    look: shown,
    detail,
    isBad: shown.tone !== 'run',
  }
}

function endpointOut(endpoint: Endpoint, now: number): Out {
  const health = healthOf(endpoint)
  const tone = health === 'degraded' ? 'ready' : 'fail'
  const since = endpoint.health?.failingSince
  return {
    to: `endpoints/${encodeURIComponent(endpoint.id)}`,
    text: visible(endpoint.name === '' ? endpoint.url : endpoint.name),
    look: { tone, icon: tone === 'fail' ? 's-dead' : 's-warn', word: health },
    detail: since === undefined ? health : `${health} ${countdown(now - since)}`,
    isBad: true,
  }
}

function peakOf(pulse: Pulse | undefined, flow: string): number {
  const series = pulse?.flows[flow]
  if (series === undefined) return 0
  return Math.max(0, ...bucketed(series.ended), ...bucketed(series.failed), ...bucketed(series.due))
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

/** Pairs of seconds, because bars narrower than that are hard to see. */
function bucketed(seconds: readonly number[]): number[] {
  return Array.from({ length: 30 }, (_, index) => (seconds[index * 2] ?? 0) + (seconds[index * 2 + 1] ?? 0))
}

function FlowRow(props: {
  flow: FlowStatus
  pulse: Pulse | undefined
  most: number
  p95: number | undefined
}): JSX.Element {
  const { flow, pulse, most, p95 } = props
  const isFailing = (flow.blocked ?? 0) > 0
  const about = [flow.window ?? '', flow.delivery === true ? 'delivery' : ''].filter((text) => text !== '').join(', ')
  return (
    <a class="flow-row" href={linkTo('lanes', { flow: flow.flow })}>
      <span class="name">
        <b class="cut">{visible(flow.flow)}</b>
        <span class="cut">{flow.paused === undefined ? about : `paused by ${visible(flow.paused.by)}`}</span>
      </span>
      <FlowPulse flow={flow} pulse={pulse} most={most} />
      <span class={`num${isFailing ? ' c-fail' : flow.waiting === 0 ? ' dim' : ''}`}>{count(flow.events)}</span>
      <span class={`num ${flow.ready > 0 ? 'c-ready' : 'dim'}`}>{count(flow.ready)}</span>
      <span class={`num${flow.running === 0 ? ' dim' : ''}`}>{count(flow.running)}</span>
      <span class="num soft">{p95 === undefined ? '–' : duration(p95)}</span>
    </a>
  )
}

const FLOOR = 41
const TALLEST = 34

function FlowPulse({ flow, pulse, most }: { flow: FlowStatus; pulse: Pulse | undefined; most: number }): JSX.Element {
  const series = pulse?.flows[flow.flow]
  const height = (value: number): number => (value === 0 ? 0 : Math.max(1.5, Math.sqrt(value / most) * TALLEST))
  const ended = bucketed(series?.ended ?? [])
  const failed = bucketed(series?.failed ?? [])
  const due = bucketed(series?.due ?? [])
  const label = `${visible(flow.flow)}: in the last minute ${plural(total(ended), 'run')} ended and ${count(
    total(failed),
  )} failed; ${plural(total(due), 'lane comes', 'lanes come')} due in the next minute`
  return (
    <svg class="pic" width="100%" height="50" role="img" aria-label={label}>
      <rect class="was" width="50%" height="50" />
      <line class="bed" x1="0" x2="100%" y1="41.5" y2="41.5" />
      {ended.map((value, index) => {
        const bad = Math.min(failed[index] ?? 0, value)
        const [all, share] = [height(value), value === 0 ? 0 : bad / value]
        return value === 0 ? null : (
          <g key={index}>
            <rect
              class="u-run"
              x={`${index * 1.667 + 0.2}%`}
              width="1.22%"
              y={FLOOR - all * (1 - share)}
              height={all * (1 - share)}
            />
            {bad > 0 && (
              <rect
                class="u-fail"
                x={`${index * 1.667 + 0.2}%`}
                width="1.22%"
                y={FLOOR - all}
                height={Math.max(2, all * share)}
              />
            )}
          </g>
        )
      })}
      {due.map((value, index) =>
        value === 0 ? null : (
          <rect
            key={index}
            class="u-wait soon"
            x={`${50.2 + index * 1.667}%`}
            width="1.22%"
            y={FLOOR - height(value)}
            height={height(value)}
          />
        ),
      )}
      {flow.ready > 0 && (
        <rect class="u-ready" x="50%" width="7" y={FLOOR - 18} height="18" rx="1" transform="translate(-9 0)" />
      )}
      <line class="now" x1="50%" x2="50%" y1="0" y2="50" />
    </svg>
  )
}
