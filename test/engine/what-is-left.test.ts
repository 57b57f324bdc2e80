// When a run is over its process holds nothing of it any more: neither it nor what it brought.
import { expect, it } from 'vitest'
import { Engine } from '../../src/engine.ts'
import { systemClock } from '../../src/clock.ts'
import { identity, ownLaneId } from '../../src/model/identity.ts'
import { settingsOf } from '../../src/options.ts'
import { flow } from '../../src/schedule/flow.ts'
import { StoreTime } from '../../src/schedule/store-time.ts'
import { openStore } from '../../src/store/open.ts'

const RUNS = 20
const NO_BYTES = new Uint8Array()

it('knows its live runs, and none that is over', async () => {
  const store = await openStore('memory:')
  const allEnded = Promise.withResolvers<void>()
  let [ended, mostLive] = [0, 0]
  const engine: Engine = new Engine({
    store,
    clock: systemClock,
    time: new StoreTime(systemClock, () => {}),
    process: 'p',
    flows: [flow('f', { on: '**', run: () => void (mostLive = Math.max(mostLive, engine.live.length)) })],
    emit: (name) => {
      if (name === 'run.done' && ++ended === RUNS) allEnded.resolve()
    },
    log: () => ({ debug() {}, info() {}, warn() {}, error() {} }),
    routes: () => 1,
    toPublish: () => ({ events: [], routes: 0, tell: () => {} }),
    numbers: settingsOf({ store: 'memory:' }),
  })
  const events = Array.from({ length: RUNS }, (_, n) => ({
    id: `e${n}`,
    identity: identity('s', '', `e${n}`),
    source: 's',
    type: 't',
    tenant: '',
    subject: '',
    attributes: '',
    time: 0,
    dedupeFor: 0,
    request: NO_BYTES,
    body: NO_BYTES,
    marks: [],
    places: [
      {
        lane: ownLaneId('f', `e${n}`),
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
  // The last is told before its promise has ended.
  await new Promise((resolve) => setImmediate(resolve))
  expect(mostLive).toBeGreaterThan(1)
  expect(engine.live).toEqual([])
  expect(engine.isBusy('f')).toBe(false)
  await engine.stop(0)
})
