// M5 and M7: calls with a cost above one, calls under several limits, and returned slots.
import assert from 'node:assert/strict'
import { releaseSlot, reserveWait, type LimitsByName } from './limit-helpers.ts'
import type { Suite } from './stage.ts'
import { createLimit, createReserveRequest, SECOND } from './builders.ts'

function bucket(cost: number): LimitsByName {
  return { api: createLimit(4, SECOND, { burst: 4, cost }) }
}

export const limitCosts: Suite = (rule) => {
  rule('M5 a cost above one takes that many', async (t) => {
    assert.equal(await reserveWait(t, 't1', { api: createLimit(3, SECOND, { cost: 2 }) }), 0)
    assert.equal(await reserveWait(t, 't2', { api: createLimit(3, SECOND, { cost: 2 }) }), 1_100)
    assert.equal(await reserveWait(t, 't3', { api: createLimit(3, SECOND) }), 1_100)
    assert.equal(await reserveWait(t, 't4', { api: createLimit(3, SECOND) }), 2_200)
  })

  rule('M5 a cost above the rate is rejected at once, and takes nothing of its other limits', async (t) => {
    const both = { day: createLimit(1, 60 * SECOND), api: createLimit(3, SECOND, { cost: 4 }) }
    const { results } = await t.store.reserve({ requests: [createReserveRequest('t1', both)] })
    assert.deepEqual(results, [{ kind: 'refused', limit: 'api' }])
    assert.equal(await reserveWait(t, 't2', { day: createLimit(1, 60 * SECOND) }), 0)
  })

  rule('M5 several limits are reserved in one step, at one time that suits all', async (t) => {
    const both = { short: createLimit(2, SECOND), long: createLimit(3, 10 * SECOND) }
    assert.deepEqual([await reserveWait(t, 't1', both), await reserveWait(t, 't2', both)], [0, 0])
    assert.equal(await reserveWait(t, 't3', both), 1_100)
    assert.equal(await reserveWait(t, 't4', both), 10_100)
    t.clock.advance(10_100)
    assert.equal(await reserveWait(t, 't4', both), 0)
    assert.equal(await reserveWait(t, 'only', { other: createLimit(1, SECOND) }), 0)
  })

  rule('M5 the time of a call counts in each of its limits', async (t) => {
    await reserveWait(t, 't1', { a: createLimit(1, SECOND) })
    assert.equal(await reserveWait(t, 't2', { a: createLimit(1, SECOND), b: createLimit(1, SECOND) }), 1_100)
    assert.equal(await reserveWait(t, 't3', { b: createLimit(1, SECOND) }), 2_200)
  })

  rule('M7 a slot that was not used goes back while no later one is given', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    await reserveWait(t, 't1', api)
    assert.equal(await reserveWait(t, 't2', api), 1_100)
    assert.equal(await releaseSlot(t, 'api', 't2'), true)
    assert.equal(await reserveWait(t, 't3', api), 1_100)
  })

  rule('M7 a slot before a later one, a used slot and an unknown slot cannot be returned', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    for (const ticket of ['t1', 't2', 't3']) await reserveWait(t, ticket, api)
    assert.equal(await releaseSlot(t, 'api', 't2'), false)
    assert.equal(await releaseSlot(t, 'api', 't1'), false)
    assert.equal(await releaseSlot(t, 'api', 'nobody'), false)
    assert.equal(await reserveWait(t, 't4', api), 3_300)
  })

  rule('M7 a slot of several limits goes back in all of them or in none', async (t) => {
    const both = { a: createLimit(1, SECOND), b: createLimit(1, SECOND) }
    await reserveWait(t, 't1', both)
    await reserveWait(t, 't2', both)
    assert.equal(await releaseSlot(t, 'a', 't2'), true)
    assert.equal(await reserveWait(t, 't3', { b: createLimit(1, SECOND) }), 1_100)
    assert.equal(await reserveWait(t, 't4', both), 2_200)
    await reserveWait(t, 't5', { b: createLimit(1, SECOND) })
    assert.equal(await releaseSlot(t, 'a', 't4'), false)
  })

  rule('M7 a slot that was used does not go back, at once or after a sleep', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    await reserveWait(t, 't1', api)
    assert.equal(await releaseSlot(t, 'api', 't1'), false)
    await reserveWait(t, 't2', api)
    t.clock.advance(1_100)
    assert.equal(await reserveWait(t, 't2', api), 0)
    assert.equal(await releaseSlot(t, 'api', 't2'), false)
    assert.equal(await reserveWait(t, 't3', api), 1_100)
  })

  rule('M7 a ticket that gave its slot back is a new one when it asks again', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    await reserveWait(t, 't1', api)
    await reserveWait(t, 't2', api)
    await releaseSlot(t, 'api', 't2')
    assert.equal(await reserveWait(t, 't3', api), 1_100)
    assert.equal(await reserveWait(t, 't2', api), 2_200)
  })

  rule('M1 M7 a bucket fills by the rate, takes costs, and takes slots back', async (t) => {
    assert.equal(await reserveWait(t, 't1', bucket(3)), 0)
    assert.equal(await reserveWait(t, 't2', bucket(3)), 500)
    assert.equal(await releaseSlot(t, 'api', 't2'), true)
    assert.equal(await reserveWait(t, 't3', bucket(1)), 0)
    assert.equal(await reserveWait(t, 't4', bucket(2)), 500)
  })

  rule('M2 M5 a slot of several limits is as short-lived as the shortest slack among them', async (t) => {
    const both = { slow: createLimit(1, SECOND), quick: createLimit(1, 100) }
    for (const ticket of ['t1', 't2', 't3']) await reserveWait(t, ticket, both)
    t.clock.advance(1_100 + 11)
    assert.ok((await reserveWait(t, 't2', both)) > 0)
  })

  rule('M1 M5 a slot of several limits stays fresh as long as the shortest slack among them', async (t) => {
    const both = { slow: createLimit(1, SECOND), quick: createLimit(1, 100) }
    const { results } = await t.store.reserve({ requests: [createReserveRequest('t1', both)] })
    assert.deepEqual(
      results.map((each) => each.kind === 'granted' && each.freshFor),
      [10],
    )
  })

  rule('M7 a slot does not go back when a later one has been used already', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    for (const ticket of ['t1', 't2', 't3']) await reserveWait(t, ticket, api)
    t.clock.advance(2_200)
    assert.equal(await reserveWait(t, 't3', api), 0)
    assert.equal(await releaseSlot(t, 'api', 't2'), false)
    assert.equal(await reserveWait(t, 't4', api), 1_100)
  })

  rule('M7 a slot does not go back when a later one was used, though one after that went back', async (t) => {
    const both = { a: createLimit(1, 100), b: createLimit(1, 100) }
    assert.equal(await reserveWait(t, 't1', both), 0)
    assert.equal(await reserveWait(t, 'nobody came', both), 110)
    t.clock.advance(SECOND)
    assert.equal(await reserveWait(t, 't3', both), 0)
    assert.equal(await reserveWait(t, 't4', both), 110)
    assert.equal(await releaseSlot(t, 'a', 't4'), true)
    assert.equal(await releaseSlot(t, 'a', 'nobody came'), false)
  })

  rule('M7 any number of slots can be returned, newest first, and leave the limit as before', async (t) => {
    for (const [name, numbers] of Object.entries({
      window: createLimit(3, SECOND),
      bucket: createLimit(3, SECOND, { burst: 3 }),
    })) {
      const limits = { [name]: numbers }
      const requests = Array.from({ length: 400 }, (_, n) => createReserveRequest(`${name} ${n}`, limits))
      const waits = async (): Promise<readonly unknown[]> =>
        (await t.store.reserve({ requests })).results.map((each) => each.kind === 'granted' && each.wait)
      const first = await waits()
      for (const { ticket } of requests.slice(3).toReversed()) assert.equal(await releaseSlot(t, name, ticket), true)
      assert.deepEqual(await waits(), first)
    }
  })

  rule('M1 M7 however many go back, those that were used meanwhile still count', async (t) => {
    const limits = { day: createLimit(3, 60 * SECOND) }
    const tickets = Array.from({ length: 400 }, (_, n) => `t${n}`)
    await t.store.reserve({ requests: tickets.map((ticket) => createReserveRequest(ticket, limits)) })
    t.clock.advance(60 * SECOND + 100)
    for (const ticket of ['t3', 't4', 't5']) assert.equal(await reserveWait(t, ticket, limits), 0)
    t.clock.advance(30 * SECOND)
    for (const ticket of tickets.slice(6).toReversed()) assert.equal(await releaseSlot(t, 'day', ticket), true)
    assert.equal(await reserveWait(t, 'new', limits), 30 * SECOND + 100)
  })

  rule('M3 M5 a pause of one limit takes nothing from the others of its calls', async (t) => {
    const long = createLimit(8, 600 * SECOND)
    const both = { short: createLimit(1, SECOND), long }
    const tickets = ['t1', 't2', 't3', 't4']
    for (const ticket of tickets) await reserveWait(t, ticket, both)
    for (let n = 0; n < 3; n++) {
      await t.store.regulate({ name: 'short', act: { kind: 'pause', for: 2 * SECOND, slow: false } })
      t.clock.advance(100)
    }
    for (const ticket of tickets.slice(1)) {
      t.clock.advance(await reserveWait(t, ticket, both))
      assert.equal(await reserveWait(t, ticket, both), 0)
    }
    for (const ticket of ['t5', 't6', 't7', 't8']) assert.equal(await reserveWait(t, ticket, { long }), 0, ticket)
    assert.ok((await reserveWait(t, 't9', { long })) > 500 * SECOND)
  })

  rule('M3 M5 a slot moved in one limit stays behind promised slots of the other', async (t) => {
    const both = { a: createLimit(1, SECOND), b: createLimit(1, SECOND) }
    await reserveWait(t, 't1', both)
    assert.equal(await reserveWait(t, 't2', both), 1_100)
    assert.equal(await reserveWait(t, 't3', { b: createLimit(1, SECOND) }), 2_200)
    await t.store.regulate({ name: 'a', act: { kind: 'pause', for: 2 * SECOND, slow: false } })
    assert.equal(await reserveWait(t, 't3', { b: createLimit(1, SECOND) }), 2_200)
    assert.equal(await reserveWait(t, 't2', both), 3_300)
  })

  rule('M3 M5 a pause of one limit moves a call of two, and the other limit is kept as well', async (t) => {
    const both = { a: createLimit(1, SECOND), b: createLimit(1, SECOND) }
    await reserveWait(t, 't1', both)
    await reserveWait(t, 't2', both)
    await t.store.regulate({ name: 'a', act: { kind: 'pause', for: 10 * SECOND, slow: false } })
    const moved = await reserveWait(t, 't2', both)
    assert.ok(moved >= 10 * SECOND)
    const other = await reserveWait(t, 't3', { b: createLimit(1, SECOND) })
    assert.ok(other >= 1_100 && Math.abs(other - moved) >= 1_100, `${other} beside ${moved}`)
  })
}
