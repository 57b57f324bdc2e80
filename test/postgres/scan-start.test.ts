// Tests where a scan for a flow's ready lanes begins.
import { describe, it } from 'vitest'
import { createLane } from '../../src/model/lane.ts'
import { ScanStarts } from '../../src/store/postgres/scan-start.ts'

const LANE = { ...createLane({ id: 'l', flow: 'f', key: 'k', group: '', tenant: '' }), health: 0 } as const

async function at(age: number): Promise<ScanStarts> {
  const floors = new ScanStarts()
  floors.setNow(100_000)
  await floors.checkSnapshots({ readOnly: false, query: () => Promise.resolve([[age]]) })
  floors.recordFront('f', 0, 0, 99_000)
  return floors
}

describe('a scan starts', () => {
  it('at the front, unless a snapshot is old', async ({ expect }) => {
    expect((await at(4_000)).getStart('f', 0)).toBe(0)
    expect((await at(6_000)).getStart('f', 0)).toBe(99_000)
    expect((await at(6_000)).getStart('f', 1)).toBe(0)
    expect((await at(6_000)).getStart('g', 0)).toBe(0)
  })

  it('at the first lane, at most 1 s in the past, and at the front again after 5 s', async ({ expect }) => {
    const floors = await at(6_000)
    floors.recordFront('f', 0, 99_000, 50_000)
    expect(floors.getStart('f', 0)).toBe(50_000)
    floors.recordFront('f', 0, 50_000, undefined)
    floors.setNow(104_999)
    expect(floors.getStart('f', 0)).toBe(100_000)
    floors.setNow(105_000)
    expect(floors.getStart('f', 0)).toBe(0)
  })

  it('at a lane that this process has released, if it is earlier', async ({ expect }) => {
    const floors = await at(6_000)
    floors.lowerFor([{ ...LANE, due: 80_000 }])
    expect(floors.getStart('f', 0)).toBe(80_000)
    floors.lowerFor([{ ...LANE, due: 90_000 }])
    expect(floors.getStart('f', 0)).toBe(80_000)
  })
})
