// M3: a refusal by the other side pauses the limit for every process. Afterwards, the limit is slower for a while.
import assert from 'node:assert/strict'
import type { Millis } from '../../src/clock.ts'
import type { RegulateReply } from '../../src/store/contract/index.ts'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { createLimit, MINUTE, createReserveRequest, SECOND } from './builders.ts'

const numbers = createLimit(1, SECOND)
const api = { api: numbers }

async function reserve(t: ConformanceStage, ticket: string, name = 'api'): Promise<{ wait: Millis; epoch: number }> {
  const answer = assertSingle(
    (await t.store.reserve({ requests: [createReserveRequest(ticket, { [name]: numbers })] })).results,
  )
  assert.ok(answer.kind === 'granted')
  return answer
}

async function wait(t: ConformanceStage, ticket: string): Promise<Millis> {
  return (await reserve(t, ticket)).wait
}

async function pause(t: ConformanceStage, duration: Millis, slow = false): Promise<RegulateReply> {
  return t.store.regulate({ name: 'api', act: { kind: 'pause', for: duration, slow } })
}

export const pauses: Suite = (rule) => {
  rule('M3 a pause raises the epoch, returns its length, and gives no slot until it ends', async (t) => {
    const { epoch } = await reserve(t, 't1')
    const paused = await pause(t, 5 * SECOND)
    assert.ok(paused.epoch > epoch)
    assert.equal(paused.pausedFor, 5 * SECOND)
    assert.deepEqual(await reserve(t, 't2'), { kind: 'granted', wait: 5 * SECOND, freshFor: 100, epoch: paused.epoch })
    t.clock.advance(5 * SECOND - 1)
    assert.equal(await wait(t, 't2'), 1)
    t.clock.advance(1)
    assert.equal(await wait(t, 't2'), 0)
  })

  rule('M3 a slot that was given before the pause is void: its time comes after the pause', async (t) => {
    await wait(t, 't1')
    assert.equal(await wait(t, 't2'), 1_100)
    await pause(t, 10 * SECOND)
    t.clock.advance(1_100)
    assert.equal(await wait(t, 't2'), 8_900)
  })

  rule('M2 M3 slots given before the pause keep their order, regardless of who asks first', async (t) => {
    for (const ticket of ['t1', 't2', 't3', 't4']) await wait(t, ticket)
    await pause(t, 10 * SECOND)
    assert.equal(await wait(t, 't4'), 12_200)
    assert.equal(await wait(t, 't2'), 10_000)
    assert.equal(await wait(t, 't3'), 11_100)
    assert.equal(await wait(t, 'new'), 13_300)
  })

  rule('M3 slots far behind the end of the pause stay behind those that are moved', async (t) => {
    for (const ticket of ['t1', 't2', 't3', 't4']) await wait(t, ticket)
    await pause(t, 2 * SECOND)
    const waits = [await wait(t, 't4'), await wait(t, 't3'), await wait(t, 't2')]
    assert.deepEqual(
      waits.toSorted((a, b) => b - a),
      waits,
    )
    assert.ok((waits[2] ?? 0) >= 2 * SECOND)
    for (const [n, later] of waits.slice(0, 2).entries()) assert.ok(later - (waits[n + 1] ?? 0) >= 1_100)
  })

  rule('M3 unused slots whose time has passed take no slot after a pause', async (t) => {
    for (let n = 0; n < 20; n++) await wait(t, `dead ${n}`)
    t.clock.advance(MINUTE)
    await pause(t, SECOND)
    assert.equal(await wait(t, 'new'), SECOND)
  })

  rule('M3 slots used before the pause still count after it', async (t) => {
    await wait(t, 't1')
    await pause(t, 100)
    assert.equal(await wait(t, 't2'), 1_100)
  })

  rule('M3 a shorter pause does not end a longer one', async (t) => {
    await pause(t, 60 * SECOND)
    const second = await pause(t, SECOND)
    assert.equal(second.pausedFor, 60 * SECOND)
    assert.equal(await wait(t, 't1'), 60 * SECOND)
  })

  rule('M3 other limits continue, and a call of both waits for the paused one', async (t) => {
    await pause(t, 5 * SECOND)
    assert.equal((await reserve(t, 't1', 'other')).wait, 0)
    const both = { api: numbers, third: numbers }
    const answer = assertSingle((await t.store.reserve({ requests: [createReserveRequest('t2', both)] })).results)
    assert.equal(answer.kind === 'granted' && answer.wait, 5 * SECOND)
  })

  rule('M3 after a pause that slows, per is twice as long', async (t) => {
    await pause(t, SECOND, true)
    assert.equal(await wait(t, 't1'), SECOND)
    const second = (await wait(t, 't2')) - SECOND
    assert.ok(second > 1_950 && second <= 2_100, `${second}`)
  })

  rule('M3 per comes back by a tenth each minute', async (t) => {
    await pause(t, SECOND, true)
    const gaps: number[] = []
    for (const minutes of [0, 3, 60]) {
      t.clock.advance(SECOND + minutes * MINUTE)
      assert.equal(await wait(t, `${minutes} first`), 0)
      gaps.push(await wait(t, `${minutes} second`))
      t.clock.advance(10 * SECOND)
    }
    const [fresh = 0, after3 = 0, after60 = 0] = gaps
    assert.ok(fresh > 1_950 && fresh <= 2_100, `${fresh} at once`)
    assert.ok(after3 > 1_450 && after3 < 1_650, `${after3} after three minutes`)
    assert.equal(after60, 1_100)
  })

  rule('M3 a pause that does not slow leaves per as it is', async (t) => {
    await pause(t, SECOND, false)
    assert.equal(await wait(t, 't1'), SECOND)
    assert.equal(await wait(t, 't2'), SECOND + 1_100)
  })

  rule('M3 resume ends the pause and the slowness, and raises the epoch', async (t) => {
    const paused = await pause(t, 60 * SECOND, true)
    const resumed = await t.store.regulate({ name: 'api', act: { kind: 'resume' } })
    assert.ok(resumed.epoch > paused.epoch)
    assert.equal(resumed.pausedFor, 0)
    assert.equal(await wait(t, 't1'), 0)
    assert.equal(await wait(t, 't2'), 1_100)
  })

  rule('M3 the usage that the other side reports counts as used', async (t) => {
    const limit = { api: createLimit(5, 10 * SECOND) }
    const observed = { kind: 'observe', numbers: limit.api, used: 4, resetsIn: 3 * SECOND } as const
    await t.store.regulate({ name: 'api', act: observed })
    const requests = ['t1', 't2'].map((ticket) => createReserveRequest(ticket, limit))
    const [first, second] = (await t.store.reserve({ requests })).results
    assert.ok(first?.kind === 'granted' && second?.kind === 'granted')
    assert.equal(first.wait, 0)
    assert.ok(second.wait >= 3 * SECOND, `${second.wait}`)
  })

  rule('M3 an observation of less than was given changes nothing', async (t) => {
    await wait(t, 't1')
    await t.store.regulate({ name: 'api', act: { kind: 'observe', numbers, used: 0, resetsIn: SECOND } })
    assert.equal(await wait(t, 't2'), 1_100)
  })

  rule('M1 calls that left late count once more, and the waiting slots move behind them', async (t) => {
    const limit = { api: createLimit(3, 10 * SECOND) }
    const tickets = ['t1', 't2', 't3', 't4']
    const waits = async (): Promise<readonly number[]> => {
      const { results } = await t.store.reserve({
        requests: tickets.map((ticket) => createReserveRequest(ticket, limit)),
      })
      return results.map((each) => (each.kind === 'granted' ? each.wait : -1))
    }
    assert.deepEqual(await waits(), [0, 0, 0, 10_100])
    t.clock.advance(4 * SECOND)
    tickets.splice(0, 3)
    tickets.push('t5', 't6')
    const before = (await t.store.stats()).limits.find(({ name }) => name === 'api')?.epoch ?? 0
    const act = { kind: 'charge', numbers: { ...limit.api, cost: 2 } } as const
    const { epoch, pausedFor } = await t.store.regulate({ name: 'api', act })
    assert.ok(epoch > before)
    assert.equal(pausedFor, 0)
    // Of the five calls, the newest three count: one at 0 s, two at 4 s.
    assert.deepEqual(await waits(), [6_100, 10_100, 10_100])
  })

  rule('M3 the pause of a limit is shown', async (t) => {
    await t.store.reserve({ requests: [createReserveRequest('t1', api)] })
    const paused = await pause(t, 5 * SECOND)
    const shown = (await t.store.stats()).limits.find((limit) => limit.name === 'api')
    assert.deepEqual([shown?.epoch, shown?.pausedUntil], [paused.epoch, t.clock.now() + 5 * SECOND])
  })

  rule('M3 usage by others counts beside our own slots', async (t) => {
    const limit = { api: createLimit(3, 10 * SECOND) }
    const ask = async (ticket: string): Promise<Millis> => {
      const answer = assertSingle((await t.store.reserve({ requests: [createReserveRequest(ticket, limit)] })).results)
      return answer.kind === 'granted' ? answer.wait : -1
    }
    assert.equal(await ask('t1'), 0)
    const act = { kind: 'observe', numbers: limit.api, used: 2, resetsIn: 5 * SECOND } as const
    await t.store.regulate({ name: 'api', act })
    assert.equal(await ask('t2'), 0)
    assert.ok((await ask('t3')) > 0)
  })

  rule('M3 usage by others counts while many callers wait: their slots move behind it, in their order', async (t) => {
    const limit = { api: createLimit(10, 60 * SECOND) }
    const tickets = Array.from({ length: 20 }, (_, n) => `t${n}`)
    const waits = async (): Promise<readonly number[]> => {
      const { results } = await t.store.reserve({
        requests: tickets.map((ticket) => createReserveRequest(ticket, limit)),
      })
      return results.map((each) => (each.kind === 'granted' ? each.wait : -1))
    }
    await waits()
    t.clock.advance(60 * SECOND)
    const act = { kind: 'observe', numbers: limit.api, used: 9, resetsIn: 55 * SECOND } as const
    const { epoch } = await t.store.regulate({ name: 'api', act })
    tickets.splice(0, 10)
    const moved = await waits()
    assert.deepEqual(moved, [100, ...Array.from({ length: 9 }, () => 60 * SECOND + 100)])
    const again = await t.store.regulate({ name: 'api', act })
    assert.equal(again.epoch, epoch, 'a known count changes nothing')
    assert.deepEqual(await waits(), moved)
  })

  rule('M3 a slot that is due but unused is not in the reported usage', async (t) => {
    const limit = { api: createLimit(2, SECOND) }
    const ask = async (ticket: string): Promise<Millis> => {
      const answer = assertSingle((await t.store.reserve({ requests: [createReserveRequest(ticket, limit)] })).results)
      return answer.kind === 'granted' ? answer.wait : -1
    }
    for (const ticket of ['t1', 't2', 't3', 't4']) await ask(ticket)
    t.clock.advance(1_150)
    const act = { kind: 'observe', numbers: limit.api, used: 1, resetsIn: 500 } as const
    await t.store.regulate({ name: 'api', act })
    assert.equal(await ask('t3'), 0)
    assert.equal(await ask('t4'), 1_100)
  })

  rule('M3 a bucket holds no more tokens than calls that the other side still accepts', async (t) => {
    const bucket = { api: createLimit(10, 60 * SECOND, { burst: 10 }) }
    const ask = async (ticket: string): Promise<Millis> => {
      const answer = assertSingle((await t.store.reserve({ requests: [createReserveRequest(ticket, bucket)] })).results)
      return answer.kind === 'granted' ? answer.wait : -1
    }
    const act = { kind: 'observe', numbers: bucket.api, used: 9, resetsIn: 55 * SECOND } as const
    await t.store.regulate({ name: 'api', act })
    assert.deepEqual([await ask('t1'), await ask('t2'), await ask('t3')], [0, 6 * SECOND, 12 * SECOND])
    t.clock.advance(6 * SECOND)
    await t.store.regulate({ name: 'api', act })
    assert.deepEqual([await ask('t2'), await ask('t3')], [0, 6 * SECOND], 'it lacks nine already')
  })

  rule('M3 a limit that is reported as used up pauses at least until it resets', async (t) => {
    const act = { kind: 'observe', numbers, used: 1, resetsIn: 30 * SECOND } as const
    await t.store.regulate({ name: 'api', act })
    assert.ok((await wait(t, 't1')) >= 30 * SECOND)
  })

  rule('M3 a slowed bucket fills half as fast', async (t) => {
    await pause(t, SECOND, true)
    const bucket = { api: createLimit(1, SECOND, { burst: 1 }) }
    const requests = ['t1', 't2'].map((ticket) => createReserveRequest(ticket, bucket))
    const [first, second] = (await t.store.reserve({ requests })).results
    assert.ok(first?.kind === 'granted' && second?.kind === 'granted')
    assert.equal(first.wait, SECOND)
    const gap = second.wait - first.wait
    assert.ok(gap > 1_900 && gap <= 2_000, `${gap}`)
  })

  rule('M3 maintenance forgets neither a pause nor a slowdown', async (t) => {
    await pause(t, 10 * MINUTE, true)
    t.clock.advance(9 * MINUTE)
    await t.maintain()
    assert.equal(await wait(t, 't1'), MINUTE)
    t.clock.advance(2 * MINUTE)
    await t.maintain()
    assert.equal(await wait(t, 't2'), 0)
    const gap = await wait(t, 't3')
    assert.ok(gap > 1_700 && gap < 2_100, `${gap} a minute after the pause`)
  })
}
