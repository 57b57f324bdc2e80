// `sluice stats`: events received, durations, failures and backlog over a window.
import type { StatsResult } from '../../admin/stats.ts'
import { callAndPrint, textOptions, type Command } from '../command.ts'
import { formatDuration, formatTime, type Column } from '../output.ts'

type Group = StatsResult['groups'][number]

const COLUMNS: readonly Column<Group>[] = [
  { title: 'of', cell: ({ source, type, flow }) => flow ?? ([source, type].filter(Boolean).join('/') || 'all') },
  'received',
  { title: 'rate', cell: ({ receivedPerMinute }) => formatRate(receivedPerMinute) },
  'done',
  'dead',
  'failing',
  {
    title: 'failed',
    cell: ({ failureRate }) => (failureRate === undefined ? undefined : `${(failureRate * 100).toFixed(1)} %`),
  },
  { title: 'mean', cell: ({ meanMs }) => (meanMs === undefined ? undefined : formatDuration(meanMs)) },
  { title: 'p95', cell: ({ p95Ms }) => (p95Ms === undefined ? undefined : formatDuration(p95Ms)) },
  { title: 'waiting', cell: ({ depth }) => depth },
  { title: 'due since', cell: ({ oldest }) => formatTime(oldest) },
]

/** Uses the shortest unit with at least one whole event, so that a rare event does not show as 0. */
function formatRate(perMinute: number): string {
  if (perMinute === 0) return '0'
  if (perMinute >= 1) return `${perMinute.toFixed(1)}/min`
  return perMinute * 60 >= 1 ? `${(perMinute * 60).toFixed(1)}/h` : `${(perMinute * 1_440).toPrecision(2)}/day`
}

export const stats: Command = {
  name: 'stats',
  description: 'show stats: events received, durations, failures, backlog',
  options: textOptions({ window: 'period, e.g. 1h; default 24h', by: 'group by source, type, source,type or flow' }),
  run: (context) => {
    const query = context.args.texts(['window', 'by'])
    return callAndPrint(
      context,
      { method: 'GET', path: '/v1/stats', query },
      ({ from, now, total, groups }: StatsResult) => {
        context.output.print(`From ${formatTime(from)} to ${formatTime(now)}`)
        context.output.table<Group>(COLUMNS, [...groups, total], '')
      },
    )
  },
}
