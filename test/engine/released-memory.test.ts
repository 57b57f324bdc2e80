// When a run is over, its process keeps neither the run nor its events in memory.
import { expect, it } from 'vitest'
import { DeadLetterNews } from '../../src/app/dead-letter-news.ts'
import { Worker } from '../../src/app/worker.ts'
import { systemClock } from '../../src/clock.ts'
import { computeIdentity, keylessLaneId } from '../../src/model/identity.ts'
import { parseSettings } from '../../src/app/options.ts'
import { createFlow } from '../../src/flow/options.ts'
import { StoreClock } from '../../src/dispatch/store-clock.ts'
import { openStore } from '../../src/store/open.ts'

const RUNS = 20
const NO_BYTES = new Uint8Array()

it('the process lists its live runs, and none that is over', async () => {
  const store = await openStore('memory:')
  const storeClock = new StoreClock(systemClock, () => {})
  const registry = { foreign: [], epoch: 1, refresh: () => Promise.resolve() }
  const allEnded = Promise.withResolvers<void>()
  let [ended, mostLive] = [0, 0]
  // Handlers that return a promise are live together; others end before the next one starts.
  const run = async (): Promise<void> => {
    mostLive = Math.max(mostLive, engine.live.length)
  }
  const engine: Worker = new Worker({
    store,
    clock: systemClock,
    storeClock,
    flows: new Map([['f', createFlow('f', { on: '**', run })]]),
    emit: (name) => {
      if (name === 'run.done' && ++ended === RUNS) allEnded.resolve()
    },
    log: () => ({ debug() {}, info() {}, warn() {}, error() {} }),
    routesEpoch: () => 1,
    preparePublication: () => ({ events: [], routesEpoch: 0, onSettled: () => {} }),
    settings: parseSettings({ store: 'memory:' }),
    deadLetterNews: new DeadLetterNews([], registry, storeClock),
    onDead: () => {},
    onUnplaced: () => {},
  })
  const events = Array.from({ length: RUNS }, (_, n) => ({
    id: `e${n}`,
    identity: computeIdentity('s', '', `e${n}`),
    source: 's',
    type: 't',
    tenant: '',
    subject: '',
    attributes: '',
    time: 0,
    dedupeFor: 0,
    request: NO_BYTES,
    body: NO_BYTES,
    unrouted: [],
    placements: [
      {
        lane: keylessLaneId('f', `e${n}`),
        flow: 'f',
        key: `e${n}`,
        group: '',
        cancel: false,
        leading: false,
        quiet: 0,
        max: 0,
        maxEvents: 10,
        maxBytes: 1_000,
        jitter: 0,
      },
    ],
  }))
  await store.append({ routes: 1, events })
  engine.start()
  await allEnded.promise
  // The last event is emitted before its promise has ended.
  await new Promise((resolve) => setImmediate(resolve))
  expect(mostLive).toBeGreaterThan(1)
  expect(engine.live).toEqual([])
  expect(engine.isBusy('f')).toBe(false)
  await engine.stop(0)
})
