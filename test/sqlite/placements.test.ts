// The placements of a lane, compared with a plain list: they are the same after any additions, claims and removals, also
// after the memory was dropped and read again, and no row of a removed placement is left in the file.
import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import { createLane, type Rank } from '../../src/model/lane.ts'
import type { WaitingPlacement } from '../../src/store/core/tables.ts'
import { SqlitePlacements } from '../../src/store/sqlite/placements.ts'
import { Statements } from '../../src/store/sqlite/statements.ts'

type Step =
  | { readonly kind: 'add'; readonly rank: Rank; readonly count: number }
  | { readonly kind: 'take'; readonly rank: Rank; readonly count: number }
  | { readonly kind: 'remove'; readonly rank: Rank; readonly at: readonly number[] }
  | { readonly kind: 'read again' }

const someRank = fc.constantFrom<Rank>(0, 0, 0, 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), rank: someRank, count: fc.integer({ min: 1, max: 90 }) }),
  fc.record({ kind: fc.constant('take' as const), rank: someRank, count: fc.integer({ min: 1, max: 70 }) }),
  fc.record({
    kind: fc.constant('remove' as const),
    rank: someRank,
    at: fc.array(fc.nat(200), { minLength: 1, maxLength: 40 }),
  }),
  fc.constant({ kind: 'read again' as const }),
)

/** A list keeps its name when its last placement is removed, and the others are taken. */
const LAST_OF_A_LIST_REMOVED: Step[] = [
  { kind: 'add', rank: 0, count: 40 },
  { kind: 'remove', rank: 0, at: [31] },
  { kind: 'take', rank: 0, count: 31 },
  { kind: 'add', rank: 0, count: 40 },
]

class Scene {
  readonly places: SqlitePlacements
  readonly db = new DatabaseSync(':memory:')
  readonly waiting: [WaitingPlacement[], WaitingPlacement[]] = [[], []]
  lane = { ...createLane({ id: laneId('f', 'k'), flow: 'f', key: 'k', tenant: '', group: '' }), row: 7 }

  constructor() {
    this.db.exec(readFileSync(new URL('../../src/store/sqlite/migrations/0001.sql', import.meta.url), 'utf8'))
    this.places = new SqlitePlacements(new Statements(this.db))
  }

  do(one: Step): void {
    switch (one.kind) {
      case 'add':
        for (let n = 0; n < one.count; n++) {
          const pos = this.lane.tail + 1
          this.lane = { ...this.lane, tail: pos }
          const place = { pos, event: pos * 10, size: pos % 7, cap: pos % 5 === 0 ? NEVER : pos * 100 }
          this.places.add(this.lane, one.rank, place)
          this.waiting[one.rank].push(place)
        }
        return
      case 'take': {
        const taken = this.waiting[one.rank].splice(0, one.count)
        if (taken.length > 0) expect(this.places.takeUpTo(this.lane, one.rank, taken.at(-1)?.pos ?? 0)).toEqual(taken)
        return
      }
      case 'remove': {
        const gone = one.at.flatMap((at) => this.waiting[one.rank][at]?.pos ?? [])
        this.places.remove(this.lane, one.rank, gone)
        this.waiting[one.rank] = this.waiting[one.rank].filter(({ pos }) => !gone.includes(pos))
        return
      }
      case 'read again': {
        const inRow = this.places.serializeRow(this.lane.row)
        this.places.clear()
        this.places.loadRow(this.lane.row, inRow)
      }
    }
  }

  check(): void {
    for (const rank of [0, 1] as const) {
      const all = this.waiting[rank]
      for (const n of [1, 5, 40, 1_000]) expect(this.places.findFirst(this.lane, rank, n)).toEqual(all.slice(0, n))
      for (const at of [0, 3, 31, 32, 33, all.length - 1]) {
        const pos = all[at]?.pos
        if (pos !== undefined) expect(this.places.findUpTo(this.lane, rank, pos)).toEqual(all.slice(0, at + 1))
      }
    }
  }

  get listed(): number {
    return Number(this.db.prepare('select count(*) as n from places').get()?.['n'])
  }
}

describe('placements on SQLite', () => {
  it('equal a plain list after any changes', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
        const scene = new Scene()
        for (const one of steps) {
          scene.do(one)
          scene.check()
        }
        for (const rank of [0, 1] as const) scene.do({ kind: 'take', rank, count: Infinity })
        expect(scene.listed).toBe(0)
      }),
      { numRuns: 200, examples: [[LAST_OF_A_LIST_REMOVED]] },
    )
  })

  it('of a long lane are read and written only as far as a run takes them', () => {
    const scene = new Scene()
    scene.do({ kind: 'add', rank: 0, count: 20_000 })
    scene.do({ kind: 'read again' })
    const lists = scene.listed
    for (let run = 0; run < 3_000; run++) {
      scene.places.findFirst(scene.lane, 0, 1)
      scene.do({ kind: 'take', rank: 0, count: 1 })
    }
    // One delete per list, and nothing else.
    expect(lists - scene.listed).toBe(Math.floor(3_000 / 32))
  })

  it('of a long lane can all be removed but the last', () => {
    const scene = new Scene()
    scene.do({ kind: 'add', rank: 0, count: 100_000 })
    const [last, ...others] = scene.waiting[0].toReversed()
    const positions = others.map(({ pos }) => pos)
    scene.places.remove(scene.lane, 0, positions)
    expect(scene.places.findFirst(scene.lane, 0, 10)).toEqual([last])
  })
})
