// A wake-up that says a run was cancelled may be wrong, because any client can send one: the process asks the store first (L6c).
import { expect, test } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import type { Hint } from '../../src/store/contract/index.ts'

test('L6c a false notification cancels no run', async () => {
  const bare = await openStore('memory:')
  const ears: ((hint: Hint) => void)[] = []
  const asked = Promise.withResolvers<void>()
  const claimed = Promise.withResolvers<{ readonly lane: string; readonly token: number }>()
  const store: Store = new Proxy(bare, {
    get: (target, name): unknown => {
      if (name === 'listen') return (hear: (hint: Hint) => void) => (ears.push(hear), target.listen(hear))
      if (name === 'renew')
        return async (call: Parameters<Store['renew']>[0]) => {
          const reply = await target.renew(call)
          asked.resolve()
          return reply
        }
      if (name === 'settleAndClaim')
        return async (call: Parameters<Store['settleAndClaim']>[0]) => {
          const reply = await target.settleAndClaim(call)
          const [lease] = reply.claimed
          if (lease !== undefined) claimed.resolve(lease)
          return reply
        }
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  const app = new Sluice({ store, log: false })
  const [began, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ended = Promise.withResolvers<boolean>()
  app.flow('f', {
    on: 'ping',
    key: () => 'k',
    whileRunning: 'cancel',
    window: { quiet: 0, max: '1h' },
    run: async ({ signal }) => {
      began.resolve()
      await goOn.promise
      ended.resolve(signal.aborted)
    },
  })
  await app.start()
  await app.publish({ type: 'ping' })
  const { lane, token } = await claimed.promise
  await began.promise
  for (const hear of ears) hear({ kind: 'cancel', lane, token })
  await asked.promise
  goOn.resolve()
  expect(await ended.promise).toBe(false)
  await app.stop()
})
