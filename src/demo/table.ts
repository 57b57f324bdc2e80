// A snapshot as text: figures on top, a row for each lane below. Pure, and plain ASCII, so that it looks the same everywhere.
import { API } from './flow.ts'
import { seconds } from './life.ts'
import type { Row, RowState, Snapshot } from './snapshot.ts'
import { uncoloured, type Paint, type Style } from './style.ts'

export interface Look {
  readonly width: number
  readonly paint: Paint
}

export const PLAIN: Look = { width: 100, paint: uncoloured }

const STYLES: Readonly<Record<RowState, Style>> = {
  idle: 'dim',
  waiting: 'plain',
  ready: 'cyan',
  running: 'green',
  retrying: 'magenta',
}

interface Column {
  readonly title: string
  /** 0: what is left of the line. */
  readonly width: number
  readonly right: boolean
  cell(row: Row): string
}

const COLUMNS: readonly Column[] = [
  { title: 'user', width: 8, right: false, cell: (row) => row.user },
  { title: 'state', width: 8, right: false, cell: (row) => row.state },
  { title: 'events', width: 6, right: true, cell: (row) => (row.events === 0 ? '-' : String(row.events)) },
  { title: 'due in', width: 7, right: true, cell: dueIn },
  { title: 'in line', width: 7, right: true, cell: (row) => (row.position === undefined ? '-' : String(row.position)) },
  { title: 'runs', width: 4, right: true, cell: (row) => String(row.runs) },
  { title: 'last run', width: 0, right: false, cell: (row) => row.last },
]

const MARGIN = ' '
const GAP = '  '

export function tableOf(snapshot: Snapshot, look: Look): readonly string[] {
  const titles = lineOf((column) => column.title, look.width)
  return [
    ...figures(snapshot, look),
    '',
    look.paint('bold', titles.trimEnd()),
    ...snapshot.rows.map((row) =>
      look.paint(STYLES[row.state], lineOf((column) => column.cell(row), look.width).trimEnd()),
    ),
  ]
}

function lineOf(textOf: (column: Column) => string, width: number): string {
  let line = ''
  for (const column of COLUMNS) {
    line += line === '' ? MARGIN : GAP
    line += fit(textOf(column), column.width === 0 ? width - line.length : column.width, column.right)
  }
  return line
}

/** Text that is too long ends in two dots: nothing is cut off unseen. */
export function fit(text: string, width: number, right = false): string {
  if (text.length > width) return width < 3 ? text.slice(0, Math.max(0, width)) : `${text.slice(0, width - 2)}..`
  return right ? text.padStart(width) : text.padEnd(width)
}

function dueIn(row: Row): string {
  if (row.dueIn === undefined) return '-'
  return row.dueIn === 0 ? 'now' : seconds(row.dueIn)
}

/** Name and figure in three columns, two lines; the calls in red should they ever be too many. */
function figures(snapshot: Snapshot, { paint }: Look): readonly string[] {
  const { callsNow, callsMost, dead } = snapshot
  const over = (calls: number): Style => (calls > API.rate ? 'red' : 'bold')
  const figure = (name: string, width: number, value: string, style: Style = 'bold'): string =>
    `${MARGIN}${name.padEnd(width)} ${paint(style, value.padStart(6))}  `
  const whole = snapshot.until === undefined ? '' : ` of ${seconds(snapshot.until)}`
  return [
    `${MARGIN}${paint('bold', 'Sluice')}  first ready first served, ${API.rate} calls a second  ` +
      paint('dim', `${seconds(snapshot.elapsed)}${whole}`),
    '',
    figure('events received', 15, String(snapshot.received)) +
      figure('runs done', 12, String(snapshot.runs)) +
      figure('calls in the last second', 24, `${callsNow} of ${API.rate}`, over(callsNow)).trimEnd(),
    figure('events per run', 15, snapshot.eventsPerRun.toFixed(1)) +
      figure('dead letters', 12, String(dead), dead > 0 ? 'red' : 'bold') +
      figure('most in any second', 24, `${callsMost} of ${API.rate}`, over(callsMost)).trimEnd(),
  ]
}
