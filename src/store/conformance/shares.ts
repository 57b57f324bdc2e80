// L5g: groups take turns, so that a tenant with ten thousand ready keys does not stand before a tenant with one.
import assert from 'node:assert/strict'
import { keys, sorted, type Stage, type Suite } from './stage.ts'
import { claimOf, DAY, retry, SECOND } from './vocabulary.ts'

/** Lanes named after their group: a0, a1, … */
async function fill(t: Stage, group: string, lanes: number): Promise<void> {
  for (let n = 0; n < lanes; n++) await t.append(`${group}${n}`, { key: `${group}${n}`, group })
}

export const shares: Suite = (rule) => {
  rule('L5g a big group does not starve a small one', async (t) => {
    await fill(t, 'big', 50)
    t.clock.advance(1_000)
    await fill(t, 'small', 1)
    assert.deepEqual(sorted(keys(await t.claim({ slots: 2, perGroup: 100 }))), ['big0', 'small0'])
  })

  rule('L5g groups take turns within one claim, each in its own order', async (t) => {
    await fill(t, 'a', 4)
    await fill(t, 'b', 2)
    const served = keys(await t.claim({ perGroup: 100 }))
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
    'L5g turns go on over claims: while a group has a ready lane, another is served before it at most once',
    async (t) => {
      await fill(t, 'a', 6)
      await fill(t, 'b', 3)
      await fill(t, 'c', 3)
      const groups = (await t.drain({ perGroup: 100 })).map((key) => key[0])
      for (let n = 0; n < 9; n += 3) assert.deepEqual(sorted(groups.slice(n, n + 3)), ['a', 'b', 'c'])
      assert.deepEqual(groups.slice(9), ['a', 'a', 'a'])
    },
  )

  rule('L5g a group that was idle has no credit: it does not take all turns when it comes back', async (t) => {
    await fill(t, 'b', 1)
    assert.deepEqual(await t.drain({ perGroup: 100 }), ['b0'])
    await fill(t, 'a', 8)
    for (const run of await t.claim({ slots: 4, perGroup: 100 })) await t.end(run)
    for (let n = 1; n < 5; n++) await t.append(`b${n}`, { key: `b${n}`, group: 'b' })
    const groups = (await t.drain({ perGroup: 100 })).map((key) => key[0])
    for (let n = 0; n < 8; n += 2) assert.deepEqual(sorted(groups.slice(n, n + 2)), ['a', 'b'])
  })

  rule('L5g with one group it is L5 exactly', async (t) => {
    await t.append('a', { key: 'a', quiet: 30 })
    await t.append('b', { key: 'b', quiet: 10 })
    await t.append('c', { key: 'c', quiet: 20 })
    await t.append('d', { key: 'd', quiet: 10 })
    t.clock.advance(100)
    assert.deepEqual(await t.drain({ perGroup: 100 }), ['b', 'd', 'c', 'a'])
  })

  rule('L5g without perGroup groups mean nothing', async (t) => {
    await fill(t, 'a', 3)
    await fill(t, 'b', 1)
    assert.deepEqual(keys(await t.claim()), ['a0', 'a1', 'a2', 'b0'])
  })

  rule(
    'L5g a lane from before the flow had shares runs past a group that is full, and nobody loses a turn by it',
    async (t) => {
      await fill(t, 'a', 2)
      await t.append('old', { key: 'old' })
      await t.append('older', { key: 'older', quiet: 10 })
      assert.deepEqual(keys(await t.claim({ slots: 2, perGroup: 1 })), ['a0', 'old'])
      // And by a process of the version before.
      assert.deepEqual(keys(await t.claim({ process: 'p2' })), ['a1'])
      t.clock.advance(10)
      assert.deepEqual(keys(await t.claim({ perGroup: 2 })), ['older'])
    },
  )

  rule('L5g a group with perGroup live runs is passed over, in one claim and over processes', async (t) => {
    await fill(t, 'a', 5)
    await fill(t, 'b', 1)
    const first = await t.claim({ perGroup: 2, process: 'p1' })
    assert.deepEqual(sorted(keys(first)), ['a0', 'a1', 'b0'])
    await t.nothing({ perGroup: 2, process: 'p2' })
    const a0 = first.find((run) => run.key === 'a0')
    assert.ok(a0)
    await t.end(a0)
    assert.deepEqual(keys(await t.claim({ perGroup: 2, process: 'p2' })), ['a2'])
  })

  rule('L5g a run that waits for its next attempt is not live and does not count', async (t) => {
    await fill(t, 'a', 3)
    const [run] = await t.claim({ perGroup: 1 })
    assert.ok(run)
    await t.end(run, retry(60_000))
    assert.deepEqual(keys(await t.claim({ perGroup: 1 })), ['a1'])
  })

  rule('L5g a run whose lease has ended is not live and does not count', async (t) => {
    await fill(t, 'a', 2)
    assert.deepEqual(keys(await t.claim({ perGroup: 1, lease: 1_000 })), ['a0'])
    await t.nothing({ perGroup: 1, process: 'p2' })
    t.lapse(1_000)
    assert.deepEqual(keys(await t.claim({ perGroup: 2, process: 'p2' })), ['a1', 'a0'])
  })

  rule('L5g the lease says the group', async (t) => {
    await t.append('a', { group: 'acme' })
    assert.equal((await t.next()).group, 'acme')
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
    assert.deepEqual(keys(await t.claim({ slots: 3, perGroup: 5 })), ['c0', 'b0', 'a0'])
  })

  rule('L5g L24 the slots for failing lanes are counted over all groups', async (t) => {
    for (const group of ['a', 'b', 'c']) await fill(t, group, 1)
    for (const run of await t.claim()) await t.end(run, retry(0))
    await fill(t, 'd', 1)
    assert.deepEqual(sorted(keys(await t.claim({ perGroup: 5, failing: 1 }))), ['a0', 'd0'])
  })

  rule('L5g L12 the slots for suspects are counted over all groups', async (t) => {
    for (const group of ['a', 'b', 'c']) await fill(t, group, 1)
    for (let lapses = 0; lapses < 2; lapses++) {
      assert.equal((await t.claim({ perGroup: 5 })).length, 3)
      t.lapse()
    }
    assert.equal((await t.claim({ perGroup: 5, suspects: 1 })).length, 1)
  })

  rule('L5g L12 a run that crashes once too often takes no slot of its group', async (t) => {
    await fill(t, 'a', 1)
    for (let lapses = 0; lapses < 4; lapses++) {
      assert.equal((await t.claim({ perGroup: 1 })).length, 1)
      t.lapse()
    }
    await t.append('a1', { key: 'a1', group: 'a' })
    const { claimed, crashed } = await t.turn({ claim: [claimOf({ perGroup: 1, slots: 1 })] })
    assert.deepEqual([keys(claimed), crashed.length], [['a1'], 1])
  })

  rule('L5g lanes without a group are a group like any other', async (t) => {
    for (const key of ['x', 'y', 'z']) await t.append(key, { key })
    await fill(t, 'a', 2)
    assert.deepEqual(sorted(keys(await t.claim({ slots: 2, perGroup: 1 }))), ['a0', 'x'])
    await t.nothing({ perGroup: 1 })
    assert.deepEqual(sorted(keys(await t.claim({ perGroup: 2 }))), ['a1', 'y'])
    t.lapse()
    assert.deepEqual(sorted(keys(await t.claim({ perGroup: 1 }))), ['a0', 'z'])
  })

  rule('L5g when a group was served is known for a day', async (t) => {
    await fill(t, 'a', 1)
    assert.deepEqual(await t.drain({ perGroup: 1 }), ['a0'])
    t.clock.advance(DAY - SECOND)
    await t.upkeep()
    await t.append('a1', { key: 'a1', group: 'a' })
    await fill(t, 'new', 1)
    assert.deepEqual(await t.drain({ perGroup: 1 }), ['new0', 'a1'])
  })

  rule('L5g a group that was not served for a day and has no lane is a newcomer again', async (t) => {
    await fill(t, 'a', 1)
    await fill(t, 'b', 1)
    assert.deepEqual(await t.drain({ perGroup: 1 }), ['a0', 'b0'])
    await t.append('still waits', { key: 'b1', group: 'b', quiet: 5 * DAY })
    t.clock.advance(DAY)
    await t.upkeep()
    await t.append('b2', { key: 'b2', group: 'b' })
    await t.append('a1', { key: 'a1', group: 'a' })
    await fill(t, 'new', 1)
    assert.deepEqual(await t.drain({ perGroup: 1 }), ['a1', 'new0', 'b2'])
  })

  rule('L5g groups of another flow have their own turns and their own live runs', async (t) => {
    await fill(t, 'a', 2)
    for (const key of ['a0', 'a1']) await t.append(`mail ${key}`, { flow: 'mail', key, group: 'a' })
    assert.deepEqual(keys(await t.claim({ perGroup: 1 })), ['a0'])
    assert.deepEqual(keys(await t.claim({ flow: 'mail', perGroup: 1 })), ['a0'])
    await t.nothing({ flow: 'mail', perGroup: 1 })
  })
}
