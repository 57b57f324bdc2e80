// The checker of the torture test detects each fault. An undisturbed run has no complaints; then each test changes one thing at
// a fixed place, in the tables or in the ledger.
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { laneId } from '../../../src/model/identity.ts'
import { complaintsOf } from './check.ts'
import { torture, type Tortured } from './cluster.ts'
import { Ledger, type Action, type Lease } from './ledger.ts'
import { publishOne } from './publishers.ts'
import { BOUNDS } from './plan.ts'
import type { EventRow, DeadLetterRow, RunRow, Tables } from './tables.ts'

const [SERVER = { name: '', url: '', tcpUrl: '' }] = inject('postgresServers')
const PLAN = { url: SERVER.url, seed: 20_261_118, batches: 25, acts: 0, terminated: 0, stalls: 0, crashes: 0 }

/** The tables as mutable rows. */
type Rows<T> = { -readonly [K in keyof T]: T[K] }[]

interface Open {
  readonly events: Rows<EventRow>
  readonly runs: Rows<RunRow>
  readonly deadLetters: Rows<DeadLetterRow>
  readonly receipts: { event: number }[]
  readonly stored_bytes: { bytes: number }[]
}

interface Planted {
  readonly ledger: Ledger
  readonly tables: Open & Tables
  readonly remains: Open & Tables
  readonly listed: string[]
}

let calm: Tortured

beforeAll(async () => {
  calm = await torture({ ...PLAN, schema: `torture_calm_${process.pid}` })
})

function copied({ ledger: seen, tables, remains, listed }: Tortured): Planted {
  const ledger = new Ledger()
  for (const [label, sent] of seen.sent) ledger.sent.set(label, structuredClone(sent))
  ledger.leases.push(...structuredClone(seen.leases))
  return {
    ledger,
    ...(structuredClone({ tables, remains }) as unknown as Pick<Planted, 'tables' | 'remains'>),
    listed: [...listed],
  }
}

function the<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('There is nothing to plant a fault in.')
  return found
}

function planted(plant: (at: Planted) => void): readonly string[] {
  const at = copied(calm)
  plant(at)
  return complaintsOf({ ...calm, ...at })
}

/** The record of a run whose events all have one lane. */
function doneRun({ tables }: Planted): Rows<RunRow>[number] {
  const isAlone = (event: number): boolean => tables.events.find(({ seq }) => seq === event)?.lanes.length === 1
  return the(
    tables.runs.find(({ kind, events, flow }) => kind === 'done' && flow === 'gather' && events.every(isAlone)),
  )
}

/** An event that was done in its only lane. */
function doneEvent(at: Planted): Rows<EventRow>[number] {
  const { events } = doneRun(at)
  return the(at.tables.events.find(({ seq, lanes }) => events.includes(seq) && lanes.length === 1))
}

/** The first lease with this settlement. */
function settled({ ledger }: Planted, kind: string, flow?: string): Lease {
  return the(ledger.leases.find((one) => one.outcome?.kind === kind && (flow === undefined || one.flow === flow)))
}

function without<T>(rows: T[], row: T): void {
  rows.splice(rows.indexOf(row), 1)
}

/** One lease more than allowed, all at the time of this one. */
function crowd({ ledger }: Planted, one: Lease, most: number, change: Partial<Lease>): void {
  for (let n = 1; n <= most; n++) {
    const lane = `another ${n}`
    ledger.leases.push({ ...one, token: one.token + n / 10, lane, events: [], ...change })
  }
}

/** Adds an act of an operator at that time to the ledger. */
function acted({ ledger }: Planted, action: Action, target: string, at: { began: number; ended: number }): void {
  const act = ledger.act(action, target)
  ledger.acts.splice(-1, 1, { ...act, ...at, lastBegan: at.began, answer: 'ok', undone: Infinity })
}

