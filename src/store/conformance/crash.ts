// L12: a lapsed lease is no attempt, and one poison event neither crashes for ever nor takes its neighbours along.
import assert from 'node:assert/strict'
import type { Lease } from '../contract/index.ts'
import { keys, type Stage, type Suite } from './stage.ts'
import { again, claimOf, done, LEASE, released, retry } from './vocabulary.ts'

/** Runs that have lapsed so often; the next claim will find one lapse more. */
async function lapsed(t: Stage, times: number, ...keyed: readonly string[]): Promise<readonly Lease[]> {
  for (const key of keyed) await t.append(key, { key })
  for (let n = 0; n < times; n++) {
    assert.equal((await t.claim()).length, keyed.length)
    t.lapse()
  }
  return t.claim()
}

export const crash: Suite = (rule) => {
  rule(
    'L12 a run whose lease has ended is ready at that moment, same id, same events, and no try is used',
    async (t) => {
      await t.appendEach(['a', 'b'])
      const run = await t.next()
      await t.append('c')
      const back = await t.dueIn(LEASE)
      assert.deepEqual([back.run, t.names(back), back.tries, back.lapses], [run.run, ['a', 'b'], 0, 1])
      assert.notEqual(back.token, run.token)
      await t.end(back)
      assert.deepEqual(t.names(await t.next()), ['c'])
    },
  )

  rule('L12 a first lapse costs nothing: two hundred runs of one dead process come back at once', async (t) => {
    const lanes = Array.from({ length: 200 }, (_, n) => `k${n}`)
    await t.send(...lanes.map((key) => t.event(key, { key })))
    assert.equal((await t.claim({ slots: 200 })).length, 200)
    t.lapse()
    assert.equal((await t.claim({ slots: 200, suspects: 0, failing: 0 })).length, 200)
  })

  rule('L12 from the second lapse on a run is a suspect: a process takes as many as it says', async (t) => {
    await lapsed(t, 1, 'x', 'y', 'z')
    t.lapse()
    await t.nothing({ suspects: 0 })
    assert.deepEqual(keys(await t.claim({ suspects: 1, process: 'p1' })), ['x'])
    assert.deepEqual(keys(await t.claim({ suspects: 1, process: 'p2' })), ['y'])
    assert.deepEqual(keys(await t.claim({ suspects: 1, process: 'p3' })), ['z'])
  })

  rule('L12 suspects hold up nobody else, and keep their place', async (t) => {
    await lapsed(t, 1, 'suspect', 'suspect too')
    t.lapse()
    t.clock.advance(10)
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    assert.deepEqual(keys(await t.claim({ slots: 2, suspects: 0 })), ['a', 'b'])
    await t.append('c', { key: 'c' })
    assert.deepEqual(keys(await t.claim({ slots: 2, suspects: 1 })), ['suspect', 'c'])
  })

  rule('L12 the fourth lapse makes the run a dead letter that says how often it crashed', async (t) => {
    const [run] = await lapsed(t, 3, 'k')
    assert.deepEqual([run?.lapses, run?.tries], [3, 0])
    t.lapse()
    const reply = await t.turn({ claim: [claimOf({ suspects: 1 })] })
    assert.deepEqual(reply.claimed, [])
    assert.deepEqual(reply.crashed, [{ lane: run?.lane, run: run?.run }])
    const letter = await t.letter(run?.run ?? '')
    assert.deepEqual(
      [letter?.state, letter?.reason, letter?.lapses, letter?.tries, letter?.blocks, t.names(letter?.events ?? [])],
      ['dead', 'crashed', 4, 0, false, ['k']],
    )
    assert.deepEqual((await t.turn({ claim: [claimOf()] })).crashed, [])
  })

  rule('L12 a crashed run takes no slot: the next lane is claimed in the same call', async (t) => {
    await lapsed(t, 3, 'k')
    t.lapse()
    await t.append('other', { key: 'other' })
    const reply = await t.turn({ claim: [claimOf({ slots: 1, suspects: 1 })] })
    assert.equal(reply.crashed.length, 1)
    assert.deepEqual(keys(reply.claimed), ['other'])
  })

  rule('L12 after a crash the lane goes on with what waits', async (t) => {
    await lapsed(t, 3, 'k')
    await t.append('next')
    t.lapse()
    const { crashed, claimed } = await t.turn({ claim: [claimOf()] })
    assert.equal(crashed.length, 1)
    // Whether the freed lane is taken by the same call or the next one is the store's affair.
    const runs = [...claimed, ...(await t.claim())]
    assert.deepEqual(
      runs.map((run) => t.names(run)),
      [['next']],
    )
  })

  rule('L12 L9 block: a run that crashes once too often blocks its lane if the claim says so', async (t) => {
    const [run] = await lapsed(t, 3, 'k')
    await t.append('next')
    t.lapse()
    assert.equal((await t.turn({ claim: [claimOf({ block: true })] })).crashed.length, 1)
    await t.nothing({ block: true })
    assert.equal(await t.steerDead(run?.run ?? '', 'drop'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['next'])
  })

  rule('L12 a crashed letter can be tried again by hand, with four lapses of its own', async (t) => {
    const [run] = await lapsed(t, 3, 'k')
    t.lapse()
    await t.nothing()
    await t.steerDead(run?.run ?? '', 'retry')
    const back = await t.next({ suspects: 0 })
    assert.deepEqual([back.run, back.lapses], [run?.run, 0])
    t.lapse()
    assert.equal((await t.next({ suspects: 0 })).lapses, 1)
  })

  rule('L12 lapses and tries are counted apart', async (t) => {
    await t.append('a')
    await t.end(await t.next(), retry(0))
    await t.next()
    t.lapse()
    const run = await t.next()
    assert.deepEqual([run.tries, run.lapses], [1, 1])
    await t.end(run, retry(0))
    const last = await t.next()
    assert.deepEqual([last.tries, last.lapses], [2, 1])
  })

  rule('L12 a lapse loses nothing of what again kept', async (t) => {
    await t.append('a')
    await t.end(await t.next(), again(0, 'c3RhdGU='))
    await t.next()
    t.lapse()
    assert.equal((await t.next()).state64, 'c3RhdGU=')
  })

  rule('L12 a release is no lapse', async (t) => {
    await t.append('a')
    for (let n = 0; n < 6; n++) await t.end(await t.next({ suspects: 0 }), released)
    assert.equal((await t.next({ suspects: 0 })).lapses, 0)
  })

  rule('L12 a claim repeated with its number gives the same leases, and claims nothing more', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const call = { process: 'p1', request: 7, claim: [claimOf({ slots: 1 })] }
    const first = await t.turn(call)
    t.clock.advance(10)
    const second = await t.turn(call)
    assert.deepEqual(keys(first.claimed), ['a'])
    assert.equal(first.claimed[0]?.until, first.now + LEASE)
    assert.deepEqual(second.claimed, first.claimed)
    const third = await t.turn({ ...call, request: 8 })
    assert.deepEqual(keys(third.claimed), ['b'])
    t.clock.advance(LEASE)
    assert.deepEqual(
      (await t.claim({ process: 'p2' })).map((run) => run.lapses),
      [1, 1],
    )
  })

  rule('L12 a repeated claim gives only those of its leases that are still live', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const call = { process: 'p1', request: 1, claim: [claimOf({ lease: 1_000 })] }
    const { claimed } = await t.turn(call)
    const [a] = claimed
    assert.ok(a)
    t.clock.advance(500)
    await t.renew(a, { lease: 1_000 })
    t.clock.advance(500)
    const repeated = await t.turn(call)
    assert.deepEqual(
      repeated.claimed.map((run) => [run.key, run.token, run.until - repeated.now]),
      [['a', a.token, 500]],
    )
    assert.deepEqual(keys(await t.claim({ process: 'p2' })), ['b'])
  })

  rule('L12 a repeated turn settles nothing twice and answers the same', async (t) => {
    await t.append('a')
    const run = await t.next()
    const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    const settle = [{ lane: run.lane, token: run.token, outcome: retry(0), ...end }]
    const call = { process: 'p1', request: 50, settle, claim: [claimOf()] }
    const first = await t.turn(call)
    const second = await t.turn(call)
    assert.deepEqual(second.settled, ['ok'])
    assert.deepEqual(second.claimed, first.claimed)
    assert.deepEqual(
      second.claimed.map((lease) => lease.tries),
      [1],
    )
    assert.equal(await t.settle(first.claimed[0] ?? run, done), 'ok')
  })

  rule('L12 a lower number than the last is refused; each process counts by itself', async (t) => {
    await t.append('a')
    await t.turn({ process: 'p1', request: 5 })
    await assert.rejects(t.turn({ process: 'p1', request: 4, claim: [claimOf()] }), { code: 'REQUEST_STALE' })
    const { claimed } = await t.turn({ process: 'p2', request: 4, claim: [claimOf()] })
    assert.deepEqual(keys(claimed), ['k'])
  })
}
