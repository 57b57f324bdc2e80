// M1 and M2: in any window of `per`, at most `rate` calls over all processes; first come, first served.
import assert from 'node:assert/strict'
import { NEVER, type Millis } from '../../src/clock.ts'
import type { Reservation } from '../../src/store/contract/index.ts'
import { reserveTooFar, reserveTooFarRecheck, reserveWait } from './limit-helpers.ts'
import { assertSingle, type Suite } from './stage.ts'
import { createLimit, DAY, MINUTE, createReserveRequest, SECOND } from './builders.ts'

/** The slack of M1: how old a slot may be when it is used. */
const SLACK = 100

export const limits: Suite = (rule) => {
  rule('M6 a slot beyond maxWait is not taken: a caller that can wait gets it', async (t) => {
    const numbers = createLimit(1, 1_000)
    const ask = async (ticket: string, maxWait: Millis): Promise<Reservation> =>
      assertSingle(
        (await t.store.reserve({ requests: [{ ...createReserveRequest(ticket, { api: numbers }), maxWait }] })).results,
      )
    assert.equal((await ask('t1', 0)).kind, 'granted')
    assert.deepEqual(await ask('t2', 1_099), { kind: 'far', wait: 1_100, recheckAfter: 1_100 })
    assert.equal((await ask('t3', 1_099)).kind, 'far')
    const patient = await ask('t4', 1_100)
    assert.ok(patient.kind === 'granted' && patient.wait === 1_100)
    // A ticket that has its slot gets its wait, however long: the slot was promised.
    const asked = await ask('t4', 0)
    assert.ok(asked.kind === 'granted' && asked.wait === 1_100)
  })

  rule('M1 the first calls of a limit wait for nothing, the next lies per and the slack after the first', async (t) => {
    const api = { api: createLimit(3, SECOND) }
    assert.deepEqual(
      [await reserveWait(t, 't1', api), await reserveWait(t, 't2', api), await reserveWait(t, 't3', api)],
      [0, 0, 0],
    )
    assert.equal(await reserveWait(t, 't4', api), SECOND + SLACK)
  })

  rule('M1 the slack is a tenth of a short per', async (t) => {
    const api = { api: createLimit(1, 500) }
    await reserveWait(t, 't1', api)
    assert.equal(await reserveWait(t, 't2', api), 550)
  })

  rule('M1 the n-th slot lies per and the slack after the (n − rate)-th', async (t) => {
    const api = { api: createLimit(2, SECOND) }
    await reserveWait(t, 't1', api)
    t.clock.advance(600)
    await reserveWait(t, 't2', api)
    assert.equal(await reserveWait(t, 't3', api), 500)
    assert.equal(await reserveWait(t, 't4', api), SECOND + SLACK)
    assert.equal(await reserveWait(t, 't5', api), 500 + SECOND + SLACK)
  })

  rule('M1 in any window of per at most rate calls are made, in any pattern of arrival', async (t) => {
    const api = { api: createLimit(3, SECOND) }
    const used: Millis[] = []
    const due: { readonly at: Millis; readonly ticket: string }[] = []
    let seed = 7
    const chance = (below: number): number => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      return (seed >>> 8) % below
    }
    for (let n = 0, at = t.clock.now(); n < 60; n++)
      due.push({ at: (at += chance(n < 30 ? 200 : 700)), ticket: `t${n}` })
    while (due.length > 0) {
      due.sort((one, other) => one.at - other.at)
      const next = due.shift()
      assert.ok(next)
      t.clock.set(Math.max(next.at, t.clock.now()))
      const left = await reserveWait(t, next.ticket, api)
      if (left === 0) used.push(t.clock.now())
      // A sleeper wakes late, sometimes too late for its slot.
      else due.push({ at: t.clock.now() + left + chance(130), ticket: next.ticket })
    }
    assert.equal(used.length, 60)
    for (let n = 3; n < used.length; n++) {
      const window = (used[n] ?? 0) - (used[n - 3] ?? 0)
      assert.ok(window >= SECOND, `calls ${n - 3} to ${n} within ${window} ms`)
    }
  })

  rule('M1 a limit that was idle gives its rate at once and no more', async (t) => {
    const api = { api: createLimit(2, SECOND) }
    await reserveWait(t, 't1', api)
    t.clock.advance(60 * SECOND)
    assert.deepEqual([await reserveWait(t, 't2', api), await reserveWait(t, 't3', api)], [0, 0])
    assert.equal(await reserveWait(t, 't4', api), SECOND + SLACK)
  })

  rule('M1 a high rate holds as well', async (t) => {
    assert.equal(await reserveWait(t, 'many', { api: createLimit(5_000, SECOND, { cost: 4_999 }) }), 0)
    assert.equal(await reserveWait(t, 'last', { api: createLimit(5_000, SECOND) }), 0)
    const over = await reserveWait(t, 'over', { api: createLimit(5_000, SECOND) })
    assert.ok(over >= SECOND && over <= SECOND + 2 * SLACK, `${over}`)
  })

  rule('M6 callers that are too early get retry times one after the other, as slots become free', async (t) => {
    const three = { api: createLimit(3, 3 * SECOND) }
    for (const ticket of ['t1', 't2', 't3']) assert.equal(await reserveWait(t, ticket, three), 0)
    const told = [
      await reserveTooFar(t, 'f1', three),
      await reserveTooFar(t, 'f2', three),
      await reserveTooFar(t, 'f3', three),
    ]
    assert.deepEqual(told, [3_100, 4_134, 5_167])
    assert.equal(await reserveTooFar(t, 'costs two', { api: createLimit(3, 3 * SECOND, { cost: 2 }) }), 7_234)
    const bucket = { bucket: createLimit(1, 20 * SECOND, { burst: 1 }) }
    assert.equal(await reserveWait(t, 'b1', bucket), 0)
    assert.deepEqual([await reserveTooFar(t, 'b2', bucket), await reserveTooFar(t, 'b3', bucket)], [20_000, 40_000])
  })

  rule('M6 a retry time keeps no slot: any caller that finds a slot near enough gets it', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    assert.equal(await reserveWait(t, 't1', api), 0)
    for (const ticket of ['f1', 'f2', 'f3']) await reserveTooFar(t, ticket, api)
    assert.deepEqual([await reserveWait(t, 't2', api), await reserveWait(t, 't3', api)], [1_100, 2_200])
    assert.equal(await reserveTooFar(t, 'f4', api), 4_400)
  })

  rule('M6 no retry time is later than an hour after the first free slot', async (t) => {
    const api = { api: createLimit(1, 20 * MINUTE) }
    assert.equal(await reserveWait(t, 't1', api), 0)
    const told: Millis[] = []
    for (let n = 0; n < 6; n++) told.push(await reserveTooFar(t, `f${n}`, api))
    const most = 80 * MINUTE + SLACK
    assert.deepEqual(told, [20 * MINUTE + SLACK, 40 * MINUTE + 2 * SLACK, 60 * MINUTE + 3 * SLACK, most, most, most])
  })

  rule('M3 M6 retry times no longer count after a pause, or when they are over', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    assert.equal(await reserveWait(t, 't1', api), 0)
    for (const ticket of ['f1', 'f2', 'f3']) await reserveTooFar(t, ticket, api)
    await t.store.regulate({ name: 'api', act: { kind: 'pause', for: 20 * SECOND, slow: false } })
    assert.deepEqual([await reserveTooFar(t, 'f4', api), await reserveTooFar(t, 'f5', api)], [20 * SECOND, 21_100])
    await t.store.regulate({ name: 'api', act: { kind: 'resume' } })
    assert.equal(await reserveTooFar(t, 'f6', api), 1_100)
    t.clock.advance(1_100)
    assert.equal(await reserveWait(t, 't2', api), 0)
    assert.equal(await reserveTooFar(t, 'f7', api), 1_100)
  })

  rule('M3 M6 in a long pause recheckAfter is one minute', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    await t.store.regulate({ name: 'api', act: { kind: 'pause', for: DAY, slow: false } })
    assert.equal(await reserveWait(t, 'sleeps through it', api), DAY)
    assert.deepEqual(
      [await reserveTooFarRecheck(t, 'f1', api), await reserveTooFarRecheck(t, 'f2', api)],
      [MINUTE, MINUTE + 1_100],
    )
    assert.equal(await reserveTooFar(t, 'f3', api), DAY + 1_100)
    t.clock.advance(MINUTE)
    assert.equal(await reserveTooFarRecheck(t, 'f1', api), MINUTE)
    await t.store.regulate({ name: 'api', act: { kind: 'pause', for: NEVER, slow: false } })
    assert.equal(await reserveTooFarRecheck(t, 'f4', api), MINUTE)
    assert.ok((await reserveTooFar(t, 'f5', api)) > 1_000 * DAY)
  })

  rule('M6 callers that miss their retry time delay no other caller', async (t) => {
    const api = { api: createLimit(1, 10 * SECOND) }
    assert.equal(await reserveWait(t, 't1', api), 0)
    for (let n = 0; n < 60; n++) await reserveTooFar(t, `gone ${n}`, api)
    t.clock.advance(30 * SECOND)
    assert.equal(await reserveWait(t, 't2', api), 0)
    assert.equal(await reserveTooFar(t, 'f1', api), 10 * SECOND + SLACK)
  })

  rule('M1 with burst it is a bucket of that capacity, which fills at the rate', async (t) => {
    const api = { api: createLimit(1, SECOND, { burst: 3 }) }
    assert.deepEqual(
      [await reserveWait(t, 't1', api), await reserveWait(t, 't2', api), await reserveWait(t, 't3', api)],
      [0, 0, 0],
    )
    assert.equal(await reserveWait(t, 't4', api), SECOND)
    assert.equal(await reserveWait(t, 't5', api), 2 * SECOND)
    t.clock.advance(60 * SECOND)
    for (const ticket of ['t6', 't7', 't8']) assert.equal(await reserveWait(t, ticket, api), 0)
    assert.ok((await reserveWait(t, 't9', api)) > 0)
  })

  rule('M2 the same ticket again has the same slot: it is not reserved twice', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    assert.equal(await reserveWait(t, 't1', api), 0)
    assert.equal(await reserveWait(t, 't1', api), 0)
    assert.equal(await reserveWait(t, 't2', api), 1_100)
    t.clock.advance(100)
    assert.equal(await reserveWait(t, 't2', api), 1_000)
    assert.equal(await reserveWait(t, 't3', api), 2_100)
  })

  rule('M2 a ticket that waited is confirmed when its time has come, and counts once', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    await reserveWait(t, 't1', api)
    await reserveWait(t, 't2', api)
    t.clock.advance(1_100)
    assert.equal(await reserveWait(t, 't2', api), 0)
    assert.equal(await reserveWait(t, 't3', api), 1_100)
  })

  rule('M2 a slot may be used until the slack is over, then it is reserved anew', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    for (const ticket of ['t1', 't2', 't3', 't4']) await reserveWait(t, ticket, api)
    t.clock.advance(1_100 + SLACK)
    assert.equal(await reserveWait(t, 't2', api), 0)
    t.clock.advance(1_100 + 1)
    assert.equal(await reserveWait(t, 't3', api), 4_400 - 2_301, 'a slot older than the slack is not used')
  })

  rule('M2 first come, first served: a later ticket never has an earlier slot', async (t) => {
    const api = { api: createLimit(2, SECOND) }
    const waits: number[] = []
    for (let n = 0; n < 9; n++) waits.push(await reserveWait(t, `t${n}`, api))
    assert.deepEqual(waits, [0, 0, 1_100, 1_100, 2_200, 2_200, 3_300, 3_300, 4_400])
  })

  rule('M2 several requests in one call are served in their order', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    const requests = ['t1', 't2', 't3'].map((ticket) => createReserveRequest(ticket, api))
    const { results } = await t.store.reserve({ requests })
    assert.deepEqual(
      results.map((each) => each.kind === 'granted' && each.wait),
      [0, 1_100, 2_200],
    )
  })

  rule('M2 over all processes: callers at the same moment share one rate', async (t) => {
    const other = await t.openSecondCaller()
    const asked = Array.from({ length: 12 }, async (_, n) => {
      const store = n % 2 === 0 ? t.store : other
      const { results } = await store.reserve({
        requests: [createReserveRequest(`t${n}`, { api: createLimit(4, SECOND) })],
      })
      const answer = assertSingle(results)
      return answer.kind === 'granted' ? answer.wait : -1
    })
    const waits = await Promise.all(asked)
    assert.deepEqual(
      waits.toSorted((a, b) => a - b),
      [0, 0, 0, 0, 1_100, 1_100, 1_100, 1_100, 2_200, 2_200, 2_200, 2_200],
    )
  })

  rule('M1 M2 maintenance forgets no slot and no ticket that still matters', async (t) => {
    for (const per of [DAY, 30 * MINUTE]) {
      const api = { [`per ${per}`]: createLimit(1, per) }
      await reserveWait(t, `${per} first`, api)
      assert.equal(await reserveWait(t, `${per} second`, api), per + SLACK)
      t.clock.advance(per / 2)
      await t.maintain()
      assert.equal(await reserveWait(t, `${per} second`, api), per / 2 + SLACK)
      assert.equal(await reserveWait(t, `${per} third`, api), per / 2 + per + 2 * SLACK)
    }
  })

  rule('M1 a reservation returns how long its slot stays fresh: the slack, or its rest', async (t) => {
    const fresh = async (ticket: string, per: Millis): Promise<Millis> => {
      const answer = assertSingle(
        (await t.store.reserve({ requests: [createReserveRequest(ticket, { [`per ${per}`]: createLimit(1, per) })] }))
          .results,
      )
      return answer.kind === 'granted' ? answer.freshFor : -1
    }
    assert.equal(await fresh('t1', SECOND), SLACK)
    assert.equal(await fresh('t2', SECOND), SLACK)
    assert.equal(await fresh('t3', 500), 50)
    t.clock.advance(1_100 + 60)
    assert.equal(await fresh('t2', SECOND), 40)
  })

  rule('M3 a pause moves thousands of calls that wait, in their order', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    const tickets = Array.from({ length: 8_000 }, (_, n) => `t${n}`)
    await t.store.reserve({ requests: tickets.map((ticket) => createReserveRequest(ticket, api)) })
    const pause = { kind: 'pause', for: MINUTE, slow: false } as const
    assert.equal((await t.store.regulate({ name: 'api', act: pause })).pausedFor, MINUTE)
    assert.equal(await reserveWait(t, 't1', api), MINUTE)
    assert.equal(await reserveWait(t, 't7999', api), MINUTE + 7_998 * 1_100)
  })
}
