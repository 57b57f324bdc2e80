// A maintenance task that is asked to run while it runs has to run again: it may have read before what it should find.
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { MaintenanceScheduler } from '../../src/maintain/maintenance.ts'
import { VirtualClock } from '../../src/testing/index.ts'

test('a task that is requested while it runs runs once more, at once', async () => {
  const clock = new VirtualClock(0)
  const rounds: PromiseWithResolvers<number>[] = []
  const run = (): Promise<number> => {
    rounds.push(Promise.withResolvers<number>())
    return rounds.at(-1)?.promise ?? Promise.reject(new Error('There is no round.'))
  }
  const scheduler = new MaintenanceScheduler(clock, [{ name: 'placing', run }], () => {})
  scheduler.start()
  scheduler.runSoon('placing')
  scheduler.runSoon('placing')
  expect(rounds).toHaveLength(1)
  rounds[0]?.resolve(3_600_000)
  await setImmediate()
  clock.advance(1)
  expect(rounds).toHaveLength(2)
  rounds[1]?.resolve(3_600_000)
  await setImmediate()
  clock.advance(1_000)
  expect(rounds).toHaveLength(2)
  scheduler.runSoon('placing')
  expect(rounds).toHaveLength(3)
  rounds[2]?.resolve(3_600_000)
  await scheduler.stop(1_000)
})
