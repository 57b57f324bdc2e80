// The table says what the snapshot says, in the width it is given.
import { describe, expect, it } from 'vitest'
import type { Row, Snapshot } from '../snapshot.ts'
import { coloured, uncoloured } from '../style.ts'
import { fit, tableOf } from '../table.ts'

const IDLE: Row = { user: 'ada', state: 'idle', events: 0, dueIn: undefined, position: undefined, runs: 0, last: '' }

const SHOT: Snapshot = {
  elapsed: 12_345,
  until: 60_000,
  received: 48,
  runs: 9,
  eventsPerRun: 5.333,
  callsNow: 2,
  callsMost: 3,
  dead: 0,
  rows: [],
}

function rowsOf(rows: readonly Row[], width = 80): readonly string[] {
  return tableOf({ ...SHOT, rows }, { width, paint: uncoloured }).slice(-rows.length)
}

describe('the table of lanes', () => {
  it('has the time, the figures and the titles on top', () => {
    expect(tableOf(SHOT, { width: 80, paint: uncoloured })).toEqual([
      ' Sluice  first ready first served, 3 calls a second  12.3 s of 60.0 s',
      '',
      ' events received     48  runs done         9  calls in the last second 2 of 3',
      ' events per run     5.3  dead letters      0  most in any second       3 of 3',
      '',
      ' user      state     events  due in  in line  runs  last run',
    ])
  })

  it('says only how long it has been when there is no end', () => {
    const [title] = tableOf({ ...SHOT, until: undefined }, { width: 80, paint: uncoloured })
    expect(title).toBe(' Sluice  first ready first served, 3 calls a second  12.3 s')
  })

  it('shows each state of a lane', () => {
    expect(
      rowsOf([
        IDLE,
        { ...IDLE, user: 'ben', state: 'waiting', events: 12, dueIn: 1_960 },
        {
          ...IDLE,
          user: 'cleo',
          state: 'ready',
          events: 3,
          dueIn: 0,
          position: 2,
          runs: 1,
          last: '1 event, 2 calls, 0.9 s',
        },
        { ...IDLE, user: 'dan', state: 'running', events: 1, last: 'call 2 of 5' },
        { ...IDLE, user: 'poison', state: 'retrying', events: 7, dueIn: 240, last: 'try 1/4: 422 not rankable' },
      ]),
    ).toEqual([
      ' ada       idle           -       -        -     0',
      ' ben       waiting       12   2.0 s        -     0',
      ' cleo      ready          3     now        2     1  1 event, 2 calls, 0.9 s',
      ' dan       running        1       -        -     0  call 2 of 5',
      ' poison    retrying       7   0.2 s        -     0  try 1/4: 422 not rankable',
    ])
  })

  it('keeps to its width, and shows where it cut something off', () => {
    const long = { ...IDLE, last: 'x'.repeat(200) }
    for (const width of [60, 80, 120]) {
      const [line] = rowsOf([long], width)
      expect(line).toHaveLength(width)
      expect(line).toMatch(/x\.\.$/)
    }
  })

  it('colours the state alone, dims what is idle, and marks too many calls in red', () => {
    const rows: readonly Row[] = [IDLE, { ...IDLE, state: 'ready' }]
    const lines = tableOf({ ...SHOT, callsMost: 4, rows }, { width: 80, paint: coloured })
    expect(lines.at(-2)).toContain('\x1b[2mada     \x1b[0m')
    expect(lines.at(-1)).toContain(' ada       \x1b[36mready   \x1b[0m  ')
    expect(lines[3]).toContain('\x1b[31m4 of 3\x1b[0m')
    expect(lines[2]).toContain('\x1b[1m2 of 3\x1b[0m')
  })
})

describe('text in a column', () => {
  it('is filled up on its side, or ends in dots', () => {
    expect(fit('abc', 5)).toBe('abc  ')
    expect(fit('abc', 5, 'right')).toBe('  abc')
    expect(fit('abcdef', 5)).toBe('abc..')
    expect(fit('abcde', 5)).toBe('abcde')
  })
})
