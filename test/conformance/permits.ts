// L20: n permits are n over all processes. They are leased, so the permits of a dead process become free.
import assert from 'node:assert/strict'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'

async function leaseOne(t: ConformanceStage, process: string, want: number, max: number): Promise<number> {
  return assertSingle(
    (await t.store.leasePermits({ process, lease: 1_000, requests: [{ name: 'flow', want, max }] })).granted,
  )
}

export const permits: Suite = (rule) => {
  rule('L20 the permits of all processes together are at most max', async (t) => {
    assert.equal(await leaseOne(t, 'p1', 3, 5), 3)
    assert.equal(await leaseOne(t, 'p2', 3, 5), 2)
    assert.equal(await leaseOne(t, 'p3', 3, 5), 0)
  })

  rule('L20 no process gets more than it wants, or than there are', async (t) => {
    assert.equal(await leaseOne(t, 'p1', 2, 5), 2)
    assert.equal(await leaseOne(t, 'p2', 9, 5), 3)
    assert.equal(await leaseOne(t, 'p3', 0, 5), 0)
  })

  rule('L20 the same call again renews and does not add up', async (t) => {
    assert.equal(await leaseOne(t, 'p1', 2, 3), 2)
    assert.equal(await leaseOne(t, 'p1', 2, 3), 2)
    assert.equal(await leaseOne(t, 'p2', 5, 3), 1)
    t.clock.advance(900)
    await leaseOne(t, 'p1', 2, 3)
    t.clock.advance(900)
    assert.equal(await leaseOne(t, 'p3', 5, 3), 1)
  })

  rule('L20 a process that wants less gives the rest back at once', async (t) => {
    await leaseOne(t, 'p1', 4, 4)
    assert.equal(await leaseOne(t, 'p1', 1, 4), 1)
    assert.equal(await leaseOne(t, 'p2', 4, 4), 3)
    assert.equal(await leaseOne(t, 'p1', 0, 4), 0)
    assert.equal(await leaseOne(t, 'p2', 4, 4), 4)
  })

  rule('L20 at the end of its lease a process holds none', async (t) => {
    await leaseOne(t, 'p1', 3, 3)
    t.clock.advance(999)
    assert.equal(await leaseOne(t, 'p2', 3, 3), 0)
    t.clock.advance(1)
    assert.equal(await leaseOne(t, 'p2', 3, 3), 3)
    assert.equal(await leaseOne(t, 'p1', 3, 3), 0)
  })

  rule('L20 names are counted apart, several in one call', async (t) => {
    const wants = [
      { name: 'a', want: 2, max: 2 },
      { name: 'b', want: 1, max: 1 },
      { name: 'a/acme', want: 5, max: 3 },
    ]
    assert.deepEqual((await t.store.leasePermits({ process: 'p1', lease: 1_000, requests: wants })).granted, [2, 1, 3])
    assert.deepEqual((await t.store.leasePermits({ process: 'p2', lease: 1_000, requests: wants })).granted, [0, 0, 0])
  })

  rule('L20 a max that was lowered is kept from then on', async (t) => {
    await leaseOne(t, 'p1', 5, 5)
    assert.equal(await leaseOne(t, 'p2', 5, 2), 0)
    assert.equal(await leaseOne(t, 'p1', 5, 2), 2)
    assert.equal(await leaseOne(t, 'p2', 5, 2), 0)
  })

  rule('L20 processes that ask at the same moment do not get more than there are', async (t) => {
    const other = await t.openSecondCaller()
    const asked = Array.from({ length: 10 }, async (_, n) => {
      const store = n % 2 === 0 ? t.store : other
      return store.leasePermits({ process: `p${n}`, lease: 1_000, requests: [{ name: 'flow', want: 3, max: 7 }] })
    })
    const got = (await Promise.all(asked)).map((reply) => assertSingle(reply.granted))
    assert.equal(
      got.reduce((sum, n) => sum + n, 0),
      7,
    )
  })
}
