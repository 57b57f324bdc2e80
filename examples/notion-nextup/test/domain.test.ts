// The domain without any engine: days, orders, dates and what has to be written.
import { describe, expect, it } from 'vitest'
import { businessDayFrom, businessDaysAfter, daysBetween, isBusinessDay, today } from '../domain/business-days.ts'
import { plan, type PlanParts } from '../domain/plan.ts'
import { project } from '../domain/projection.ts'
import { assigneesOf, dayOf, sameId } from '../domain/properties.ts'
import { byImportance, weighted, type Ranking } from '../domain/ranking.ts'
import { taskOf, type Task } from '../domain/task.ts'

const calendar = { timeZone: 'UTC', holidays: new Set(['2026-01-06']) }
const MONDAY = '2026-01-05'

function task(id: string, values: Partial<Task> = {}): Task {
  return {
    id,
    owner: 'ada',
    isDone: false,
    importance: 1,
    estimate: 1,
    created: '2026-01-01T00:00:00.000Z',
    started: undefined,
    due: undefined,
    rank: undefined,
    projected: undefined,
    ...values,
  }
}

function idsOf(ranking: Ranking, tasks: readonly Task[]): readonly string[] {
  return ranking(tasks, MONDAY).map(({ id }) => id)
}

function daysOf(tasks: readonly Task[], on = MONDAY): readonly (string | undefined)[] {
  const projected = project(tasks, on, calendar)
  return tasks.map(({ id }) => projected.get(id))
}

describe('business days', () => {
  it('are no Saturdays, no Sundays and no holidays', () => {
    const week = ['2026-01-05', '2026-01-06', '2026-01-07', '2026-01-08', '2026-01-09', '2026-01-10', '2026-01-11']
    expect(week.filter((day) => isBusinessDay(day, calendar))).toEqual([
      MONDAY,
      '2026-01-07',
      '2026-01-08',
      '2026-01-09',
    ])
  })

  it('are counted over weekends, holidays, the end of a year and a leap day', () => {
    expect(businessDaysAfter(MONDAY, 0, calendar)).toBe(MONDAY)
    expect(businessDaysAfter(MONDAY, 1, calendar)).toBe('2026-01-07')
    expect(businessDaysAfter('2026-01-09', 1, calendar)).toBe('2026-01-12')
    expect(businessDayFrom('2026-01-10', calendar)).toBe('2026-01-12')
    expect(businessDaysAfter('2027-12-31', 1, calendar)).toBe('2028-01-03')
    expect(businessDaysAfter('2028-02-28', 1, calendar)).toBe('2028-02-29')
  })

  it('are those of where the user lives', () => {
    const now = Date.UTC(2026, 0, 5, 23, 30)
    expect(today(now, calendar)).toBe('2026-01-05')
    expect(today(now, { ...calendar, timeZone: 'Asia/Tokyo' })).toBe('2026-01-06')
    expect(today(Date.UTC(2026, 0, 5, 3), { ...calendar, timeZone: 'America/Los_Angeles' })).toBe('2026-01-04')
  })

  it('lie as far apart as calendar days do, also when clocks change', () => {
    expect(daysBetween('2026-03-28', '2026-03-30')).toBe(2)
    expect(daysBetween('2026-01-05', '2026-01-01')).toBe(-4)
  })
})

describe('ranking', () => {
  it('by importance: the most important first, then the older, then always the same', () => {
    const tasks = [
      task('late', { importance: 2, created: '2026-01-02T00:00:00.000Z' }),
      task('b', { importance: 2 }),
      task('a', { importance: 2 }),
      task('top', { importance: 9 }),
    ]
    expect(idsOf(byImportance, tasks)).toEqual(['top', 'a', 'b', 'late'])
    expect(idsOf(byImportance, tasks.toReversed())).toEqual(['top', 'a', 'b', 'late'])
  })

  it('weighted: what is due, begun or brief counts as well, behind the same interface', () => {
    const tasks = [
      task('far', { importance: 3, due: '2026-03-05', estimate: 5 }),
      task('overdue', { importance: 1, due: '2026-01-01', estimate: 5 }),
      task('soon', { importance: 1, due: '2026-01-08', estimate: 5 }),
      task('begun', { importance: 1, started: '2026-01-02', estimate: 5 }),
      task('brief', { importance: 1, estimate: 0.5 }),
    ]
    expect(idsOf(weighted(), tasks)).toEqual(['overdue', 'soon', 'begun', 'far', 'brief'])
    expect(idsOf(weighted({ importance: 1, due: 0, started: 0, brief: 0 }), tasks)[0]).toBe('far')
    expect(idsOf(byImportance, tasks)[0]).toBe('far')
  })
})