const IN_TABLES: readonly (readonly [what: string, complaint: RegExp, plant: (at: Planted) => void])[] = [
  ['the record of a run is gone', /lost: .* has no end/, (at) => without(at.tables.runs, doneRun(at))],
  [
    'the record of a run is there twice',
    /twice: .* is done by .* and done by/,
    (at) => at.tables.runs.push({ ...doneRun(at), n: 1 }),
  ],
  ['a run is recorded that never was', /no handler gave it/, (at) => at.tables.runs.push({ ...doneRun(at), n: 1 })],
  [
    'a record has an event more',
    /has events that its run had not/,
    (at) => void (doneRun(at).events = [...doneRun(at).events, the(at.tables.events[0]).seq]),
  ],
  ['a record says dropped', /nobody dropped it/, (at) => void (doneRun(at).kind = 'dropped')],
  ['a record says dead', /is dead, and there is no dead letter/, (at) => void (doneRun(at).kind = 'dead')],
  ['a record says superseded', /no run took its place/, (at) => void (doneRun(at).kind = 'superseded')],
  ['a record is of no known kind', /is on record as expired/, (at) => void (doneRun(at).kind = 'expired')],
  ['a record is of another lane', /was never placed there/, (at) => void (doneRun(at).lane = 'elsewhere')],
  [
    'a dead letter is gone',
    /lost: .* has no end/,
    ({ tables }) => without(tables.deadLetters, the(tables.deadLetters[0])),
  ],
  ['a dead letter is not listed', /is not listed/, ({ listed }) => void listed.shift()],
  ['a dead letter is listed that is not there', /is not there/, ({ listed }) => void listed.push('nobody')],
  [
    'a dead letter waits to be run',
    /is queued, and nothing/,
    ({ tables }) => void Object.assign(the(tables.deadLetters[0]), { state: 'queued' }),
  ],
  [
    'a dead letter says that it crashed',
    /crashed 4 times, and lapsed 0 times/,
    ({ tables }) => void Object.assign(the(tables.deadLetters[0]), { reason: 'crashed', lapses: 4 }),
  ],
  ['an event is gone', /acknowledged, and is not stored/, ({ tables }) => void tables.events.shift()],
  [
    'an event came from nowhere',
    /event nobody came from nowhere/,
    ({ tables }) => tables.events.push({ ...the(tables.events[0]), seq: 1, id: 'nobody' }),
  ],
  ['a body is gone', /lost: the body of/, (at) => void (doneEvent(at).body = '\\x')],
  ['a body was purged', /which nobody purged/, (at) => void (doneEvent(at).purged_hash = 'hash')],
  ['an event is to go', /is to go when its lanes/, (at) => void (doneEvent(at).doomed = true)],
  ['an event is in another lane', /placed in other lanes/, (at) => void (doneEvent(at).lanes = ['x'])],
  ['a receipt is gone', /has 0 receipts/, ({ tables }) => void tables.receipts.splice(0)],
  ['a receipt has no event', /a receipt of event 1/, ({ tables }) => tables.receipts.push({ event: 1 })],
  ['bytes are not counted', /bytes are counted now/, ({ tables }) => void the(tables.stored_bytes[0]).bytes++],
]

const LEFT = ['lanes', 'places', 'marks', 'outbox', 'pauses', 'waits', 'replays', 'audit', 'readers']
const LEFT_FOR_GOOD = [
  'lanes',
  'places',
  'permits',
  'processes',
  'tickets',
  'served',
  'events',
  'runs',
  'deadLetters',
  'receipts',
]

