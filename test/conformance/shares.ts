// L5g: groups take turns, so a tenant with ten thousand ready keys does not delay a tenant with one.
import assert from 'node:assert/strict'
import { getKeys, sorted, type ConformanceStage, type Suite } from './stage.ts'
import { createClaimRequest, DAY, done, retry, SECOND } from './builders.ts'

/** Lanes named after their group: a0, a1, … */
async function appendToGroup(t: ConformanceStage, prefix: string, lanes: number, group = prefix): Promise<void> {
  for (let n = 0; n < lanes; n++) await t.append(`${prefix}${n}`, { key: `${prefix}${n}`, group })
}

export const shares: Suite = (rule) => {
  rule('L5g a big group does not starve a small one', async (t) => {
    await appendToGroup(t, 'big', 50)
    t.clock.advance(1_000)
    await appendToGroup(t, 'small', 1)
    assert.deepEqual(sorted(getKeys(await t.claim({ maxRuns: 2, maxPerGroup: 100 }))), ['big0', 'small0'])
  })

  rule('L5g groups take turns within one claim, each in its own order', async (t) => {
    await appendToGroup(t, 'a', 4)
    await appendToGroup(t, 'b', 2)
    const served = getKeys(await t.claim({ maxPerGroup: 100 }))
    assert.deepEqual(sorted(served.slice(0, 4)), ['a0', 'a1', 'b0', 'b1'])
    assert.notEqual(served[0]?.[0], served[1]?.[0])
    assert.deepEqual(
      served.filter((key) => key.startsWith('a')),
      ['a0', 'a1', 'a2', 'a3'],
    )
    assert.deepEqual(
      served.filter((key) => key.startsWith('b')),
      ['b0', 'b1'],
    )
  })

  rule(
    'L5g groups take turns over claims: while a group has a ready lane, another is served before it at most once',
    async (t) => {
      await appendToGroup(t, 'a', 6)
      await appendToGroup(t, 'b', 3)
      await appendToGroup(t, 'c', 3)
      const groups = (await t.drain({ maxPerGroup: 100 })).map((key) => key[0])
      for (let n = 0; n < 9; n += 3) assert.deepEqual(sorted(groups.slice(n, n + 3)), ['a', 'b', 'c'])
      assert.deepEqual(groups.slice(9), ['a', 'a', 'a'])
    },
  )

  rule('L5g an idle group gains no credit: it does not take all claims when it returns', async (t) => {
    await appendToGroup(t, 'b', 1)
    assert.deepEqual(await t.drain({ maxPerGroup: 100 }), ['b0'])
    await appendToGroup(t, 'a', 8)
    for (const run of await t.claim({ maxRuns: 4, maxPerGroup: 100 })) await t.settleOk(run)
    for (let n = 1; n < 5; n++) await t.append(`b${n}`, { key: `b${n}`, group: 'b' })
    const groups = (await t.drain({ maxPerGroup: 100 })).map((key) => key[0])
    for (let n = 0; n < 8; n += 2) assert.deepEqual(sorted(groups.slice(n, n + 2)), ['a', 'b'])
  })

  rule('L5g with one group it is L5 exactly', async (t) => {
    await t.append('a', { key: 'a', quiet: 30 })
    await t.append('b', { key: 'b', quiet: 10 })
    await t.append('c', { key: 'c', quiet: 20 })
    await t.append('d', { key: 'd', quiet: 10 })
    t.clock.advance(100)
    assert.deepEqual(await t.drain({ maxPerGroup: 100 }), ['b', 'd', 'c', 'a'])
  })

  rule('L5g without maxPerGroup groups have no effect', async (t) => {
    await appendToGroup(t, 'a', 3)
    await appendToGroup(t, 'b', 1)
    assert.deepEqual(getKeys(await t.claim()), ['a0', 'a1', 'a2', 'b0'])
  })

  rule(
    'L5g a lane from before the flow had shares runs past a full group, and no group is served less for it',
    async (t) => {
      await appendToGroup(t, 'a', 2)
      await t.append('old', { key: 'old' })
      await t.append('older', { key: 'older', quiet: 10 })
      assert.deepEqual(getKeys(await t.claim({ maxRuns: 2, maxPerGroup: 1 })), ['a0', 'old'])
      // And by a process of the version before.
      assert.deepEqual(getKeys(await t.claim({ process: 'p2' })), ['a1'])
      t.clock.advance(10)
      assert.deepEqual(getKeys(await t.claim({ maxPerGroup: 2 })), ['older'])
    },
  )

  rule('L5g a group with maxPerGroup live runs is passed over, in one claim and over processes', async (t) => {
    await appendToGroup(t, 'a', 5)
    await appendToGroup(t, 'b', 1)
    const first = await t.claim({ maxPerGroup: 2, process: 'p1' })
    assert.deepEqual(sorted(getKeys(first)), ['a0', 'a1', 'b0'])
    await t.assertNothingReady({ maxPerGroup: 2, process: 'p2' })
    const a0 = first.find((run) => run.key === 'a0')
    assert.ok(a0)
    await t.settleOk(a0)
    assert.deepEqual(getKeys(await t.claim({ maxPerGroup: 2, process: 'p2' })), ['a2'])
  })

  rule('L5g a run that waits for its next attempt is not live and does not count', async (t) => {
    await appendToGroup(t, 'a', 3)
    const [run] = await t.claim({ maxPerGroup: 1 })
    assert.ok(run)
    await t.settleOk(run, retry(60_000))
    assert.deepEqual(getKeys(await t.claim({ maxPerGroup: 1 })), ['a1'])
  })

  rule('L5g a run whose lease has ended is not live and does not count', async (t) => {
    await appendToGroup(t, 'a', 2)
    assert.deepEqual(getKeys(await t.claim({ maxPerGroup: 1, lease: 1_000 })), ['a0'])
    await t.assertNothingReady({ maxPerGroup: 1, process: 'p2' })
    t.expireLeases(1_000)
    assert.deepEqual(getKeys(await t.claim({ maxPerGroup: 2, process: 'p2' })), ['a1', 'a0'])
  })

  rule('L5g the lease carries the group', async (t) => {
    await t.append('a', { group: 'acme' })
    assert.equal((await t.claimOne()).group, 'acme')
  })

  rule('L5g groups that have not been served go by the deadlines of their heads', async (t) => {
    for (const [group, quiet] of [
      ['c', 10],
      ['a', 30],
      ['b', 20],
    ] as const) {
      await t.append(`${group} first`, { key: `${group}0`, group, quiet })
      await t.append(`${group} second`, { key: `${group}1`, group, quiet: quiet + 100 })
    }
    t.clock.advance(1_000)
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 3, maxPerGroup: 5 })), ['c0', 'b0', 'a0'])
  })

  rule('L5g L24 the slots for failing lanes are counted over all groups', async (t) => {
    for (const group of ['a', 'b', 'c']) await appendToGroup(t, group, 1)
    for (const run of await t.claim()) await t.settleOk(run, retry(0))
    await appendToGroup(t, 'd', 1)
    assert.deepEqual(sorted(getKeys(await t.claim({ maxPerGroup: 5, maxFailing: 1 }))), ['a0', 'd0'])
  })

  rule('L5g L12 the slots for suspects are counted over all groups', async (t) => {
    for (const group of ['a', 'b', 'c']) await appendToGroup(t, group, 1)
    for (let lapses = 0; lapses < 2; lapses++) {
      assert.equal((await t.claim({ maxPerGroup: 5 })).length, 3)
      t.expireLeases()
    }
    assert.equal((await t.claim({ maxPerGroup: 5, maxSuspects: 1 })).length, 1)
  })

  rule('L5g L12 a run that crashes once too often takes no slot of its group', async (t) => {
    await appendToGroup(t, 'a', 1)
    for (let lapses = 0; lapses < 4; lapses++) {
      assert.equal((await t.claim({ maxPerGroup: 1 })).length, 1)
      t.expireLeases()
    }
    await t.append('a1', { key: 'a1', group: 'a' })
    const { claimed, crashed } = await t.settleAndClaim({ claim: [createClaimRequest({ maxPerGroup: 1, maxRuns: 1 })] })
    assert.deepEqual([getKeys(claimed), crashed.length], [['a1'], 1])
  })

  rule('L5g lanes without a group are a group like any other', async (t) => {
    for (const key of ['x', 'y', 'z']) await t.append(key, { key })
    await appendToGroup(t, 'a', 2)
    assert.deepEqual(sorted(getKeys(await t.claim({ maxRuns: 2, maxPerGroup: 1 }))), ['a0', 'x'])
    await t.assertNothingReady({ maxPerGroup: 1 })
    assert.deepEqual(sorted(getKeys(await t.claim({ maxPerGroup: 2 }))), ['a1', 'y'])
    t.expireLeases()
    assert.deepEqual(sorted(getKeys(await t.claim({ maxPerGroup: 1 }))), ['a0', 'z'])
  })

  rule('L5g when a group was served is known for a day', async (t) => {
    await appendToGroup(t, 'a', 1)
    assert.deepEqual(await t.drain({ maxPerGroup: 1 }), ['a0'])
    t.clock.advance(DAY - SECOND)
    await t.maintain()
    await t.append('a1', { key: 'a1', group: 'a' })
    await appendToGroup(t, 'new', 1)
    assert.deepEqual(await t.drain({ maxPerGroup: 1 }), ['new0', 'a1'])
  })

  rule('L5g a group that was not served for a day and has no lane is a newcomer again', async (t) => {
    await appendToGroup(t, 'a', 1)
    await appendToGroup(t, 'b', 1)
    assert.deepEqual(await t.drain({ maxPerGroup: 1 }), ['a0', 'b0'])
    await t.append('still waits', { key: 'b1', group: 'b', quiet: 5 * DAY })
    t.clock.advance(DAY)
    await t.maintain()
    await t.append('b2', { key: 'b2', group: 'b' })
    await t.append('a1', { key: 'a1', group: 'a' })
    await appendToGroup(t, 'new', 1)
    assert.deepEqual(await t.drain({ maxPerGroup: 1 }), ['a1', 'new0', 'b2'])
  })

  rule('L5g groups of another flow have their own turns and their own live runs', async (t) => {
    await appendToGroup(t, 'a', 2)
    for (const key of ['a0', 'a1']) await t.append(`mail ${key}`, { flow: 'mail', key, group: 'a' })
    assert.deepEqual(getKeys(await t.claim({ maxPerGroup: 1 })), ['a0'])
    assert.deepEqual(getKeys(await t.claim({ flow: 'mail', maxPerGroup: 1 })), ['a0'])
    await t.assertNothingReady({ flow: 'mail', maxPerGroup: 1 })
  })

  rule('L5g claims that several processes make at the same moment keep the bound of each group together', async (t) => {
    const stores = [t.store, await t.openSecondCaller(), await t.openSecondCaller(), await t.openSecondCaller()]
    for (let round = 1; round <= 5; round++) {
      for (const group of ['a', 'b']) await appendToGroup(t, `${group}${round}/`, 4, group)
      const turns = stores.map((store, n) =>
        store.settleAndClaim({
          process: `claims ${n}`,
          request: round,
          routes: t.routes,
          settle: [],
          claim: [createClaimRequest({ maxPerGroup: 1, maxRuns: 4 })],
          budget: 64_000_000,
        }),
      )
      const runs = (await Promise.all(turns)).flatMap(({ claimed }) => claimed)
      assert.deepEqual(sorted(runs.map(({ group }) => group)), ['a', 'b'])
      for (const run of runs) await t.settleOk(run)
    }
  })

  rule('L5g a lowered bound holds as soon as enough runs have ended', async (t) => {
    for (let n = 0; n < 10; n++) await t.appendEach([`a${n}`, `a${n} again`], { key: `a${n}`, group: 'a' })
    const runs = await t.claim({ maxRuns: 8, maxPerGroup: 8, maxEvents: 1 })
    assert.equal(runs.length, 8)
    const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    for (const [n, { lane, token }] of runs.entries()) {
      // The lane has another event, and is ready again at once.
      const { claimed } = await t.settleAndClaim({
        process: `p${n % 2}`,
        settle: [{ lane, token, ...end }],
        claim: [createClaimRequest({ maxRuns: 8, maxPerGroup: 2, maxEvents: 1 })],
      })
      assert.equal(claimed.length, n < 6 ? 0 : 1, `${7 - n} others run`)
    }
  })

  rule('L5g a lane without a group that a call settles and claims counts for lanes without group', async (t) => {
    await t.append('old', { key: 'x' })
    const lost = await t.claimOne({ lease: 1_000, maxPerGroup: 1 })
    t.clock.advance(1_000)
    await t.settleOk(await t.claimOne({ process: 'p2', maxPerGroup: 1 }), done, { process: 'p2' })
    await t.append('new', { key: 'x' })
    await t.append('other', { key: 'y' })
    const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    const settle = [{ lane: lost.lane, token: lost.token, ...end }]
    const { settled, claimed } = await t.settleAndClaim({ settle, claim: [createClaimRequest({ maxPerGroup: 1 })] })
    assert.deepEqual([settled, getKeys(claimed)], [['lost'], ['x']])
    await t.assertNothingReady({ process: 'p2', maxPerGroup: 1 })
  })

  rule(
    'L5g the next deadline after a claim of groups is the end of the lease, not the deadline of the claimed lane',
    async (t) => {
      await appendToGroup(t, 'a', 1)
      t.clock.advance(10)
      const claim = [createClaimRequest({ maxRuns: 2, maxPerGroup: 2, lease: 1_000 })]
      const { claimed, nextDeadlines, now } = await t.settleAndClaim({ claim })
      assert.deepEqual([getKeys(claimed), nextDeadlines], [['a0'], [{ flow: 'flow', due: now + 1_000 }]])
    },
  )
}
