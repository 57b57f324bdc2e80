// A judge that finds nothing proves nothing: each finding is made to be found.
import { expect, it } from 'vitest'
import { inversions, jain, meanResponses, overlaps, unranked, type Turn } from '../scenarios/judge.ts'
import { NotionStandIn } from '../stand-in/notion.ts'
import { standInSettings } from '../stand-in/settings.ts'
import { VirtualClock } from 'sluice/testing'

function turn(user: string, due: number, began: number, ended: number): Turn {
  return { user, due, began, ended }
}

it('somebody who was ready first and served later', () => {
  expect(inversions([turn('a', 1, 5, 6), turn('b', 2, 6, 7), turn('a', 7, 7, 8)])).toBe(0)
  expect(inversions([turn('a', 2, 5, 6), turn('b', 1, 6, 7)])).toBe(1)
})

it('a user who is served twice at once, and none who is served twice in a row', () => {
  expect(overlaps([turn('a', 0, 0, 5), turn('a', 5, 5, 9), turn('b', 0, 3, 4)])).toBe(0)
  expect(overlaps([turn('a', 0, 0, 5), turn('a', 4, 4, 9)])).toBe(1)
  expect(overlaps([turn('a', 0, 0, Infinity), turn('a', 4, 4, 9)])).toBe(1)
})

it('how alike users are treated', () => {
  expect(jain([2, 2, 2])).toBe(1)
  expect(jain([1, 0, 0, 0])).toBe(0.25)
  expect(meanResponses([turn('a', 0, 0, 4), turn('a', 10, 10, 12), turn('b', 0, 1, 7)])).toEqual([3, 7])
})

it('a user whose tasks do not stand as they should', () => {
  const notion = new NotionStandIn({ clock: new VirtualClock() })
  const assignees = [{ id: 'ada', name: 'Ada' }]
  const page = notion.add({ assignees, importance: 1, rank: 1, projected: '2026-01-01' })
  const look = (): readonly string[] =>
    unranked(notion.pages.values(), Date.UTC(2026, 0, 1), standInSettings('').calendarOf)
  expect(look()).toEqual([])
  notion.add({ assignees, importance: 2 })
  expect(look()).toEqual(['ada'])
  notion.trash(page.id)
  expect(look()).toEqual(['ada'])
})
