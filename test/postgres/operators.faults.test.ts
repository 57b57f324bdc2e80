// An operator who purges and steers while eight workers use the same lanes waits for them, and is not rejected.
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { laneId, type LaneId } from '../../src/model/identity.ts'
import type { RunOutcome } from '../../src/model/settle.ts'
import type { LeasedRun, Settlement, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'

const HOT_KEYS = 5
const COLD_KEYS = 300
const ROUNDS = 6

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it('no purge and no steering fails while eight workers run', async () => {
    const schema = `operators_${process.pid}`
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openPostgresStore({ url, schema, connections: 6, acceptLoss: true })),
    )
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    const state = { isOver: false, events: 0 }
    const deadLetters: string[] = []

    /** Each event is in a lane with few events, in one with many, and in its own. */
    async function publisher(store: Store): Promise<void> {
      while (!state.isOver) {
        const events = Array.from({ length: 20 }, () => {
          const n = state.events++
          const keys = [`hot ${n % HOT_KEYS}`, `cold ${(n * 7) % COLD_KEYS}`, `own ${n}`]
          return createEventToStore(`${n}`, { keys, tenant: `t${n % 3}` }, systemClock.now())
        })
        await store.append({ routes: 1, events })
      }
    }

    async function worker(store: Store, process: string): Promise<void> {
      let held: readonly LeasedRun[] = []
      for (let request = 1; !state.isOver; request++) {
        const settle = held.map((run, n) => settled(run, outcomeOf(n)))
        deadLetters.push(...held.flatMap(({ runId: run }, n) => (outcomeOf(n).kind === 'dead' ? run : [])))
        const claim = [createClaimRequest({ maxRuns: 50, maxEvents: 3 })]
        held = (await store.settleAndClaim({ process, request, routes: 1, settle, claim, budget: 64_000_000 })).claimed
      }
    }

    async function operator(store: Store): Promise<void> {
      for (let round = 0; round < ROUNDS; round++) {
        const hot = lane(`hot ${round % HOT_KEYS}`)
        const cold = Array.from({ length: 20 }, (_, n) => lane(`cold ${(round * 20 + n) % COLD_KEYS}`))
        await store.purge({ what: { kind: 'lanes', ids: [hot] }, n: 200 })
        await store.steer({ what: 'lanes', ids: [hot, ...cold], act: { kind: 'drop' } })
        await store.steer({ what: 'lanes', ids: cold, act: { kind: 'run-now' } })
        await store.steer({ what: 'dead', ids: deadLetters.splice(0, 20), act: round % 2 === 0 ? 'retry' : 'drop' })
        await store.purge({ what: { kind: 'tenant', tenant: `t${round % 3}` }, n: 200 })
      }
    }

    const others = [
      ...stores.slice(0, 2).map((store) => publisher(store)),
      ...stores.flatMap((store, n) => [worker(store, `${n} a`), worker(store, `${n} b`)]),
    ]
    const operators = await Promise.allSettled([operator(stores[0] as Store), operator(stores[3] as Store)])
    state.isOver = true
    const ended = await Promise.allSettled(others)
    const failures = [...operators, ...ended].flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
    expect(failures).toEqual([])
  })
})

function lane(key: string): LaneId {
  return laneId('flow', key)
}

function outcomeOf(n: number): RunOutcome {
  if (n % 5 === 0) return { kind: 'dead', reason: 'broken', block: n % 10 === 0 }
  return n % 5 === 1 ? { kind: 'retry', after: 0 } : { kind: 'done' }
}

function settled({ lane: id, token }: LeasedRun, outcome: RunOutcome): Settlement {
  return { lane: id, token, outcome, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] }
}
