// A snapshot as text: figures on top, a row for each lane below. Pure, and plain ASCII, so that it looks the same everywhere.
import { API } from './flow.ts'
import { seconds } from './life.ts'
import type { Row, RowState, Snapshot } from './snapshot.ts'
import { uncoloured, type Paint, type Style } from './style.ts'

export interface Look {
  readonly width: number
  readonly paint: Paint
}

/** Wider lines are hard to follow with the eye. */
export const WIDTH_MAX = 120

export const PLAIN: Look = { width: 100, paint: uncoloured }

/** Only the word for the state has a colour: a colour that is weak on somebody's background hides no figure. */
const STATES: Readonly<Record<RowState, Style>> = {
  idle: 'dim',
  waiting: 'plain',
  ready: 'cyan',
  running: 'green',
  retrying: 'magenta',
}

interface Column {
  readonly title: string
  /** Undefined: what is left of the line. */
  readonly width?: number
  readonly side: 'left' | 'right'
  cell(row: Row): string
}

const COLUMNS: readonly Column[] = [
  { title: 'user', width: 8, side: 'left', cell: (row) => row.user },
  { title: 'state', width: 8, side: 'left', cell: (row) => row.state },
  { title: 'events', width: 6, side: 'right', cell: (row) => (row.events === 0 ? '-' : String(row.events)) },
  { title: 'due in', width: 6, side: 'right', cell: dueIn },
  { title: 'in line', width: 7, side: 'right', cell: (row) => String(row.position ?? '-') },
  { title: 'runs', width: 4, side: 'right', cell: (row) => String(row.runs) },
  { title: 'last run', side: 'left', cell: (row) => row.last },
]

const MARGIN = ' '
const GAP = '  '

export function tableOf(snapshot: Snapshot, look: Look): readonly string[] {
  const titles = cells((column) => column.title, look.width)
  return [
    ...figures(snapshot, look),
    '',
    look.paint('bold', lineOf(titles)),
    ...snapshot.rows.map((row) => rowLine(row, look)),
  ]
}

function rowLine(row: Row, { width, paint }: Look): string {
  const texts = cells((column) => column.cell(row), width)
  const whole: Style = row.state === 'idle' ? 'dim' : row.state === 'running' ? 'bold' : 'plain'
  return lineOf(texts.map((text, at) => paint(COLUMNS[at]?.title === 'state' ? STATES[row.state] : whole, text)))
}

function lineOf(texts: readonly string[]): string {
  return (MARGIN + texts.join(GAP)).trimEnd()
}

/** Each in the width of its column. */
function cells(textOf: (column: Column) => string, width: number): readonly string[] {
  let left = width - MARGIN.length
  return COLUMNS.map((column) => {
    const text = fit(textOf(column), column.width ?? left, column.side)
    left -= text.length + GAP.length
    return text
  })
}

/** Text that is too long ends in two dots: nothing is cut off unseen. */
export function fit(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  if (text.length > width) return `${text.slice(0, Math.max(0, width - 2))}..`
  return side === 'right' ? text.padStart(width) : text.padEnd(width)
}

function dueIn(row: Row): string {
  if (row.dueIn === undefined) return '-'
  return row.dueIn === 0 ? 'now' : seconds(row.dueIn)
}

/** Time, and names and figures in three columns; those that are bad news in red. */
function figures(snapshot: Snapshot, { paint }: Look): readonly string[] {
  const { callsNow, callsMost, dead } = snapshot
  const figure = (name: string, value: string, bad = false): string =>
    `${name} ${paint(bad ? 'red' : 'bold', value.padStart(6))}`
  const whole = snapshot.until === undefined ? '' : ` of ${seconds(snapshot.until)}`
  return [
    lineOf([
      paint('bold', 'Sluice'),
      `first ready first served, ${API.rate} calls a second`,
      paint('dim', `${seconds(snapshot.elapsed)}${whole}`),
    ]),
    '',
    lineOf([
      figure('events received', String(snapshot.received)),
      figure('runs done   ', String(snapshot.runs)),
      figure('calls in the last second', `${callsNow} of ${API.rate}`, callsNow > API.rate),
    ]),
    lineOf([
      figure('events per run ', snapshot.eventsPerRun.toFixed(1)),
      figure('dead letters', String(dead), dead > 0),
      figure('most in any second      ', `${callsMost} of ${API.rate}`, callsMost > API.rate),
    ]),
  ]
}
