// A new run is only in a list for a while: calls that read no lanes do not make the store write one. The lane of a long run
// is written eventually, so that the list stays bounded.
import type { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { createClaimRequest, done } from '../conformance/builders.ts'
import type { LeasedRun, Store } from '../../src/store/contract/index.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const END = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
const DUE = { quiet: 0, max: 0 }
/** So long that no lease expires during a test. */
const HOUR = 3_600_000
let request = 0

async function scene(): Promise<{ readonly store: Store; readonly written: () => unknown }> {
  const file = freshFile()
  const store = await open(file)
  const db: DatabaseSync = connect(file)
  const statement = db.prepare('select key from lanes where lease is not null order by key')
  return { store, written: () => statement.all().map(({ key }) => key) }
}

async function turn(store: Store, ended: readonly LeasedRun[] = []): Promise<readonly LeasedRun[]> {
  const settle = ended.map(({ lane, token }) => ({ ...END, lane, token }))
  const claim = [createClaimRequest({ maxEvents: 1, lease: HOUR })]
  const reply = await store.settleAndClaim({
    process: 'p',
    request: ++request,
    routes: 1,
    settle,
    claim,
    budget: 1_000_000,
  })
  expect(reply.settled).toEqual(settle.map(() => 'ok'))
  return reply.claimed
}

it('reading documents and bodies writes no lanes; reading lanes returns their true state', async () => {
  const { store, written } = await scene()
  await send(store, event('one', { ...DUE, key: 'k' }), event('two', { ...DUE, key: 'k' }))
  expect(await turn(store)).toHaveLength(1)
  await store.readDocs({ kind: 'any', ids: ['none'], after: '', n: 1 })
  expect((await store.readBodies({ events: ['one'] })).bodies[0]).toBeDefined()
  expect(written()).toEqual([])
  const { items } = await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 10 })
  expect(items.map(({ run, waiting }) => [run?.state, waiting])).toEqual([['running', 1]])
  expect(written()).toEqual(['k'])
})

it('the lane of a long run is written, while those of short runs are not', async () => {
  const { store, written } = await scene()
  await send(store, event('long', { ...DUE, key: 'long' }))
  const [long] = await turn(store)
  let ended: readonly LeasedRun[] = []
  let turns = 0
  for (; JSON.stringify(written()) === '[]'; turns++) {
    expect(turns).toBeLessThan(40)
    await send(store, event(`short ${turns}`, { ...DUE, key: `short ${turns}` }))
    ended = await turn(store, ended)
    expect(ended.map(({ key }) => key)).toEqual([`short ${turns}`])
  }
  expect(turns).toBeGreaterThan(2)
  expect(written()).toEqual(['long'])
  expect(await turn(store, [...ended, ...(long === undefined ? [] : [long])])).toEqual([])
  expect(written()).toEqual([])
})
