// `sluice stats`: how much came, how long it took, how much failed and how much waits, over a window.
import { show, texts, type Command } from '../command.ts'
import { span, time, type Column } from '../output.ts'

interface Figures {
  readonly received: number
  readonly receivedPerMinute: number
  readonly done: number
  readonly dead: number
  readonly failing: number
  readonly failureRate?: number
  readonly meanMs?: number
  readonly p95Ms?: number
  readonly depth?: number
  readonly oldest?: number
}

interface Group extends Figures {
  readonly source?: string
  readonly type?: string
  readonly flow?: string
}

interface Stats {
  readonly now: number
  readonly from: number
  readonly total: Figures
  readonly groups: readonly Group[]
}

const COLUMNS: readonly Column<Group>[] = [
  { title: 'of', cell: ({ source, type, flow }) => flow ?? ([source, type].filter(Boolean).join('/') || 'all') },
  { title: 'received', cell: ({ received }) => received },
  { title: 'rate', cell: ({ receivedPerMinute }) => rate(receivedPerMinute) },
  { title: 'done', cell: ({ done }) => done },
  { title: 'dead', cell: ({ dead }) => dead },
  { title: 'failing', cell: ({ failing }) => failing },
  {
    title: 'failed',
    cell: ({ failureRate }) => (failureRate === undefined ? undefined : `${(failureRate * 100).toFixed(1)} %`),
  },
  { title: 'mean', cell: ({ meanMs }) => (meanMs === undefined ? undefined : span(meanMs)) },
  { title: 'p95', cell: ({ p95Ms }) => (p95Ms === undefined ? undefined : span(p95Ms)) },
  { title: 'waiting', cell: ({ depth }) => depth },
  { title: 'due since', cell: ({ oldest }) => time(oldest) },
]

/** In the shortest unit of which there is a whole one: what is rare is not none. */
function rate(perMinute: number): string {
  if (perMinute === 0) return '0'
  if (perMinute >= 1) return `${perMinute.toFixed(1)}/min`
  return perMinute * 60 >= 1 ? `${(perMinute * 60).toFixed(1)}/h` : `${(perMinute * 1_440).toPrecision(2)}/day`
}

export const stats: Command = {
  words: 'stats',
  says: 'how much came, how long it took, how much failed and waits',
  options: texts({ window: 'as 24h, which it is unless said', by: 'source, type, source,type or flow' }),
  run: (scene) => {
    const query = scene.given.texts(['window', 'by'])
    return show(scene, { method: 'GET', path: '/v1/stats', query }, ({ from, now, total, groups }: Stats) => {
      scene.out.line(`From ${time(from)} to ${time(now)}`)
      scene.out.table(COLUMNS, [...groups, total], '')
    })
  },
}
