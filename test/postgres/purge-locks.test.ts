// Tests a purge that finds lanes step by step while other transactions hold some of them. It waits, or starts anew with all
// lanes it has found, and does not give up after a number of tries.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { createEventToStore } from '../conformance/builders.ts'

const WAITING = 'select count(*)::int as n from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
const HOLD = 'select from lanes where id = $1 for update'
const ROUNDS = 25
let opened = 0

/** The last key is behind all others in the lock order of lanes. */
const keys = Array.from({ length: ROUNDS + 1 }, (_, n) => `k${n}`).toSorted((one, other) =>
  laneId('flow', one) < laneId('flow', other) ? -1 : 1,
)
const last = keys[ROUNDS] ?? ''

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  let store: Store
  let schema: string
  let clients: readonly pg.Client[]

  beforeEach(async () => {
    schema = `held_lanes_${process.pid}_${opened++}`
    store = await openPostgresStore({ url, schema, connections: 3, acceptLoss: true })
    clients = await Promise.all([connect(), connect(), connect()])
  })

  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()))
    await store.close()
  })

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`set search_path = "${schema}"`)
    return client
  }

  /** Stores an event in the last lane and in another one, which the holder then locks. */
  async function hold(holder: pg.Client, key: string): Promise<void> {
    const { results } = await store.append({
      routes: 1,
      events: [createEventToStore(key, { keys: [last, key] }, systemClock.now())],
    })
    expect(results).toEqual([{ kind: 'stored' }])
    await holder.query('begin')
    await holder.query(HOLD, [laneId('flow', key)])
  }

  it('a purge that meets another held lane each time waits for all of them', async () => {
    const [looker, ...holders] = clients as [pg.Client, pg.Client, pg.Client]
    let [holder, next] = holders
    const isFree = (): Promise<boolean> =>
      looker.query(`${HOLD} nowait`, [laneId('flow', last)]).then(
        () => true,
        () => false,
      )
    // The purge waits for a lane and holds none behind it, so it has started anew.
    const isWaiting = async (): Promise<boolean> =>
      (await holder.query<{ n: number }>(WAITING)).rows[0]?.n === 1 && (await isFree())
    await hold(holder, keys[0] ?? '')
    const purged = store.purge({ what: { kind: 'lanes', ids: [laneId('flow', last)] }, n: 500 })
    for (const key of keys.slice(1, ROUNDS)) {
      await expect.poll(isWaiting, { interval: 5 }).toBe(true)
      await hold(next, key)
      await holder.query('commit')
      ;[holder, next] = [next, holder]
    }
    await holder.query('commit')
    expect(await purged).toMatchObject({ events: ROUNDS, more: false })
  })
})
