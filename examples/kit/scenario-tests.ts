// `testScenarios` makes a test of each scenario on the virtual clock, on each store.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Millis } from 'sluice'
import type { Example } from './example.ts'
import { openPlace, type StorePlace } from './postgres.ts'
import { Stage } from './stage.ts'

const STORES = { memory: 'memory:', sqlite: 'sqlite::memory:', postgres: 'postgres' } as const

export interface ScenarioTestOptions {
  /** Default: all. The long scenarios play on PostgreSQL in `scenarios.faults.test.ts`, because they take minutes there. */
  readonly stores?: readonly (keyof typeof STORES)[]
  /** The time at the start of each scenario. */
  readonly now?: Millis
}

/** Call it at the top of a test file. PostgreSQL is that of DATABASE_URL, or an embedded one. */
export function testScenarios<World>(example: Example<World>, options: ScenarioTestOptions = {}): void {
  const chosen = process.env['STORES']?.split(',')
  const all = options.stores ?? (['memory', 'sqlite', 'postgres'] as const)
  describe.each(all.filter((one) => chosen === undefined || chosen.includes(one)))('on %s', (name) => {
    let place: StorePlace
    let made = 0
    beforeAll(async () => {
      const asked = name === 'postgres' ? (process.env['DATABASE_URL'] ?? 'postgres') : STORES[name]
      place = await openPlace(asked, { isDurable: false })
    })
    afterAll(() => place.close())

    it.each(Object.keys(example.scenarios))('%s', async (title) => {
      // Each scenario has a store of its own.
      const schema = `${place.store.includes('?') ? '&' : '?'}schema=scenario_${process.pid}_${made++}`
      const store = name === 'postgres' ? place.store + schema : place.store
      const told: string[] = []
      const tell = (who: string, what: string): void => void told.push(`${who} ${what}`)
      const stage = await Stage.openVirtual(example, { store, tell }, options.now)
      try {
        const scenario = example.scenarios[title]
        if (scenario !== undefined) await stage.play(scenario)
        expect(
          stage.checks.filter(({ held }) => !held),
          told.join('\n'),
        ).toEqual([])
        expect(stage.checks).not.toEqual([])
      } finally {
        await stage.close()
      }
    })
  })
}