const IN_LEDGER: readonly (readonly [what: string, complaint: RegExp, plant: (at: Planted) => void])[] = [
  [
    'two live runs of a lane',
    /2 live runs of lane/,
    (at) => at.ledger.leases.push({ ...settled(at, 'done'), token: 0.5 }),
  ],
  [
    'one live run too many of a tenant',
    /3 live runs of tenant/,
    (at) => crowd(at, settled(at, 'done', 'shared'), BOUNDS.shared, {}),
  ],
  [
    'one handler too many of a flow',
    /4 live runs of flow strict/,
    (at) => crowd(at, settled(at, 'done', 'strict'), BOUNDS.strict, {}),
  ],
  [
    'a lane was claimed while it was held',
    /while an operator had it on hold/,
    (at) => {
      const { lane, sent } = settled(at, 'done')
      acted(at, 'hold', lane, { began: 0, ended: sent - 1 })
    },
  ],
  [
    'a flow was claimed while it was paused',
    /while an operator had it on pause/,
    (at) => acted(at, 'pause', 'gather', { began: 0, ended: settled(at, 'done', 'gather').sent - 1 }),
  ],
  [
    'an event was claimed after it was dropped',
    /claimed by .* after drop-lane/,
    (at) => {
      const lease = the(at.ledger.leases.find(({ flow }) => flow === 'gather'))
      for (const label of lease.events) Object.assign(the(at.ledger.sent.get(label)), { acked: 1, isPlacedLate: false })
      acted(at, 'drop-lane', lease.lane, { began: 2, ended: lease.sent - 1 })
    },
  ],
  [
    'an event is done that was purged',
    /was purged, and is done/,
    (at) => {
      const { id } = the(at.ledger.sent.values().find(({ input }) => input.data.topic === 'gather')).input
      acted(at, 'purge-event', id, { began: Infinity, ended: Infinity })
      Object.assign(the(at.ledger.acts.at(-1)), { ended: Number.MAX_SAFE_INTEGER })
    },
  ],
  [
    'the body of an event is there that was purged',
    /was purged, and its body is there/,
    (at) => acted(at, 'purge-lane', laneId('gather', 'k0'), { began: Number.MAX_VALUE, ended: Number.MAX_VALUE }),
  ],
  [
    'an event is stored whose transaction was rolled back',
    /its transaction was rolled back/,
    ({ ledger }) => void (the(ledger.sent.values().next().value).rolledBack = true),
  ],
  [
    'what was answered is not so',
    /was dropped, and is on record as done/,
    (at) => void (settled(at, 'done').outcome = { kind: 'dropped', reason: '' }),
  ],
  [
    'a run did not end as its handler did',
    /ended as permanent, and was settled as done/,
    (at) => void (settled(at, 'done').how = 'permanent'),
  ],
  [
    'what a run published is not stored',
    /lost: nothing, which .* published/,
    (at) => void (settled(at, 'done').published = ['nothing']),
  ],
  [
    'what a run published is stored, and the run was not settled',
    /came from nowhere/,
    ({ ledger }) =>
      void ledger.leases.splice(0, ledger.leases.length, ...ledger.leases.map((one) => ({ ...one, published: [] }))),
  ],
  [
    'events of one publisher are out of order',
    /was first claimed by .* after/,
    (at) => {
      const lease = the(
        at.ledger.leases.find(({ events }) => events.filter((label) => label.startsWith('p-')).length > 1),
      )
      Object.assign(lease, { events: lease.events.toReversed() })
    },
  ],
]

describe(`the checker on ${SERVER.name}`, () => {
  it('has nothing to say of a calm run', () => expect(complaintsOf(calm)).toEqual([]))

  it.each(IN_TABLES)('sees when %s', (_what, complaint, plant) => {
    expect(planted(plant).join('\n')).toMatch(complaint)
  })

  it.each(IN_LEDGER)('sees %s', (_what, complaint, plant) => {
    expect(planted(plant).join('\n')).toMatch(complaint)
  })

  it.each(LEFT)('sees a row that is left in %s', (name) => {
    const complaints = planted(({ tables }) => void (tables as unknown as Record<string, unknown[]>)[name]?.push({}))
    expect(complaints).toEqual([`left in ${name}: {}`])
  })

  it.each(LEFT_FOR_GOOD)('sees a row that stays for good in %s', (name) => {
    const row = { body: '\\x', request: '\\x' }
    const complaints = planted(({ remains }) => void (remains as unknown as Record<string, unknown[]>)[name]?.push(row))
    expect(complaints).toEqual([`left for good in ${name}: ${JSON.stringify(row)}`])
  })

  it('sees that an event has lost its place', async () => {
    const sql = 'delete from lanes where id = $1 and waiting = 1'
    expect(await meddled('place', sql)).toEqual([
      expect.stringMatching(/^lost: meddler-0 of hurried in .* has no end$/),
    ])
  })

  it('sees that nothing happens to what is left', async () => {
    const sql = `insert into marks (id, event, flow, reason, error, since, due, tries, token)
      select 1, first_event, 'nobody', 'unknown-flow', '', 0, 0, 0, 0 from lanes where id = $1`
    expect((await meddled('stuck', sql)).join('\n')).toMatch(/stuck: mark unknown-flow nobody/)
  })
})

/** A time in the middle, before anything of the lane is claimed. */
async function meddled(name: string, sql: string): Promise<readonly string[]> {
  const tortured = await torture({
    ...PLAN,
    batches: 1,
    schema: `torture_${name}_${process.pid}`,
    stuckAfter: 3_000,
    meddle: async ({ app, ledger, client }) => {
      await app.admin.flows.pause('hurried', { reason: 'meddling', by: 'a test' })
      const { input } = await publishOne(app, ledger, 'meddler', 'hurried')
      const [lane] = input.data.keys.map((key) => laneId('hurried', key))
      const { rowCount } = await client.query(sql, [lane])
      expect(rowCount).toBe(1)
    },
  })
  return complaintsOf(tortured)
}
