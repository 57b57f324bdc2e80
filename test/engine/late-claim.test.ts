// A claim whose answer comes after its lease is over begins nothing: the lane may be somebody else's by then (L1).
import { expect, test } from 'vitest'
import { openStore, Sluice, type Store, type TurnReply } from '../../src/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'

test('L1 a claim that is answered too late begins no handler', async () => {
  const clock = new VirtualClock()
  const bare = await openStore('memory:', { clock })
  // The process stands still between the claim and its answer.
  const late: Store = new Proxy(bare, {
    get: (target, name): unknown => {
      if (name !== 'turn') {
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      }
      return async (call: Parameters<Store['turn']>[0]): Promise<TurnReply> => {
        const reply = await target.turn(call)
        if (reply.claimed.length > 0) clock.advance(2_000)
        return reply
      }
    },
  })
  const told: string[] = []
  let entered = 0
  const app = new Sluice({ store: late, clock, lease: 1_000, heartbeat: 250, log: false })
  app.flow('f', { on: 'ping', run: () => void entered++ })
  const lost = Promise.withResolvers<void>()
  app.events.onAny((name) => {
    told.push(name)
    if (name === 'run.lost') lost.resolve()
  })
  await app.start()
  await app.publish({ type: 'ping' })
  clock.advance(1_000)
  await lost.promise
  expect(entered).toBe(0)
})
