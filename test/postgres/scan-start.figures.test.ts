// Beside an old snapshot, deleted entries stay in the index. A claim must not read all of them each time.
import pg from 'pg'
import { describe, inject, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import { createClaimRequest, done, LEASE, createEventToStore } from '../conformance/builders.ts'
import type { LeasedRun, Settlement, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

const DEAD = 2_000
const TURNS = 40
/** A lane that another process moved to an earlier position is found by then, at the latest. */
const WHOLE_EVERY = 5_000

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it(
    'a claim starts at the scan start, and finds lanes that moved to before it',
    { timeout: 60_000 },
    async ({ expect }) => {
      const schema = `floors_${process.pid}`
      const open = (): Promise<Store> => openPostgresStore({ url, schema, connections: 2, acceptLoss: true })
      const [store, other] = [await open(), await open()]
      const onlooker = new pg.Client({ connectionString: url })
      const holder = new pg.Client({ connectionString: url })
      await Promise.all([onlooker.connect(), holder.connect()])
      await holder.query('begin isolation level repeatable read')
      await holder.query('select count(*) from pg_class')
      const began = systemClock.monotonic()
      let request = 0
      const turn = async (
        by: Store,
        settle: readonly LeasedRun[] = [],
        slots = 100,
        leased = LEASE,
      ): Promise<readonly LeasedRun[]> => {
        const reply = await by.settleAndClaim({
          process: by === store ? 'one' : 'other',
          request: ++request,
          routes: 1,
          settle: settle.map(settling),
          claim: slots === 0 ? [] : [createClaimRequest({ maxRuns: slots, lease: leased })],
          budget: 64_000_000,
        })
        return reply.claimed
      }
      const entriesRead = async (): Promise<number> => {
        // A connection reports its statistics at most once a second, when it is used again.
        await passed(1_100)
        for (const by of [store, other]) await Promise.all([1, 2].map(() => by.readFeed({ after: 0, n: 1 })))
        const { rows } = await onlooker.query<{ n: string }>(
          `select pg_stat_clear_snapshot(), sum(idx_tup_read) as n from pg_stat_user_indexes where schemaname = $1 and indexrelname = 'lanes_line'`,
          [schema],
        )
        return Number(rows[0]?.n)
      }
      try {
        for (let from = 0; from < DEAD; from += 100) {
          await send(
            store,
            Array.from({ length: 100 }, (_, n) => `k${from + n}`),
            0,
          )
          await turn(store, await turn(store, [], 100, 1_000), 0)
        }
        await passed(Math.max(0, 6_500 - (systemClock.monotonic() - began)))
        // By now the snapshot is known to be old, and this scan covers the whole range.
        await turn(store)
        await turn(store)
        const before = await entriesRead()
        for (let n = 0; n < TURNS; n++) {
          await send(store, [`new ${n}`], 0)
          const claimed = await turn(store, [], 1)
          expect(claimed.map(({ key }) => key)).toEqual([`new ${n}`])
          await turn(store, claimed, 0)
        }
        // At most two full scans; without the scan start, each scan would be one.
        expect((await entriesRead()) - before).toBeLessThan(DEAD * 6)

        // A held lane is at the end of the index. Resumed by this process, it is the first at once.
        const keysOf = async (slots: number): Promise<readonly string[]> =>
          (await turn(store, [], slots)).map(({ key }) => key)
        for (const key of ['ours', 'theirs']) {
          await send(store, [key], 0)
          await hold(store, key)
        }
        await passed(1_500)
        expect(await keysOf(1)).toEqual([])
        await letGo(store, 'ours')
        await send(store, ['later'], 0)
        expect(await keysOf(1)).toEqual(['ours'])
        expect(await keysOf(1)).toEqual(['later'])
        // Resumed by another process, it is found soon.
        await letGo(other, 'theirs')
        await expect.poll(() => keysOf(1), { timeout: WHOLE_EVERY + 1_000 }).toEqual(['theirs'])

        // A running lane keeps its old position before all others, and its lapse is still found at once.
        const inFlow = (key: string): Promise<unknown> =>
          store.append({
            routes: 1,
            events: [createEventToStore(key, { key, flow: 'lapse', quiet: 0 }, systemClock.now())],
          })
        const claimIn = async (
          by: Store,
          settle: readonly LeasedRun[],
          leased: number,
        ): Promise<readonly LeasedRun[]> => {
          const claim = [createClaimRequest({ flow: 'lapse', maxRuns: 2, lease: leased })]
          const call = { process: 'lapse', request: ++request, routes: 1, claim, budget: 64_000_000 }
          return (await by.settleAndClaim({ ...call, settle: settle.map(settling) })).claimed
        }
        await inFlow('slow')
        const [slow] = await claimIn(other, [], 1_500)
        expect(slow?.key).toBe('slow')
        for (let n = 0, found: readonly LeasedRun[] = []; !found.some(({ key }) => key === 'slow'); n++) {
          await inFlow(`short ${n}`)
          found = await claimIn(store, found, LEASE)
        }
        expect(systemClock.now() - (slow?.until ?? 0)).toBeLessThan(WHOLE_EVERY / 5)
      } finally {
        await holder.query('rollback')
        await Promise.all([holder.end(), onlooker.end(), store.close(), other.close()])
      }
    },
  )
})

function settling({ lane, token }: LeasedRun): Settlement {
  return { lane, token, outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] }
}

function send(by: Store, keys: readonly string[], quiet: number): Promise<unknown> {
  return by.append({ routes: 1, events: keys.map((key) => createEventToStore(key, { key, quiet }, systemClock.now())) })
}

function hold(by: Store, key: string): Promise<unknown> {
  const act = { kind: 'hold', reason: '', by: '', for: 60_000 } as const
  return by.steer({ what: 'lanes', ids: [laneId('flow', key)], act })
}

function letGo(by: Store, key: string): Promise<unknown> {
  return by.steer({ what: 'lanes', ids: [laneId('flow', key)], act: { kind: 'unhold' } })
}

/** The test needs real time: a snapshot counts as old after some real seconds. */
function passed(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve))
}
