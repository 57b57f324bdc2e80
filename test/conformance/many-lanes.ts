// A claim works with any number of ready lanes, and with anything that each of them needs. A store that loads data step by step
// must not need one step per lane.
import assert from 'node:assert/strict'
import { NEVER } from '../../src/clock.ts'
import type { LeasedRun, SteerReply } from '../../src/store/contract/index.ts'
import { getKeys, sorted, type ConformanceStage, type Suite } from './stage.ts'
import { createClaimRequest, dead, done, type EventOverrides } from './builders.ts'
import type { RunOutcome } from '../../src/model/settle.ts'

const MANY = 1_000
/** The time for setups that take a store several calls. */
const SOME = 250
const LEASE_ENDS = 1_000

/** k0, k1, …: one lane for each. */
async function appendToLanes(
  t: ConformanceStage,
  words: EventOverrides = {},
  lanes = MANY,
): Promise<readonly string[]> {
  const names = Array.from({ length: lanes }, (_, n) => `k${n}`)
  const stored = await t.appendEvents(...names.map((key) => t.event(key, { ...words, key })))
  assert.ok(stored.every(({ kind }) => kind === 'stored'))
  return names
}

async function endAll(t: ConformanceStage, runs: readonly LeasedRun[], outcome: RunOutcome): Promise<void> {
  const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const settle = runs.map(({ lane, token }) => ({ lane, token, outcome, ...end }))
  const { settled } = await t.settleAndClaim({ settle })
  assert.ok(settled.every((one) => one === 'ok'))
}

async function retryAll(t: ConformanceStage, runs: readonly LeasedRun[]): Promise<SteerReply['results']> {
  return (await t.store.steer({ what: 'dead', ids: runs.map(({ runId: run }) => run), act: 'retry' })).results
}

/** Makes dead letters of all lanes, and retries all of them by hand. */
async function appendAndRetry(
  t: ConformanceStage,
  words: EventOverrides = {},
  lanes = MANY,
): Promise<readonly string[]> {
  const names = await appendToLanes(t, words, lanes)
  const runs = await t.claim({ maxRuns: lanes })
  await endAll(t, runs, dead)
  assert.ok((await retryAll(t, runs)).every((one) => one === 'ok'))
  return names
}

