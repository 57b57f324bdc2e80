// A scan of the deadline index sees what was committed when it began, and locks rows as they are when it reaches them. A lane
// that changes in between is still found, or at least known to be due.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'
import type { Store, SettleAndClaimReply } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const { query } = pg.Client.prototype
const GATE = 4_711
const QUIET = 60_000
let opened = 0

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  let ours: Store
  let theirs: Store
  let holder: pg.Client

  beforeEach(async () => {
    const schema = `looks_${process.pid}_${opened++}`
    const open = (): Promise<Store> => openPostgresStore({ url, schema, connections: 3, acceptLoss: true })
    ours = await open()
    theirs = await open()
    holder = new pg.Client({ connectionString: url })
    await holder.connect()
  })

  afterEach(async () => {
    pg.Client.prototype.query = query
    await Promise.all([ours.close(), theirs.close(), holder.end()])
  })

  function send(key: string, quiet: number): Promise<unknown> {
    return ours.append({
      routes: 1,
      events: [createEventToStore('event', { key, quiet, max: QUIET }, systemClock.now())],
    })
  }

  /** The scan for ready lanes begins before `meanwhile` and reaches the lanes after it. */
  async function turnAround(meanwhile: () => Promise<unknown>): Promise<SettleAndClaimReply> {
    pg.Client.prototype.query = function (this: pg.Client, ...given: readonly unknown[]) {
      return (query as (...all: unknown[]) => unknown).apply(this, given.map(gated))
    } as typeof query
    await holder.query('select pg_advisory_lock($1)', [GATE])
    const claim = [createClaimRequest()]
    const turned = theirs.settleAndClaim({ process: 'p', request: 1, routes: 1, settle: [], claim, budget: 64_000_000 })
    const waiting = 'select count(*) as n from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
    await expect.poll(async () => (await holder.query<{ n: string }>(waiting)).rows[0]?.n, { interval: 5 }).toBe('1')
    await meanwhile()
    await holder.query('select pg_advisory_unlock($1)', [GATE])
    return turned
  }

  it('an event that joins a due lane during the scan is claimed with it', async () => {
    await send('k', 0)
    const { claimed } = await turnAround(() => send('k', 0))
    expect(claimed.map(({ events }) => events.length)).toEqual([2])
  })
})

function gated(given: unknown): unknown {
  const asked = given as { readonly text?: string; readonly name?: string }
  if (asked?.text?.startsWith('select l.*, a.n') !== true) return given
  const gate = `from (select pg_advisory_xact_lock(${GATE}) offset 0) gate, unnest($1`
  return { ...asked, name: `${asked.name} gated`, text: asked.text.replace('from unnest($1', gate) }
}
