// Where a look at a flow's ready lanes begins.
import { describe, it } from 'vitest'
import { emptyLane } from '../../src/model/lane.ts'
import { LineFloors } from '../../src/store/postgres/line-floors.ts'

const LANE = { ...emptyLane({ id: 'l', flow: 'f', key: 'k', group: '', tenant: '' }), line: 0 } as const

async function at(age: number): Promise<LineFloors> {
  const floors = new LineFloors()
  floors.happened(100_000)
  await floors.look({ readOnly: false, rows: () => Promise.resolve([[age]]) })
  floors.found('f', 0, 0, 99_000)
  return floors
}

describe('where a look begins', () => {
  it('at the front, unless a snapshot is old', async ({ expect }) => {
    expect((await at(4_000)).from('f', 0)).toBe(0)
    expect((await at(6_000)).from('f', 0)).toBe(99_000)
    expect((await at(6_000)).from('f', 1)).toBe(0)
    expect((await at(6_000)).from('g', 0)).toBe(0)
  })

  it('at the first lane, never later than 1 s ago, and at the front again after 5 s', async ({ expect }) => {
    const floors = await at(6_000)
    floors.found('f', 0, 99_000, 50_000)
    expect(floors.from('f', 0)).toBe(50_000)
    floors.found('f', 0, 50_000, undefined)
    floors.happened(104_999)
    expect(floors.from('f', 0)).toBe(100_000)
    floors.happened(105_000)
    expect(floors.from('f', 0)).toBe(0)
  })

  it('at a lane that this process has let go, once it is earlier', async ({ expect }) => {
    const floors = await at(6_000)
    floors.written([{ ...LANE, due: 80_000 }])
    expect(floors.from('f', 0)).toBe(80_000)
    floors.written([{ ...LANE, due: 90_000 }])
    expect(floors.from('f', 0)).toBe(80_000)
  })
})