export const manyLanes: Suite = (rule) => {
  rule('L9 the dead letters of a thousand keys, retried at once, all run in one claim', async (t) => {
    const names = await appendAndRetry(t)
    const runs = await t.claim({ maxRuns: MANY })
    assert.deepEqual(sorted(getKeys(runs)), sorted(names))
    assert.ok(runs.every(({ isDeadLetter }) => isDeadLetter))
    await endAll(t, runs, done)
    await t.assertNothingReady()
  })

  rule('L9 the dead letters of hundreds of keys run in small claims, with new events behind them', async (t) => {
    await appendAndRetry(t, {}, SOME)
    await t.append('new', { key: 'new' })
    const runs = await t.claim({ maxRuns: 150 })
    assert.deepEqual([runs.length, runs.every(({ isDeadLetter }) => isDeadLetter)], [150, true])
    const rest = await t.claim({ maxRuns: MANY })
    assert.deepEqual([rest.length, rest.at(-1)?.key], [SOME - 150 + 1, 'new'])
  })

  rule('L5g L9 the dead letters of hundreds of keys of one group all run in one claim', async (t) => {
    const names = await appendAndRetry(t, { group: 'a' }, SOME)
    assert.deepEqual(sorted(getKeys(await t.claim({ maxRuns: MANY, maxPerGroup: NEVER }))), sorted(names))
  })

  rule('L5g a thousand ready lanes of one group run in one claim', async (t) => {
    const names = await appendToLanes(t, { group: 'a' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: MANY, maxPerGroup: NEVER })), names)
  })

  rule('L5g a thousand ready lanes of one group run in one claim up to the bound of the group', async (t) => {
    const names = await appendToLanes(t, { group: 'a' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: MANY, maxPerGroup: 700 })), names.slice(0, 700))
    await t.assertNothingReady({ maxPerGroup: 700 })
  })

  rule('L5g a thousand ready lanes without a group run in one claim', async (t) => {
    const names = await appendToLanes(t)
    assert.deepEqual(getKeys(await t.claim({ maxRuns: MANY, maxPerGroup: NEVER })), names)
  })

  rule('L5g a group of a thousand lanes, a small one and a thousand groups of one lane take turns', async (t) => {
    const big = await appendToLanes(t, { group: 'big' })
    await t.append('small0', { key: 'small0', group: 'small' })
    await t.append('small1', { key: 'small1', group: 'small' })
    const names = Array.from({ length: MANY }, (_, n) => `own${n}`)
    await t.appendEvents(...names.map((key) => t.event(key, { key, group: key })))
    const served = getKeys(await t.claim({ maxRuns: 2 * MANY, maxPerGroup: NEVER }))
    assert.deepEqual(served.slice(0, MANY + 2), ['k0', 'small0', ...names])
    assert.deepEqual(served.slice(MANY + 2), ['k1', 'small1', ...big.slice(2, MANY - 2)])
  })

  rule('L5g after a thousand groups at their bound the next one is found', async (t) => {
    const names = Array.from({ length: MANY }, (_, n) => `own${n}`)
    for (const round of ['a', 'b'])
      await t.appendEvents(...names.map((group) => t.event(`${group}${round}`, { key: `${group}${round}`, group })))
    assert.equal((await t.claim({ maxRuns: MANY, maxPerGroup: 1 })).length, MANY)
    await t.append('last', { key: 'last', group: 'last' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 3, maxPerGroup: 1, process: 'p2' })), ['last'])
  })

  for (const perGroup of [undefined, NEVER]) {
    const [which, words] = perGroup === undefined ? ['L12', {}] : ['L5g L12', { group: 'a' }]

    rule(`${which} hundreds of runs that lapse the fourth time at once become dead letters in one claim`, async (t) => {
      await appendToLanes(t, words, SOME)
      const claim = { maxRuns: SOME, maxSuspects: SOME, lease: LEASE_ENDS, maxPerGroup: perGroup }
      for (let lapses = 0; lapses < 4; lapses++) {
        const runs = await t.claim(claim)
        assert.equal(runs.length, SOME)
        // A store that leaves a claimed lane in its place must also move it to the end of its lease.
        await t.store.renew({
          lease: LEASE_ENDS,
          runs: runs.map(({ lane, token }) => ({ lane, token, commit: false })),
        })
        t.clock.advance(LEASE_ENDS)
      }
      await t.append('fresh', { ...words, key: 'fresh' })
      const { claimed, crashed } = await t.settleAndClaim({
        claim: [createClaimRequest({ maxRuns: 5, maxSuspects: 1, maxPerGroup: perGroup })],
      })
      assert.deepEqual([getKeys(claimed), crashed.length], [['fresh'], SOME])
    })

    rule(`${which} L15 hundreds of purged runs whose process died end in one claim`, async (t) => {
      await appendToLanes(t, { ...words, tenant: 'acme' }, SOME)
      const runs = await t.claim({ maxRuns: SOME, lease: LEASE_ENDS, maxPerGroup: perGroup })
      await t.store.renew({ lease: LEASE_ENDS, runs: runs.map(({ lane, token }) => ({ lane, token, commit: false })) })
      for (let more = true; more;)
        more = (await t.store.purge({ what: { kind: 'tenant', tenant: 'acme' }, n: SOME })).more
      t.clock.advance(LEASE_ENDS)
      await t.append('fresh', { ...words, key: 'fresh' })
      assert.deepEqual(getKeys(await t.claim({ maxRuns: 5, maxPerGroup: perGroup })), ['fresh'])
    })
  }
}
