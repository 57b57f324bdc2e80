// The last hour in four charts.
import type { JSX } from 'preact'
import { Chart } from '../../components/chart.tsx'
import { second } from '../../lib/clock.ts'
import { count, duration, visible } from '../../lib/format.ts'
import { lastMinute } from '../../lib/rates.ts'
import { healthOf } from '../../lib/states.ts'
import type { Endpoint, Stats, Status } from '../../lib/types.ts'

export function Tiles(props: {
  status: Status
  stats: Stats | undefined
  endpoints: readonly Endpoint[]
}): JSX.Element {
  const { status, stats, endpoints } = props
  const points = stats?.series?.points ?? []
  const from = stats?.series?.from ?? second.value - 3_600_000
  const step = stats?.series?.step ?? 60_000
  const rate = lastMinute(points)
  // The current minute is not over, so the lines end with the last whole one.
  const shown = rate.isPartial ? points : points.slice(0, -1)
  const late = status.oldestDue === undefined ? 0 : Math.max(0, second.value - status.oldestDue)
  const worst = endpoints
    .filter((endpoint) => healthOf(endpoint) === 'down')
    .toSorted((one, other) => (other.waiting ?? 0) - (one.waiting ?? 0))[0]
  const lines = { from, step }
  return (
    <section class="panel tiles" aria-label="The last hour">
      <div class="tile">
        <h3>
          In and out, a minute
          <span class="push" />
          <span class="key-line wait">in</span>
          <span class="key-line run">out</span>
        </h3>
        <p class="fig">
          {count(rate.received)} <small>in</small> {count(rate.done)} <small>out{rate.isPartial && ' so far'}</small>
        </p>
        <Chart
          {...lines}
          isWhole
          format={count}
          label={`Events a minute over the last hour: ${count(rate.received)} received, ${count(rate.done)} done`}
          lines={[
            { tone: 'wait', area: true, values: shown.map(({ received }) => received) },
            { tone: 'run', values: shown.map(({ done }) => done) },
          ]}
        />
      </div>
      <div class="tile">
        <h3>Lateness: the oldest ready lane</h3>
        <p class="fig">
          {duration(late)} <small>{late === 0 ? 'nothing is late' : ''}</small>
        </p>
        <Chart
          {...lines}
          format={duration}
          label={`Lateness over the last hour; now ${duration(late)}`}
          lines={[{ tone: 'ready', area: true, values: points.map(({ lateMs }) => lateMs ?? 0) }]}
        />
      </div>
      <div class="tile">
        <h3>
          Arrival to done
          <span class="push" />
          <span class="key-line ink">p95</span>
          <span class="key-line still">mean</span>
        </h3>
        <p class="fig">
          {stats?.total.p95Ms === undefined ? '–' : duration(stats.total.p95Ms)} <small>p95</small>{' '}
          {stats?.total.meanMs === undefined ? '–' : duration(stats.total.meanMs)} <small>mean</small>
        </p>
        <Chart
          {...lines}
          format={duration}
          label={`From arrival to done: p95 ${duration(stats?.total.p95Ms ?? 0)}, mean ${duration(stats?.total.meanMs ?? 0)}`}
          lines={[
            { tone: 'ink', values: points.map(({ p95Ms }) => p95Ms) },
            { tone: 'still', values: points.map(({ meanMs }) => meanMs) },
          ]}
        />
      </div>
      <div class="tile">
        <h3>Waiting events</h3>
        <p class="fig">
          {count(status.lanes.events)}{' '}
          <small class="cut">
            {worst !== undefined && (worst.waiting ?? 0) > 0
              ? `${count(worst.waiting ?? 0)} of them for ${visible(worst.name)}`
              : `in ${count(status.lanes.total)} lanes`}
          </small>
        </p>
        <Chart
          {...lines}
          isWhole
          format={count}
          label={`Waiting events over the last hour; now ${count(status.lanes.events)}`}
          lines={[{ tone: 'wait', area: true, values: points.map(({ waiting }) => waiting) }]}
        />
      </div>
    </section>
  )
}
