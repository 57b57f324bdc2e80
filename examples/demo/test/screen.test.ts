// The live table in a terminal: each frame replaces the last one, fits the terminal, and leaves no trace at the end.
import { expect, it } from 'vitest'
import type { Snapshot } from '../snapshot.ts'
import { liveScreen, plainScreen } from '../screen.ts'
import { uncoloured } from '../style.ts'

const SHOT: Snapshot = {
  elapsed: 1_000,
  until: undefined,
  received: 0,
  runs: 0,
  eventsPerRun: 0,
  callsNow: 0,
  callsMost: 0,
  dead: 0,
  rows: [],
}

function terminal(
  columns: number,
  rows: number,
): { columns: number; rows: number; written: string[]; write(text: string): void } {
  const written: string[] = []
  return { columns, rows, written, write: (text) => void written.push(text) }
}

const due = (n: number) => ({ kind: 'due', at: n * 1_000, user: 'ada', events: n, position: 1 }) as const

it('opens the alternate screen without a cursor, and puts everything back once', () => {
  const to = terminal(80, 24)
  const screen = liveScreen(to, uncoloured)
  screen.close()
  screen.close()
  screen.show(SHOT)
  expect(to.written).toEqual(['\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J', '\x1b[?7h\x1b[?25h\x1b[?1049l'])
})

it('draws a frame in one piece over the one before, with the latest news that fit', () => {
  const to = terminal(80, 11)
  const screen = liveScreen(to, uncoloured)
  for (const n of [1, 2, 3]) screen.news(due(n), 0)
  screen.show(SHOT)
  const frame = to.written[1] ?? ''
  expect(frame.startsWith('\x1b[?2026h\x1b[H Sluice')).toBe(true)
  expect(frame.endsWith('\x1b[J\x1b[?2026l')).toBe(true)
  const lines = frame.split('\r\n').map((line) => line.split('\x1b[K')[0])
  expect(lines.slice(6)).toEqual([
    '',
    '    2.0 s  ada       due       2 events, place 1 in line',
    '    3.0 s  ada       due       3 events, place 1 in line',
    '',
    ' Ctrl-C stops',
  ])
})

it('follows the terminal when its size changes, and never draws more lines than it has', () => {
  const to = terminal(80, 40)
  const screen = liveScreen(to, uncoloured)
  to.rows = 4
  screen.news(due(1), 0)
  screen.show(SHOT)
  expect(to.written[1]?.split('\r\n')).toHaveLength(4)
})

it('keeps the welcome above the table, as much of it as there is room for', () => {
  const to = terminal(80, 40)
  const screen = liveScreen(to, uncoloured)
  screen.welcome(['Dashboard', 'two', 'three', 'four', 'five'])
  for (const rows of [40, 14, 12, 8]) {
    to.rows = rows
    screen.show(SHOT)
  }
  const heads = to.written.slice(1).map((frame) =>
    frame
      .slice(frame.indexOf('H') + 1)
      .split('Sluice')[0]
      ?.split('\x1b[K')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      ?.join(' '),
  )
  expect(heads).toEqual(['Dashboard two three four five', 'Dashboard two three four', 'Dashboard', ''])
})

it('never lets the times of the log run backwards', () => {
  let text = ''
  const screen = plainScreen((more) => (text += more))
  for (const n of [2, 1, 3]) screen.news(due(n), 0)
  expect(text.match(/\d+\.\d s/g)).toEqual(['2.0 s', '2.0 s', '3.0 s'])
})
