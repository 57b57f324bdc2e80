// Two hundred users edit in random bursts, for ten minutes of virtual time on SQLite: every user's last edit counts, no user runs
// twice at once or out of turn, and Notion is never called more than three times in a second.
import { expect, it } from 'vitest'
import { chance as chanceOf } from '../../kit/chance.ts'
import { bursts } from '../scenarios/bursts.ts'
import { inversions, jain, meanResponses, overlaps, unranked } from '../scenarios/judge.ts'
import { turnsIn } from '../scenarios/stage.ts'
import { mostInASecond } from '../stand-in/rate.ts'
import { standInSettings } from '../stand-in/settings.ts'
import { START, virtual } from './virtual.ts'

const MINUTE = 60_000
const SEED = 20_260_105

it('two hundred users, ten virtual minutes, SQLite', async () => {
  const chance = chanceOf(SEED).unit
  const v = await virtual({ store: 'sqlite::memory:', standIn: { latency: [60, 180], chance } })
  try {
    const edits = bursts(v.notion, { users: 200, tasksEach: 3, within: 5 * MINUTE, mostBursts: 3, chance })
    for (const { at, page, importance, by } of edits) {
      if (at > v.t.elapsed) await v.advance(at - v.t.elapsed)
      // Now and then Notion stumbles.
      if (chance() < 0.02) v.notion.refuse(500)
      await v.edit(page, { importance }, by)
    }
    await v.advance(10 * MINUTE - v.t.elapsed)

    const turns = turnsIn((name) => v.told(name))
    const waiting = await v.t.app.admin.lanes.list({ flow: 'rank-user' })
    const fair = jain(meanResponses(turns))
    const retried = v.told('run.retry').length + v.told('run.snoozed').length + v.told('run.deferred').length
    console.log(
      `${edits.length} edits, ${turns.length} turns, ${v.notion.calls.length} calls, ${retried} faults, Jain ${fair.toFixed(2)}`,
    )
    expect(waiting.items).toEqual([])
    expect(unranked(v.notion.pages.values(), START + v.t.elapsed, standInSettings('').calendarOf)).toEqual([])
    expect(new Set(turns.map(({ user }) => user)).size).toBe(200)
    expect(inversions(turns)).toBe(0)
    expect(overlaps(turns)).toBe(0)
    expect(mostInASecond(v.notion.calls.map(({ at }) => at))).toBe(3)
    expect(v.notion.calls.filter(({ status }) => status === 429)).toEqual([])
    expect(v.told('run.dead')).toEqual([])
    expect(retried).toBeGreaterThan(5)
    // Nobody is starved: the longest wait in line is no longer than serving everybody once.
    expect(Math.max(...turns.map(({ due, began }) => began - due))).toBeLessThan(5 * MINUTE)
    expect(fair).toBeGreaterThan(0.5)
  } finally {
    await v.stop()
  }
})
