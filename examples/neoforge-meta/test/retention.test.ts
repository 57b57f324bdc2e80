// The cleanup of the design, in a month of virtual time: events after 7 days, delivered batches after 30. What waits stays.
import { expect, it, onTestFinished } from 'vitest'
import { openPlace } from '../../kit/postgres.ts'
import { Stage } from '../../kit/stage.ts'
import { neoforgeMeta } from '../example.ts'
import { subscribe, TRUE_TIMES } from '../scenarios/world.ts'

const DAY = 86_400_000

it('removes delivered events after 7 days and batches after 30, and nothing that waits', async () => {
  const place = await openPlace(process.env['DATABASE_URL'] ?? 'postgres')
  onTestFinished(() => place.close())
  const store = `${place.store}${place.store.includes('?') ? '&' : '?'}schema=retention_${process.pid}`
  // Nothing but the cleanup happens in this month.
  const example = { ...neoforgeMeta, outbox: false, env: { ...TRUE_TIMES, DISCOVERY_INTERVAL: '60d' } }
  const stage = await Stage.openVirtual(example, { store }, Date.UTC(2026, 10, 18, 12))
  onTestFinished(() => stage.close())
  await stage.play(async () => {
    const { clock } = stage
    const pass = async (days: number): Promise<void> => {
      if (!('set' in clock && typeof clock.set === 'function')) throw new Error('The clock is not virtual.')
      clock.set(clock.now() + days * DAY)
      // Under the virtual clock, the cleanup runs once an hour.
      await stage.sleep(3_600_000 + 60_000)
    }
    const publish = (...versions: readonly string[]): Promise<unknown> =>
      stage.app.publish(
        versions.map((version) => ({
          type: 'NEW_VERSION',
          data: { component: 'NEOFORGE', version, deprecated: null },
        })),
      )
    const stored = async (): Promise<number> => (await stage.app.admin.events.list({ source: 'app' })).items.length
    const subscriber = await subscribe(stage, 'good')
    const paused = await subscribe(stage, 'flaky')
    await publish('21.0.1', '21.0.2')
    await subscriber.has(2)
    await paused.has(2)
    await stage.idle({ flows: ['versions'] })
    await paused.change({ active: false })
    await publish('21.0.3')
    await subscriber.has(3)
    expect(await stored()).toBe(3)

    await pass(6)
    expect(await stored()).toBe(3)
    await pass(1)
    expect(await stored()).toBe(1)
    expect((await subscriber.deliveries()).map(({ status }) => status)).toEqual(['SUCCESS', 'SUCCESS'])
    await paused.change({ active: true })
    await paused.has(3)
    expect(paused.versions.at(-1)).toBe('21.0.3')

    await pass(23)
    expect(await stored()).toBe(0)
    expect(await subscriber.deliveries()).toEqual([])
  })
  expect(stage.checks.filter(({ held }) => !held)).toEqual([])
}, 120_000)
