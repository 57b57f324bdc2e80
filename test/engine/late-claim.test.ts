// A late reply to a claim: after the lease has expired, no handler starts. Before that, a run has only what is left of the lease,
// because another process may claim the lane afterwards (L1).
import { expect, test } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import type { SettleAndClaimReply } from '../../src/store/contract/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'

type Turn = (
  turn: Store['settleAndClaim'],
  ...call: Parameters<Store['settleAndClaim']>
) => Promise<SettleAndClaimReply>

/** A store whose replies to settleAndClaim the test controls. */
function storeWith(bare: Store, turn: Turn): Store {
  return new Proxy(bare, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name)
      if (name === 'settleAndClaim') return turn.bind(undefined, target.settleAndClaim.bind(target))
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

test('L1 a claim whose reply is too late starts no handler', async () => {
  const clock = new VirtualClock()
  // The process stalls between the claim and its reply.
  const late = storeWith(await openStore('memory:', { clock }), async (turn, call) => {
    const reply = await turn(call)
    if (reply.claimed.length > 0) clock.advance(2_000)
    return reply
  })
  const told: string[] = []
  let entered = 0
  const app = new Sluice({ store: late, clock, lease: 1_000, heartbeat: 250, log: false })
  app.flow('f', { on: 'ping', run: () => void entered++ })
  const lost = Promise.withResolvers<void>()
  app.onAny((name) => {
    told.push(name)
    if (name === 'run.lost') lost.resolve()
  })
  await app.start()
  await app.publish({ type: 'ping' })
  clock.advance(1_000)
  await lost.promise
  expect(entered).toBe(0)
})

test('L1 L12 a claim that is repeated after a lost reply has what is left of its lease', async () => {
  const clock = new VirtualClock()
  let claimed: number | undefined
  const lossy = storeWith(await openStore('memory:', { clock }), async (turn, call) => {
    const reply = await turn(call)
    if (reply.claimed.length === 0 || claimed !== undefined) return reply
    claimed = clock.now()
    clock.advance(650)
    throw new Error('The connection is gone.')
  })
  const app = new Sluice({ store: lossy, clock, lease: 1_000, heartbeat: 250, log: false })
  const seen = { began: Infinity, aborted: Infinity }
  app.flow('f', {
    on: 'ping',
    run: ({ signal }) => {
      seen.began = Math.min(seen.began, clock.now())
      const over = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => {
        seen.aborted = Math.min(seen.aborted, clock.now())
        over.resolve()
      })
      return over.promise
    },
  })
  await app.start()
  await app.publish({ type: 'ping' })
  while (seen.aborted === Infinity) {
    clock.advance(5)
    await new Promise(setImmediate)
  }
  const since = (at: number): number => at - (claimed ?? 0)
  expect(since(seen.began)).toBeGreaterThanOrEqual(700)
  // One tenth of the lease before another process may claim the lane. No heartbeat has happened by then.
  expect(since(seen.aborted)).toBeLessThanOrEqual(905)
  await app.stop()
})
