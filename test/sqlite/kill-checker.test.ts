// The checker of the kill test detects each fault. A fixed history runs in this process; the image of its files is what a
// process that is killed at that moment leaves. Each test plants one fault in the image.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createClaimRequest, done, partial, retry } from '../conformance/builders.ts'
import type { LeasedRun, Settlement, Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { inFolder } from '../figures/folder.ts'
import { Checker } from './kill-check.ts'
import { drain } from './kill-drain.ts'
import { Ledger } from './kill-ledger.ts'
import { eventOf, FLOW, LEASE, sent, type Ended } from './kill-load.ts'
import { inspect } from './kill-read.ts'
import type { KillReport } from './kill-cycles.ts'

const END = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
const NOTHING = { retry: [], dead: [], publish: [] }
const FIRST = 'first-0'
const STEP = 10

class History {
  readonly ledger = new Ledger()
  readonly #store: Store
  readonly #routes: number
  /** The clock moves only with calls, so no lease lapses on a slow machine. */
  readonly #clock: VirtualClock
  #calls = 0

  constructor(store: Store, routes: number, clock: VirtualClock) {
    this.#store = store
    this.#routes = routes
    this.#clock = clock
  }

  async append(ids: readonly string[], isEarly = false): Promise<void> {
    this.#clock.advance(STEP)
    const events = ids.map((id) => eventOf(id, this.#clock.now()))
    const n = this.#calls++
    this.ledger.hear({ kind: 'appending', n, events: events.map(sent) })
    if (isEarly) return this.ledger.hear({ kind: 'appended', n, answers: ids.map(() => 'stored') })
    const { results } = await this.#store.append({ routes: this.#routes, events })
    return this.ledger.hear({ kind: 'appended', n, answers: results.map(({ kind }) => kind) })
  }

  async turn(ends: readonly (readonly [Settlement, Ended])[], isEarly = false): Promise<readonly LeasedRun[]> {
    this.#clock.advance(STEP)
    const n = this.#calls++
    this.ledger.hear({ kind: 'settling', n, ends: ends.map(([, ended]) => ended) })
    if (isEarly) {
      this.ledger.hear({ kind: 'settled', n, answers: ends.map(() => 'ok') })
      return []
    }
    const reply = await this.#store.settleAndClaim({
      process: 'p',
      request: n + 1,
      routes: this.#routes,
      settle: ends.map(([settle]) => settle),
      claim: [
        createClaimRequest({ flow: FLOW, maxRuns: 10, maxFailing: 10, maxSuspects: 5, maxEvents: 40, lease: LEASE }),
      ],
      budget: 1_000_000,
    })
    this.ledger.hear({ kind: 'settled', n, answers: reply.settled })
    const runs = reply.claimed.map((lease) => ({
      ...lease,
      run: lease.runId,
      events: lease.events.map(({ id }) => id),
    }))
    this.ledger.hear({ kind: 'claimed', runs, crashed: reply.crashed.map(({ run }) => run) })
    return reply.claimed
  }
}

/** The first run is retried, the second dies, one of several events is retried in part, and the others are done. */
function endOf({ runId: run, lane, token, events: batch }: LeasedRun, at: number): readonly [Settlement, Ended] {
  const events = batch.map(({ id }) => id)
  const base = { ...END, lane, token }
  const ended = { run, lane, events, ...NOTHING }
  const attempt = { at: Date.now(), ms: 1, error: 'refused' }
  if (at === 0)
    return [
      { ...base, outcome: retry(5), attempt },
      { ...ended, kind: 'retry' },
    ]
  if (at === 1)
    return [
      { ...base, outcome: { kind: 'dead', reason: 'broken', block: false } },
      { ...ended, kind: 'dead' },
    ]
  if (events.length > 1) {
    const again = events.slice(1)
    return [
      { ...base, outcome: partial({ retry: again, dead: [] }), attempt },
      { ...ended, kind: 'partial', retry: again },
    ]
  }
  return [
    { ...base, outcome: done },
    { ...ended, kind: 'done' },
  ]
}

const ids = (name: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${name}-${at}`)

interface Planted {
  /** Changes the image behind the store's back. */
  readonly sql?: string | ((token: number) => string)
  readonly early?: 'append' | 'settlement'
  /** Removes every run from the lists of its lane before `sql` runs. */
  readonly unlisted?: boolean
  /** Publishes a known event again after the restart. */
  readonly again?: string
}

function report({ sql, early, again, unlisted = false }: Planted): Promise<KillReport> {
  return inFolder(async (folder) => {
    const live = join(folder, 'live.db')
    const image = join(folder, 'image.db')
    const clock = new VirtualClock(Date.now())
    const store = await openStore(`sqlite:${live}`, { clock })
    const history = new History(store, (await store.stats()).routes, clock)
    const { ledger } = history
    await history.append(ids('first', 60))
    const first = await history.turn([])
    const second = await history.turn(first.map((lease, at) => endOf(lease, at)))
    expect(second.length).toBeGreaterThan(1)
    // For debounced lanes with a row, these events only move the deadline later.
    await history.append(ids('second', 30))
    if (early === 'append') await history.append(ids('early', 5), true)
    if (early === 'settlement')
      await history.turn(
        second.map((lease) => endOf(lease, 2)),
        true,
      )
    for (const suffix of ['', '-wal']) copyFileSync(`${live}${suffix}`, `${image}${suffix}`)
    await store.close()
    if (sql !== undefined) {
      const db = new DatabaseSync(image)
      // The store writes this index later; whether it has done so by now depends on the speed of the machine.
      if (unlisted) db.exec('delete from lane_runs')
      const text = typeof sql === 'string' ? sql : sql(first[0]?.token ?? 0)
      expect(db.prepare(text).run().changes, 'rows changed').toBeGreaterThan(0)
      db.close()
    }
    const checker = new Checker(ledger)
    const look = (): void =>
      inspect(image, (one) => {
        checker.check(one)
        checker.checkAll(one)
      })
    look()
    if (again !== undefined) await sendAgain(image, again, ledger)
    await drain(image, ledger)
    look()
    checker.checkDrained()
    return { counts: ledger.complaints.counts, complaints: ledger.complaints.first }
  })
}

async function sendAgain(file: string, of: string, ledger: Ledger): Promise<void> {
  const store = await openStore(`sqlite:${file}`, { clock: systemClock })
  const { routes } = await store.stats()
  const as = `${of}-again`
  const { results } = await store.append({ routes, events: [{ ...eventOf(of, Date.now()), id: as }] })
  ledger.hear({ kind: 'sent-again', of, as, answer: results[0]?.kind ?? '' })
  await store.close()
}

it('an unchanged image causes no complaint', async () => {
  const { counts, complaints } = await report({ again: FIRST })
  expect(complaints).toEqual([])
  expect(counts).toMatchObject({ ackedAppends: 90, sentAgain: 1 })
  expect(counts.ackedSettlements).toBeGreaterThan(10)
})

describe('the checker detects', () => {
  it('acknowledged events that were never stored', async () => {
    const { counts } = await report({ early: 'append' })
    expect(counts.lost).toBeGreaterThanOrEqual(5)
  })

  it('acknowledged settlements that are not stored', async () => {
    const { counts } = await report({ early: 'settlement' })
    expect(counts.lost).toBeGreaterThan(0)
    expect(counts.repeatedAfterDone).toBeGreaterThan(0)
  })

  const lost: Readonly<Record<string, string>> = {
    'a finished event that is gone': `delete from events where seq = (select min(cast(events as integer)) from runs)`,
    'lanes that are gone': 'delete from lanes',
    'the record of a run that is gone': `delete from runs where kind = 'done'`,
    'lanes whose pushed-back events are gone': 'delete from pushed_back',
  }
  it.each(Object.entries(lost))('%s', async (_, sql) => {
    expect((await report({ sql })).counts.lost).toBeGreaterThan(0)
  })

  it('an event that waits again after it was done', async () => {
    const sql = `insert into places (lane, rank, pos, list)
      select (select min(row) from lanes), 0, 1000000000, '1000000000,' || cast(events as integer) || ',0,0'
      from runs where kind = 'done' limit 1`
    const { counts } = await report({ sql })
    expect(counts.wrong + counts.repeatedAfterDone).toBeGreaterThan(0)
  })

  const complaints: Readonly<Record<string, readonly [sql: string, complaint: string]>> = {
    'a run that is in no list of its lane': [
      `update meta set value = 1000000000 where name = 'listed'`,
      'in no list of their lanes',
    ],
    'a run that had begun and is forgotten': [
      `update meta set value = '' where name = 'begun' and value <> ''`,
      'which had begun',
    ],
  }
  it.each(Object.entries(complaints))('%s', async (_, [sql, complaint]) => {
    const unlisted = sql.includes("'listed'")
    expect((await report({ sql, unlisted })).complaints.join()).toContain(complaint)
  })

  it('a token that is issued twice', async () => {
    const fromFirst = await report({ sql: (token) => `update meta set value = ${token - 1} where name = 'counter'` })
    expect(fromFirst.complaints.join()).toContain('was given out twice')
  })

  it('a known event that is no longer recognised', async () => {
    const { complaints: all } = await report({ sql: 'update events set identity = null', again: FIRST })
    expect(all.join()).toContain(`that ${FIRST} is known`)
  })
})