describe('projected completion', () => {
  it('adds up over business days, one task after the other, from today', () => {
    const tasks = [task('a', { estimate: 1 }), task('b', { estimate: 2 }), task('c', { estimate: 2 })]
    // Tuesday is a holiday, and a weekend lies between.
    expect(daysOf(tasks)).toEqual(['2026-01-05', '2026-01-08', '2026-01-12'])
  })

  it('begins on the next business day when today is none', () => {
    expect(daysOf([task('a', { estimate: 1 })], '2026-01-10')).toEqual(['2026-01-12'])
  })

  it('counts a task that has begun from its start, and nothing that is not done from the past', () => {
    const begun = task('a', { estimate: 4, started: '2026-01-02' })
    expect(daysOf([begun, task('b')])).toEqual(['2026-01-08', '2026-01-09'])
    const late = task('late', { estimate: 1, started: '2025-12-01' })
    expect(daysOf([late, task('b')])).toEqual(['2026-01-05', '2026-01-05'])
  })

  it('shares a day between parts of days, without a rounding error', () => {
    const halves = ['a', 'b', 'c'].map((id) => task(id, { estimate: 0.5 }))
    expect(daysOf(halves)).toEqual(['2026-01-05', '2026-01-05', '2026-01-07'])
    const tenths = Array.from({ length: 11 }, (_, n) => task(`t${n}`, { estimate: 0.1 }))
    expect(daysOf(tenths).slice(-2)).toEqual(['2026-01-05', '2026-01-07'])
  })

  it('has what takes no time done when its turn comes', () => {
    expect(daysOf([task('a', { estimate: 0 }), task('b', { estimate: 1 })])).toEqual(['2026-01-05', '2026-01-05'])
  })
})

describe('the plan', () => {
  const parts: PlanParts = { user: 'ada', today: MONDAY, calendar, ranking: byImportance }

  it('writes rank and day of tasks that have none', () => {
    expect(plan([task('a', { importance: 1 }), task('b', { importance: 2 })], parts)).toEqual([
      { id: 'b', rank: 1, projected: '2026-01-05' },
      { id: 'a', rank: 2, projected: '2026-01-07' },
    ])
  })

  it('writes only what differs, and nothing when nothing does', () => {
    const right = task('a', { rank: 1, projected: '2026-01-05' })
    expect(plan([right], parts)).toEqual([])
    expect(plan([{ ...right, rank: 2 }], parts)).toEqual([{ id: 'a', rank: 1 }])
    expect(plan([{ ...right, projected: '2026-01-04' }], parts)).toEqual([{ id: 'a', projected: '2026-01-05' }])
  })

  it('takes the rank from what is done, once', () => {
    const done = task('done', { isDone: true, rank: 1, projected: '2026-01-02', importance: 9 })
    expect(plan([done, task('a', { rank: 1, projected: '2026-01-05' })], parts)).toEqual([{ id: 'done', rank: null }])
    expect(plan([{ ...done, rank: undefined }], parts)).toEqual([])
  })

  it('leaves a task of several people to the first of them, and counts its time all the same', () => {
    const shared = task('shared', { owner: 'ben', importance: 9, estimate: 1 })
    expect(plan([shared, task('own')], parts)).toEqual([{ id: 'own', rank: 2, projected: '2026-01-07' }])
    expect(plan([shared], { ...parts, user: 'ben' })).toEqual([{ id: 'shared', rank: 1, projected: '2026-01-05' }])
  })

  it('is empty after it was carried out, whatever the tasks are', () => {
    const tasks = Array.from({ length: 30 }, (_, n) =>
      task(`t${n}`, { importance: (n * 7) % 5, estimate: (n % 4) / 2, isDone: n % 9 === 0, rank: n }),
    )
    const writes = new Map(plan(tasks, parts).map((write) => [write.id, write]))
    const after = tasks.map((one) => {
      const { rank = one.rank, projected = one.projected } = writes.get(one.id) ?? {}
      return { ...one, rank: rank ?? undefined, projected }
    })
    expect(writes.size).toBeGreaterThan(20)
    expect(plan(after, parts)).toEqual([])
  })
})

describe('a page of Notion', () => {
  const page = {
    id: 'p',
    created_time: '2026-01-02T00:00:00.000Z',
    properties: {
      Assignee: { people: [{ id: 'ada' }, { id: 'ben' }, { id: 'ada' }] },
      Status: { status: { name: 'Done' } },
      Importance: { number: 4 },
      'Task Started Date': { date: { start: '2026-01-03T10:00:00.000+01:00' } },
      'Queue Rank': { number: null },
    },
  }

  it('is read as a task, with defaults for what nobody filled in', () => {
    expect(taskOf(page)).toEqual({
      ...task('p', { importance: 4, isDone: true, created: page.created_time, started: '2026-01-03', estimate: 1 }),
    })
    expect(taskOf({ id: 'bare' })).toMatchObject({ owner: undefined, importance: 0, estimate: 1, isDone: false })
  })

  it('names each of its people once, and days without their time', () => {
    expect(assigneesOf(page).map(({ id }) => id)).toEqual(['ada', 'ben'])
    expect(dayOf(page, 'started')).toBe('2026-01-03')
    expect(dayOf(page, 'due')).toBeUndefined()
  })

  it('has an id that is the same with dashes and without', () => {
    expect(sameId('1A44be12-0953-4631-b498-9e5817518db8', '1a44be1209534631b4989e5817518db8')).toBe(true)
    expect(sameId('1a', '1b')).toBe(false)
  })
})
