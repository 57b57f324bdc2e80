// Finds the events that are in a lane now: those that wait, and those of its run.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import { MAX_PLACED } from '../../src/store/contract/records.ts'
import type { ConformanceStage, Suite } from './stage.ts'
import { createPlacement, dead, done, retry } from './builders.ts'

const LANE = laneId('flow', 'k')

export const placedEvents: Suite = (rule) => {
  rule('find lists what waits in a lane apart from what runs, oldest first on request', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { key: 'k', subject: 's' })
    await t.append('other', { key: 'other' })
    assert.deepEqual(await inLane(t), { waiting: ['a', 'b', 'c'], run: [] })
    const [run] = await t.claim({ maxEvents: 2 })
    assert.ok(run)
    await t.append('d', { key: 'k', quiet: 60_000 })
    assert.deepEqual(await inLane(t), { waiting: ['c', 'd'], run: ['a', 'b'] })
    await t.settleOk(run, retry(5_000))
    assert.deepEqual(await inLane(t), { waiting: ['c', 'd'], run: ['a', 'b'] })
    const again = await t.claimOneAfter(5_000, { maxEvents: 2 })
    await t.settleOk(again, done)
    assert.deepEqual(await inLane(t), { waiting: ['c', 'd'], run: [] })
  })

  rule('find lists a page of what waits, newest first by default, and count counts it', async (t) => {
    const names = Array.from({ length: 40 }, (_, n) => `e${n}`)
    for (const name of names) await t.append(name, { key: 'k', quiet: 60_000, tenant: name === 'e7' ? 'acme' : '' })
    const filter = { lane: LANE, placed: 'waiting' } as const
    const found = await t.findAll('events', filter, 7)
    assert.deepEqual(t.names(found.map(({ id }) => id)), names.toReversed())
    assert.equal((await t.store.count({ kind: 'events', filter, cursor: '', atMost: 100 })).count, 40)
    assert.deepEqual(t.names((await t.findAll('events', { ...filter, tenant: 'acme' })).map(({ id }) => id)), ['e7'])
    assert.deepEqual(await t.findAll('events', { ...filter, type: 'nothing' }), [])
    assert.deepEqual(await t.findAll('lanes', filter), [])
  })

  rule('find lists the events of a dead letter while it runs again, and replays while they wait', async (t) => {
    await t.appendEach(['a', 'b'], { key: 'k' })
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    assert.deepEqual(await inLane(t), { waiting: [], run: [] })
    await t.append('c', { key: 'k', quiet: 60_000 })
    await t.steerDeadLetter(run.runId, 'retry')
    const again = await t.claimOne()
    assert.equal(again.isDeadLetter, true)
    const items = [
      { kind: 'replay', replay: 'r', event: t.id('a'), placements: [createPlacement({ key: 'k' })] },
    ] as const
    await t.store.place({ routes: t.routes, items })
    assert.deepEqual(await inLane(t), { waiting: ['a', 'c'], run: ['a', 'b'] })
    await t.settleOk(again, done)
    const replayed = await t.claimOne()
    assert.equal(replayed.rank, 1)
    assert.deepEqual(await inLane(t), { waiting: ['c'], run: ['a'] })
  })

  rule('find covers the first thousand events that wait, however many there are', async (t) => {
    for (let n = 0; n < 11; n++) {
      await t.appendEach(
        Array.from({ length: 100 }, (_, at) => `e${n}-${at}`),
        { key: 'k', quiet: 60_000 },
      )
    }
    const filter = { lane: LANE, placed: 'waiting' } as const
    const found = await t.findAll('events', filter, 500)
    assert.equal(found.length, MAX_PLACED)
    assert.deepEqual(t.names([found[0]?.id ?? '', found.at(-1)?.id ?? '']), ['e9-99', 'e0-0'])
  })

  rule('find lists nothing for a lane that is gone, or without a lane', async (t) => {
    await t.append('a', { key: 'k' })
    for (const placed of ['waiting', 'run'] as const) {
      assert.deepEqual(await t.findAll('events', { lane: laneId('flow', 'gone'), placed }), [])
      assert.deepEqual(await t.findAll('events', { placed }), [])
    }
  })
}

async function inLane(
  t: ConformanceStage,
): Promise<{ readonly waiting: readonly string[]; readonly run: readonly string[] }> {
  const find = async (placed: 'waiting' | 'run'): Promise<readonly string[]> => {
    const filter = { lane: LANE, placed } as const
    const { items } = await t.store.find({ kind: 'events', filter, cursor: '', n: 100, oldestFirst: true })
    return t.names(items.map(({ id }) => id))
  }
  return { waiting: await find('waiting'), run: await find('run') }
}
