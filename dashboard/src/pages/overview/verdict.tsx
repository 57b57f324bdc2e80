// The verdict in one sentence, the three stages of the last hour, and what needs somebody.
import type { JSX } from 'preact'
import { Icon, type IconName } from '../../components/icon.tsx'
import { second } from '../../lib/clock.ts'
import { count, plural } from '../../lib/format.ts'
import { lastMinute } from '../../lib/rates.ts'
import { healthOf, VERDICT_LOOKS, type Look } from '../../lib/states.ts'
import type { DeadReasons, Endpoint, Limit, Source, Stats, StatsPoint, Status } from '../../lib/types.ts'
import { lesserNeeds, urgentNeeds, type Need } from './needs.ts'

interface VerdictProps {
  status: Status
  stats: Stats | undefined
  endpoints: readonly Endpoint[]
  limits: readonly Limit[]
  reasons: DeadReasons | undefined
  sources: readonly Source[]
}

const NUMBERS = ['', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine']

export function VerdictPanel(props: VerdictProps): JSX.Element {
  const { status } = props
  const now = second.value
  const input = { ...props, now }
  const urgent = urgentNeeds(input)
  const lesser = lesserNeeds(input)
  return (
    <section class="panel verdict" aria-label="Verdict">
      <div class="say">
        <div>
          <h2 aria-live="polite">{headline(status, urgent.length)}</h2>
          <p>{sentenceOf(status)}</p>
        </div>
        <Stages {...props} now={now} />
      </div>
      <div class="needs">
        {urgent.length > 0 && <Needs title="Needs you" needs={urgent} />}
        {lesser.length > 0 && <Needs title="Worth a look" needs={lesser} />}
        {urgent.length + lesser.length === 0 && (
          <p class="all-well">
            <Icon name="s-up" tone="run" />
            <b>Nothing needs you.</b>
            <span class="dim">No dead letters, no refused requests; every endpoint and every limit is well.</span>
          </p>
        )}
      </div>
    </section>
  )
}

function headline(status: Status, urgent: number): string {
  const word = VERDICT_LOOKS[status.verdict].word
  if (urgent === 0) {
    const isWell = status.verdict === 'keeping-up' || status.verdict === 'idle'
    return isWell ? `${word}. All is well.` : `${word}.`
  }
  const amount = NUMBERS[urgent] ?? count(urgent)
  return `${word}. ${amount} ${urgent === 1 ? 'thing needs' : 'things need'} you.`
}

/** The headline already has the word that the sentence begins with. */
function sentenceOf({ verdict, sentence }: Status): string {
  const start = `${VERDICT_LOOKS[verdict].word}: `
  if (!sentence.startsWith(start)) return sentence
  const rest = sentence.slice(start.length)
  return rest.slice(0, 1).toUpperCase() + rest.slice(1)
}

function Needs({ title, needs }: { title: string; needs: readonly Need[] }): JSX.Element {
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {needs.map((need) => (
          <li key={`${need.to} ${need.what}`}>
            <a href={need.to}>
              <Icon name={need.icon} size={14} tone={need.tone} />
              <span class="cut">
                <b>{need.what}</b> <span class="dim">{need.detail}</span>
              </span>
              <span class="dim nowrap">{need.when}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}

/** A step of two minutes of the last hour. */
const CELLS = 30
const CELL = 120_000
const LATE = 5_000

type CellTone = 'run' | 'ready' | 'fail' | 'none'

function Stages({ status, stats, endpoints, now }: VerdictProps & { now: number }): JSX.Element {
  const points = stats?.series?.points ?? []
  const { received, isPartial } = lastMinute(points)
  const down = endpoints.filter((endpoint) => healthOf(endpoint) === 'down').length
  const degraded = endpoints.filter((endpoint) => healthOf(endpoint) === 'degraded').length
  const late = status.lanes.byState.ready ?? 0
  const isStalled = status.verdict === 'stalled'
  const recentDead = points.slice(-5).some(({ dead }) => dead > 0)
  return (
    <ol class="stages">
      <Stage
        name="Receiving"
        tone={status.refused > 0 ? 'ready' : 'run'}
        text={`${count(received)} ${isPartial ? 'so far' : 'a minute'}${status.refused > 0 ? `, ${count(status.refused)} refused` : ''}`}
        cells={cellsOf(points, now, (cell) => (sum(cell, 'received') > 0 ? 'run' : 'none'))}
      />
      <Stage
        name="Working"
        tone={isStalled || recentDead ? 'fail' : status.verdict === 'falling-behind' ? 'ready' : 'run'}
        text={
          isStalled
            ? 'No run has begun'
            : `${plural(status.lanes.byState.running ?? 0, 'lane')} running, ${count(late)} ready`
        }
        cells={cellsOf(points, now, workingTone)}
      />
      <Stage
        name="Delivering"
        tone={down > 0 ? 'fail' : degraded > 0 ? 'ready' : 'run'}
        text={deliveringText(endpoints.length, down, degraded)}
        cells={deliveringCells(endpoints, now)}
      />
    </ol>
  )
}

function deliveringText(all: number, down: number, degraded: number): string {
  if (all === 0) return 'No endpoints'
  if (down > 0) return `${count(down)} of ${plural(all, 'endpoint')} ${down === 1 ? 'is' : 'are'} down`
  if (degraded > 0) return `${count(degraded)} of ${plural(all, 'endpoint')} ${degraded === 1 ? 'is' : 'are'} degraded`
  return all === 1 ? '1 endpoint is up' : `${count(all)} endpoints are up`
}

function workingTone(cell: readonly StatsPoint[]): CellTone {
  if (sum(cell, 'dead') > 0) return 'fail'
  if (cell.some(({ lateMs = 0 }) => lateMs > LATE)) return 'ready'
  return cell.some(({ runs, done }) => (runs ?? done) > 0) ? 'run' : 'none'
}

function sum(cell: readonly StatsPoint[], field: 'received' | 'dead'): number {
  return cell.reduce((total, point) => total + point[field], 0)
}

function cellsOf(
  points: readonly StatsPoint[],
  now: number,
  tone: (cell: readonly StatsPoint[]) => CellTone,
): readonly CellTone[] {
  const from = now - CELLS * CELL
  return Array.from({ length: CELLS }, (_, index) => {
    const start = from + index * CELL
    return tone(points.filter(({ at }) => at >= start && at < start + CELL))
  })
}

function deliveringCells(endpoints: readonly Endpoint[], now: number): readonly CellTone[] {
  const from = now - CELLS * CELL
  return Array.from({ length: CELLS }, (_, index): CellTone => {
    const end = from + (index + 1) * CELL
    const bad = endpoints.filter(({ health }) => health?.failingSince !== undefined && health.failingSince < end)
    if (bad.some((endpoint) => healthOf(endpoint) === 'down')) return 'fail'
    if (bad.some((endpoint) => healthOf(endpoint) === 'degraded')) return 'ready'
    return endpoints.some(({ createdAt }) => createdAt < end) ? 'run' : 'none'
  })
}

const STAGE_ICONS: Readonly<Record<'run' | 'ready' | 'fail', IconName>> = {
  run: 's-up',
  ready: 's-warn',
  fail: 's-dead',
}

function Stage(props: {
  name: string
  tone: 'run' | 'ready' | 'fail'
  text: string
  cells: readonly CellTone[]
}): JSX.Element {
  const { name, tone, text, cells } = props
  const bad = cells.filter((cell) => cell === 'fail' || cell === 'ready').length
  const label = bad === 0 ? `${name} was well for the last hour` : `${name} had trouble in ${bad * 2} of 60 minutes`
  return (
    <li>
      <Icon name={STAGE_ICONS[tone]} size={14} tone={tone satisfies Look['tone']} />
      <b>{name}</b>
      <svg class="pic strip" width="100%" height="14" role="img" aria-label={label}>
        {cells.map((cell, index) => (
          <rect
            key={index}
            class={`u-${cell}${cell === 'run' ? ' soon' : ''}`}
            x={`${(index / CELLS) * 100}%`}
            width={`${(100 / CELLS) * 0.74}%`}
            height="14"
            rx="1.5"
          />
        ))}
      </svg>
      <span>{text}</span>
    </li>
  )
}
