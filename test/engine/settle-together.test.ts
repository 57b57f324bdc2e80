// Runs that end within a few moments are settled together: a call for one of them would delay all others.
import { expect, test } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import type { SettleAndClaimCall } from '../../src/store/contract/index.ts'

const RUNS = 20

async function eventLoopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

interface Scene {
  /** The number of ended runs in each call. */
  readonly settled: readonly number[]
  readonly end: (from: number, to: number) => void
  readonly done: Promise<void>
  readonly app: Sluice
}

async function scene(runs = RUNS): Promise<Scene> {
  const settled: number[] = []
  const bare = await openStore('memory:')
  const store: Store = new Proxy(bare, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (name !== 'settleAndClaim') return member.bind(target) as unknown
      return (call: SettleAndClaimCall) => {
        if (call.settle.length > 0) settled.push(call.settle.length)
        return target.settleAndClaim(call)
      }
    },
  })
  const app = new Sluice({ store, log: false })
  const gates: PromiseWithResolvers<void>[] = []
  const began = Promise.withResolvers<void>()
  const done = Promise.withResolvers<void>()
  app.flow('wait', {
    on: 'ping',
    run: () => {
      const gate = Promise.withResolvers<void>()
      if (gates.push(gate) === runs) began.resolve()
      return gate.promise
    },
  })
  let ended = 0
  app.on('run.done', () => ++ended === runs && done.resolve())
  await app.start()
  await app.publish(Array.from({ length: runs }, () => ({ type: 'ping' })))
  await began.promise
  const end = (from: number, to: number): void => gates.slice(from, to).forEach(({ resolve }) => resolve())
  return { settled, end, done: done.promise, app }
}

test('a few ended runs wait for more that end in the next turns of the event loop', async () => {
  const { settled, end, done, app } = await scene()
  end(0, 1)
  await eventLoopTurns(1)
  end(1, RUNS)
  await done
  expect(settled).toEqual([RUNS])
  await app.stop()
})

test('they wait only briefly, and when most runs have ended, they do not wait at all', async () => {
  const { settled, end, done, app } = await scene()
  end(0, 1)
  await eventLoopTurns(8)
  expect(settled).toEqual([1])
  end(1, RUNS / 2)
  await eventLoopTurns(1)
  end(RUNS / 2, RUNS)
  await done
  expect(settled).toEqual([1, RUNS / 2 - 1, RUNS / 2])
  await app.stop()
})
