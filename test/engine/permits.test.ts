// L20: permits while the store responds slowly. A process really has each permit that it believes to have.
import { expect, test } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import type { LeasePermitsCall, LeasePermitsReply } from '../../src/store/contract/index.ts'
import { Permits } from '../../src/dispatch/permits.ts'
import { createFlow } from '../../src/flow/options.ts'
import { VirtualClock } from '../../src/testing/index.ts'

const one = createFlow('one', { on: 'ping', concurrency: 1, run: () => {} })
const roomFor = (): number => 1

/** Replies are held back until the test releases them, one by one. */
async function scene(): Promise<{
  readonly permits: Permits
  readonly other: Permits
  readonly clock: VirtualClock
  readonly letGo: (answer: number) => Promise<void>
}> {
  const clock = new VirtualClock()
  const store = await openStore('memory:', { clock })
  const kept: PromiseWithResolvers<void>[] = []
  const slow = async (call: LeasePermitsCall): Promise<LeasePermitsReply> => {
    const reply = await store.leasePermits(call)
    const gate = Promise.withResolvers<void>()
    kept.push(gate)
    await gate.promise
    return reply
  }
  const letGo = async (answer: number): Promise<void> => {
    while (kept[answer] === undefined) await new Promise(setImmediate)
    kept[answer].resolve()
    await new Promise(setImmediate)
  }
  const permits = new Permits({ store: { leasePermits: slow }, clock, process: 'p', lease: 1_000 })
  const other = new Permits({ store, clock, process: 'q', lease: 1_000 })
  return { permits, other, clock, letGo }
}

test('L20 a permit that is returned while it is being renewed is not held, whichever reply comes first', async () => {
  const { permits, other, letGo } = await scene()
  const had = permits.acquire([one], roomFor)
  await letGo(0)
  await had
  expect(permits.maxRuns(one)).toBe(1)
  const renewed = permits.renew(() => true, [one], roomFor)
  const released = permits.release([one])
  // The replies arrive in the other order.
  await new Promise(setImmediate)
  const second = letGo(2)
  await letGo(1)
  await Promise.all([second, renewed, released])
  await other.acquire([one], roomFor)
  expect([permits.maxRuns(one), other.maxRuns(one)]).toEqual([0, 1])
})

test('L20 a run is not renewed beyond its permit', async () => {
  const { permits, clock, letGo } = await scene()
  const had = permits.acquire([one], roomFor)
  await letGo(0)
  await had
  expect(permits.outlastsRun('one')).toBe(true)
  const renewed = permits.renew(() => true, [one], roomFor)
  await new Promise(setImmediate)
  // The permit was granted at the request, but the process learns it only now.
  clock.advance(1_500)
  await letGo(1)
  await renewed
  expect(permits.outlastsRun('one')).toBe(false)
  expect(permits.outlastsRun('another')).toBe(true)
})

test('L20 the engine lets a run end whose permit would end first, and renews the others', async () => {
  const clock = new VirtualClock()
  const bare = await openStore('memory:', { clock })
  const renewed: string[][] = []
  let isSlow = false
  const store: Store = new Proxy(bare, {
    get: (target, name): unknown => {
      if (name === 'leasePermits')
        return async (call: LeasePermitsCall) => {
          const reply = await target.leasePermits(call)
          if (isSlow) {
            isSlow = false
            clock.advance(1_500)
          }
          return reply
        }
      if (name === 'renew')
        return (call: Parameters<Store['renew']>[0]) => {
          renewed.push(call.runs.map(({ lane }) => lanes.get(lane) ?? ''))
          return target.renew(call)
        }
      if (name === 'settleAndClaim')
        return async (call: Parameters<Store['settleAndClaim']>[0]) => {
          const reply = await target.settleAndClaim(call)
          for (const { lane, flow: its } of reply.claimed) lanes.set(lane, its)
          return reply
        }
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  const lanes = new Map<string, string>()
  const goOn = Promise.withResolvers<void>()
  const app = new Sluice({ store, clock, lease: 4_000, heartbeat: 500, log: false })
  app.flow('one', { on: 'ping', concurrency: 1, run: () => goOn.promise })
  app.flow('any', { on: 'ping', run: () => goOn.promise })
  await app.start()
  await app.publish({ type: 'ping' })
  while (lanes.size < 2) {
    clock.advance(10)
    await new Promise(setImmediate)
  }
  isSlow = true
  while (renewed.length === 0) {
    clock.advance(10)
    await new Promise(setImmediate)
  }
  expect(renewed[0]).toEqual(['any'])
  goOn.resolve()
  await app.stop()
})
