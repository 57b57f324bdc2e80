// Frequent queries read no rows of tables that may be long: dead letters, and unrouted events of removed flows.
import { DatabaseSync } from 'node:sqlite'
import { expect, it, vi } from 'vitest'
import { createUnrouted } from '../conformance/builders.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const DAY = 86_400_000

/** SQLite's plan for what a call reads of one table. */
async function plans(table: string, call: (store: Store) => Promise<unknown>): Promise<readonly string[]> {
  const file = freshFile()
  const store = await open(file)
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  await call(store)
  const asked = [...new Set(prepare.mock.calls.map(([sql]) => sql))]
  prepare.mockRestore()
  const db = connect(file)
  const steps = asked
    .filter((sql) => sql.startsWith('select') && sql.includes(`from ${table}`))
    .flatMap((sql) => db.prepare(`explain query plan ${sql}`).all())
  return steps.map(({ detail }) => String(detail)).filter((step) => step.includes(table))
}

it('the stats of the store use indexes', async () => {
  const deadLetters = await plans('letters', (store) => store.stats())
  expect(deadLetters).toHaveLength(2)
  for (const step of deadLetters) expect(step).toContain('COVERING INDEX')
  const marks = await plans('marks', async (store) => {
    await send(store, event('e', { unrouted: [createUnrouted('unknown-flow', 'gone')] }))
    await store.stats()
  })
  expect(marks).toEqual([
    'SEARCH marks USING COVERING INDEX marks_since (reason>?)',
    'SEARCH marks USING COVERING INDEX marks_since (reason=?)',
  ])
})

it('dead letters are counted without reading their rows', async () => {
  const filter = { from: DAY }
  for (const one of [filter, { ...filter, flow: 'f' }]) {
    const found = await plans('letters', (store) => store.count({ kind: 'dead', filter: one, cursor: '', atMost: 9 }))
    expect(found.length).toBeGreaterThan(0)
    for (const step of found) expect(step).toContain('COVERING INDEX')
  }
})

it('records are found by subject and tenant without reading the events of others', async () => {
  for (const [filter, index] of [
    [{ subject: 'ada' }, 'events_subject (subject=? AND seq'],
    [{ tenant: 'acme' }, 'events_tenant (tenant=? AND seq'],
    [{ subject: 'ada', tenant: 'acme' }, 'events_subject (subject=? AND seq'],
  ] as const) {
    const events = await plans('events', (store) => store.find({ kind: 'events', filter, cursor: '', n: 9 }))
    expect(events.filter((step) => !step.includes('marks'))).toHaveLength(2)
    for (const step of events) expect(step).toContain(index)
  }
  for (const kind of ['dead', 'unrouted'] as const) {
    const call = { kind, filter: { subject: 'ada' }, cursor: '', n: 9 } as const
    const steps = (await plans(kind === 'dead' ? 'letters' : 'marks', (store) => store.find(call))).join()
    expect(steps).not.toContain('SCAN events')
  }
})

it('unrouted events are found by flow and reason, however many others are due', async () => {
  const marks = [
    createUnrouted('unknown-flow', 'f'),
    createUnrouted('unknown-flow', 'gone'),
    createUnrouted('key-failed', 'f'),
  ]
  const call = { n: 500, lease: 1_000, reasons: ['unknown-flow'], flows: ['f'] } as const
  const found = await plans('marks', async (store) => {
    await send(store, event('e', { unrouted: marks }))
    expect((await store.claimUnrouted(call)).unrouted.map(({ flow }) => flow)).toEqual(['f'])
  })
  expect(found).toEqual([
    'SCAN marks USING COVERING INDEX marks_due',
    'SEARCH marks USING INDEX marks_due (flow=? AND reason=? AND due<?)',
    'SEARCH marks USING COVERING INDEX marks_due (flow>?)',
  ])
})
