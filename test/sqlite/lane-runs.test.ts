// The runs of a lane are found although their list is written late: in this process, after a start, and by a read-only store.
import { expect, it } from 'vitest'
import { laneId, keylessLaneId, type LaneId } from '../../src/model/identity.ts'
import { createClaimRequest, done } from '../conformance/builders.ts'
import type { LeasedRun, EventToStore, Settlement, Store } from '../../src/store/contract/index.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const END = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
const FLOW = 'f'
const KEYS = 40
const EVENTS = 12_000
const AT_ONCE = 500

/** Every third has no key. */
function nth(n: number): EventToStore {
  const made = event(`e${n}`, { flow: FLOW, key: `k${n % KEYS}`, quiet: 0, max: 0 })
  const lane = keylessLaneId(FLOW, `0123456789${n}`)
  return n % 3 === 0
    ? { ...made, placements: made.placements.map((place) => ({ ...place, lane, key: `own ${n}` })) }
    : made
}

async function sent(store: Store, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += 1_000)
    await send(store, ...Array.from({ length: Math.min(1_000, to - n) }, (_, at) => nth(n + at)))
}

let request = 0

async function turn(store: Store, settle: readonly Settlement[], slots = AT_ONCE): Promise<readonly LeasedRun[]> {
  const claim = [createClaimRequest({ flow: FLOW, maxRuns: slots, maxEvents: 1 })]
  const call = { process: 'p', request: ++request, routes: 1, settle, claim, budget: 1_000_000 }
  return (await store.settleAndClaim(call)).claimed
}

/** Runs everything that is due, and returns how often each lane ran. */
async function ran(store: Store): Promise<ReadonlyMap<LaneId, number>> {
  const runs = new Map<LaneId, number>()
  for (let under = await turn(store, []); under.length > 0;) {
    for (const { lane } of under) runs.set(lane, (runs.get(lane) ?? 0) + 1)
    under = await turn(
      store,
      under.map(({ lane, token }) => ({ ...END, lane, token })),
    )
  }
  return runs
}

async function found(store: Store, lane: LaneId): Promise<number> {
  const ids = new Set<string>()
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const page: Awaited<ReturnType<typeof store.find<'runs'>>> = await store.find({
      kind: 'runs',
      filter: { lane },
      cursor,
      n: 50,
    })
    for (const run of page.items) {
      expect(run.lane).toBe(lane)
      ids.add(run.id)
    }
    cursor = page.next
  }
  return ids.size
}

it('all are found: runs that are only in memory, runs that were read again, and runs of lanes without a key', async () => {
  const file = freshFile()
  const store = await open(file)
  const reader = await open(file, { readOnly: true })
  await sent(store, 0, EVENTS)
  const runs = await ran(store)
  expect([...runs.values()].reduce((sum, count) => sum + count, 0)).toBe(EVENTS)
  const withKey = [laneId(FLOW, 'k1'), laneId(FLOW, 'k37')]
  const asked = [...withKey, keylessLaneId(FLOW, '01234567890'), keylessLaneId(FLOW, '012345678911997')]
  const real = asked.map((lane) => runs.get(lane))
  expect(real).toEqual([200, 200, 1, 1])

  const db = connect(file)
  const one = (sql: string): number => Number(db.prepare(`select (${sql}) as n`).get()?.['n'])
  // The write is late, but it happens.
  expect(one(`select count(*) from lane_runs where length(lane) = 22`)).toBeGreaterThan(0)
  expect(one(`select count(*) from lane_runs where length(lane) = 22`)).toBeLessThan((EVENTS * 2) / 3)
  expect(one(`select value from meta where name = 'listed'`)).toBeGreaterThan(0)

  const everywhere = async (of: Store): Promise<readonly number[]> => Promise.all(asked.map((lane) => found(of, lane)))
  expect(await everywhere(store)).toEqual(real)
  expect(await everywhere(reader)).toEqual(real)
  const inView = db.prepare(`select count(*) as n from work where lane = ? and status = 'completed'`)
  expect(asked.map((lane) => inView.get(lane)?.['n'])).toEqual(real)
  // Not all unwritten runs of the lane are read for each event.
  const plan = db.prepare('explain query plan select status, count(*) from work group by 1').all()
  expect(plan.map(({ detail }) => String(detail)).find((detail) => /SEARCH late/.test(detail))).toContain('seq=?')
  await store.close()
  expect(await everywhere(await open(file))).toEqual(real)
})

it('the list contains no run that was deleted by age, or whose end was rolled back', async () => {
  const file = freshFile()
  const store = await open(file)
  await sent(store, 0, 30)
  await ran(store)
  const policy = { events: { '': 0 }, runs: { '': 0 }, deadLetters: 1e12, bytes: 1e12, lanesPerTenant: {} }
  // Events go first, and their runs stay as long as they do.
  const gone = [await store.maintain({ budget: 1_000, policy }), await store.maintain({ budget: 1_000, policy })]
  expect(gone.reduce((sum, { counts: did }) => sum + did.runs, 0)).toBe(30)

  const db = connect(file)
  await sent(store, 31, 32)
  const [lease] = await turn(store, [], 1)
  if (lease === undefined) throw new TypeError('it is due')
  const end = { ...END, lane: lease.lane, token: lease.token }
  db.exec(`create trigger planted before insert on runs begin select raise(abort, 'planted'); end`)
  await expect(turn(store, [end], 0)).rejects.toMatchObject({ code: 'STORE_FAILED' })
  db.exec('drop trigger planted')
  await turn(store, [{ ...end, outcome: { kind: 'retry', after: 1e9 } }], 0)

  // By then, everything in memory is in the list.
  await sent(store, 100, 9_100)
  await ran(store)
  const unknown = 'select count(*) as n from lane_runs where run not in (select n from runs)'
  expect(db.prepare(unknown).get()).toEqual({ n: 0 })
})
