// Runs an app on one PostgreSQL while another session holds a transaction open. Measures how long claims take before, meanwhile
// and after, and when the alert is raised and cleared.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { alerts, openStore, Sluice, type Store } from '../../src/index.ts'
import type { SettleAndClaimCall } from '../../src/store/contract/index.ts'
import { rounded } from '../figures/folder.ts'
import { backAfter, slices, took, type Sample, type Took } from './claim-times.ts'

export interface LongPlan {
  readonly url: string
  /** Runs a second, and as many events, each with a key of its own at that time. */
  readonly rate: number
  /** Milliseconds before the measurement, and then without, with and again without the transaction. */
  readonly warmUp: number
  readonly before: number
  readonly held: number
  readonly after: number
  /** Runs right after the transaction begins, as fast as possible: they create as many dead rows as a much longer time would. */
  readonly burst?: number
  /** From the begin of the transaction to the measurement, including the burst. */
  readonly unmeasured?: number
  readonly progress?: (what: string) => void
}

interface Claims extends Took {
  readonly runsPerSecond: number
  /** The index entries and rows that the server read, in all tables. A busy machine does not change this. */
  readonly blocksPerRun: number
  /** At the end of the phase, or up to ten seconds before. */
  readonly deadRows: number
}

export interface LongFigure {
  readonly before: Claims
  readonly held: Claims
  readonly after: Claims
  /** The p99 of each ten seconds, from the beginning of `before`. */
  readonly p99s: readonly number[]
  /** Time since the begin of the transaction; undefined if never. */
  readonly raisedAfter: number | undefined
  /** Time since the end of the transaction. */
  readonly clearedAfter: number | undefined
  /** Time from the end of the transaction until ten seconds with a normal p99 had passed. */
  readonly backAfter: number | undefined
  readonly text: string
}

const KEYS = 4_000
const QUIET = 200
const BATCH_EVERY = 25
const BURST = 'burst-'
const BURST_BATCH = 500
const NORMAL = 1.25
const ALERT = 'old-snapshot'

export async function longTransaction(plan: LongPlan): Promise<LongFigure> {
  const { url, warmUp, before, held, after, burst = 0, unmeasured = 0, progress = () => {} } = plan
  const samples: Sample[] = []
  const ran: number[] = []
  let burstRuns = 0
  const told: { readonly name: string; readonly at: number; readonly text: string }[] = []
  const store = await openStore(url)
  const app = new Sluice({ store: timed(store, samples), log: false })
  app.flow('work', {
    on: 'work',
    key: (event) => event.subject,
    window: { quiet: QUIET },
    run: ({ key }) => {
      if (key.startsWith(BURST)) burstRuns++
      else ran.push(performance.now())
    },
  })
  app.alert(ALERT, { when: alerts.oldSnapshot() })
  app.on('alert.raised', ({ alert, text }) => alert === ALERT && told.push({ ...at('raised'), text }))
  app.on('alert.cleared', ({ alert, text }) => alert === ALERT && told.push({ ...at('cleared'), text }))
  await app.start()
  const load = new AbortController()
  const loaded = publishAll(app, plan.rate, load.signal)
  // A fault in the load ends the measurement at its await.
  loaded.catch(() => {})
  const client = new pg.Client({ connectionString: url, application_name: 'long-report' })
  // A transaction sees the server's statistics as of its first read.
  const onlooker = new pg.Client({ connectionString: url })
  await client.connect()
  await onlooker.connect()
  try {
    await sleep(warmUp)
    const begun = performance.now()
    const measured = async (name: string, ms: number): Promise<Claims> => {
      const looked = await blocks(onlooker)
      const from = performance.now()
      await sleep(ms)
      const to = performance.now()
      const lookedAt = (await blocks(onlooker)) - looked
      const { vacuum: hygiene } = await store.stats()
      const within = (moment: number): boolean => moment >= from && moment < to
      const runs = ran.filter(within).length
      const claims: Claims = {
        runsPerSecond: rounded((runs * 1_000) / (to - from), 1),
        ...took(samples.filter((sample) => within(sample.at))),
        blocksPerRun: rounded(lookedAt / runs, 1),
        deadRows: Object.values(hygiene?.deadRows ?? {}).reduce((sum, count) => sum + count, 0),
      }
      progress(`${name}: ${JSON.stringify(claims)}`)
      return claims
    }
    const without = await measured('before', before)
    await client.query('begin isolation level repeatable read')
    await client.query('select 1')
    const opened = performance.now()
    const isBurstOver = (): boolean => burstRuns >= burst && performance.now() - opened >= unmeasured
    await publishBurst(app, burst)
    while (!isBurstOver()) await sleep(BATCH_EVERY)
    const beside = await measured('held', held)
    await client.query('commit')
    const closed = performance.now()
    const again = await measured('after', after)
    load.abort()
    await loaded
    const raised = told.find(({ name }) => name === 'raised')
    const cleared = told.find((one) => one.name === 'cleared' && one.at > closed)
    return {
      before: without,
      held: beside,
      after: again,
      p99s: slices(samples, begun, closed + after).map(({ p99 }) => p99),
      raisedAfter: raised && Math.round(raised.at - opened),
      clearedAfter: cleared && Math.round(cleared.at - closed),
      backAfter: backAfter(slices(samples, closed, closed + after), NORMAL * without.p99),
      text: raised?.text ?? '',
    }
  } finally {
    load.abort()
    await client.end()
    await onlooker.end()
    await app.stop()
    await store.close()
  }
}

/** Wraps the store and measures each claim. */
function timed(store: Store, samples: Sample[]): Store {
  const turn: Store['settleAndClaim'] = async (call: SettleAndClaimCall) => {
    const from = performance.now()
    const reply = await store.settleAndClaim(call)
    if (call.claim.length > 0) samples.push({ at: from, ms: performance.now() - from })
    return reply
  }
  return new Proxy(store, {
    get: (target, name): unknown => {
      if (name === 'settleAndClaim') return turn
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

async function blocks(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::float8 as n
     from pg_statio_user_tables where schemaname = 'sluice'`,
  )
  return rows[0]?.n ?? 0
}

/** Publishes at a steady rate; events that the store was too slow for come with the next batch. */
async function publishAll(app: Sluice, rate: number, signal: AbortSignal): Promise<void> {
  const began = performance.now()
  for (let sent = 0; !signal.aborted;) {
    const first = sent
    sent = Math.floor(((performance.now() - began) * rate) / 1_000)
    const events = Array.from({ length: sent - first }, (_, n) => ({
      type: 'work',
      subject: `key-${(first + n) % KEYS}`,
      data: { n: first + n },
    }))
    await Promise.all([app.publish(events), sleep(BATCH_EVERY)])
  }
}

async function publishBurst(app: Sluice, events: number): Promise<void> {
  const all = Array.from({ length: events }, (_, n) => ({ type: 'work', subject: `${BURST}${n}` }))
  for (let n = 0; n < events; n += BURST_BATCH) await app.publish(all.slice(n, n + BURST_BATCH))
}

function at(name: 'raised' | 'cleared'): { readonly name: string; readonly at: number } {
  return { name, at: performance.now() }
}
