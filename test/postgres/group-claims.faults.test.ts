// L5g over processes: with any concurrent claims, a group never has more live runs than its maximum.
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { LeasedRun, Settlement, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'

const GROUPS = ['a', 'b', 'c', '']
const BOUND = 2
const ROUNDS = 100

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it('four processes that claim at the same moment never exceed the bound of a group', async () => {
    const schema = `group_faults_${process.pid}`
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openPostgresStore({ url, schema, connections: 3, acceptLoss: true })),
    )
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    let request = 0
    const turns = async (
      claims: boolean,
      held: readonly (readonly LeasedRun[])[],
    ): Promise<readonly (readonly LeasedRun[])[]> => {
      request++
      const turned = stores.map((store, n) => {
        const settle = (held[n] ?? []).map(done)
        // Each process has two flows, so it names the groups in its own order.
        const flows = n % 2 === 0 ? ['one', 'two'] : ['two', 'one']
        const claim = claims ? flows.map((flow) => createClaimRequest({ flow, maxRuns: 5, maxPerGroup: BOUND })) : []
        return store.settleAndClaim({ process: `p${n}`, request, routes: 1, settle, claim, budget: 64_000_000 })
      })
      return (await Promise.all(turned)).map(({ claimed }) => claimed)
    }
    const above: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const events = ['one', 'two'].flatMap((flow) =>
        GROUPS.flatMap((group) =>
          Array.from({ length: 5 }, (_, n) =>
            createEventToStore('', { flow, key: `${round} ${group} ${n}`, group }, systemClock.now()),
          ),
        ),
      )
      await (stores[round % 4] as Store).append({ routes: 1, events })
      const held = await turns(true, [])
      const live = Map.groupBy(held.flat(), ({ flow, group }) => `${flow} ${group}`)
      for (const [name, runs] of live) if (runs.length > BOUND) above.push(`${name}: ${runs.length} in round ${round}`)
      expect(live.size).toBe(2 * GROUPS.length)
      await turns(false, held)
    }
    expect(above).toEqual([])
  })
})

function done({ lane, token }: LeasedRun): Settlement {
  const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  return { lane, token, outcome: { kind: 'done' }, ...end }
}
