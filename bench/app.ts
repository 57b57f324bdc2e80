// Sluice as its users have it: events are published by an app, and run by its flows. What a peer does in `addJobs` and in its
// worker is then done here too: naming, routing, telling, counting, handlers with a signal and a timeout.
import { Sluice } from 'sluice'
import type { AppendWork, DrainWork } from './workload.ts'
import { payload } from './workload.ts'
import type { Measurement } from './sides.ts'

const FLOW = 'bench'
const TYPE = 'changed'
const FILL_BATCH = 500
const NEVER_FULL = { maxEvents: 1_000_000, maxBytes: 1e12 } as const

export async function appendByApp(store: string, work: AppendWork): Promise<Measurement> {
  const app = new Sluice({ store, log: false })
  const quiet = work.debounceMillis
  app.flow(FLOW, {
    on: TYPE,
    key: (event) => event.subject,
    window: { quiet, max: 10 * quiet, ...NEVER_FULL },
    run: () => {},
  })
  await app.start()
  try {
    let appended = 0
    const started = performance.now()
    const ends = started + work.seconds * 1000
    const callUntilEnd = async (batches: AppendWork['callers'][number]): Promise<void> => {
      for (let turn = 0; performance.now() < ends; turn += 1) {
        const keys = batches[turn % batches.length] ?? []
        const first = appended
        appended += keys.length
        const published = await app.publish(
          keys.map((subject, index) => ({ type: TYPE, subject, data: payload(first + index) })),
        )
        if (published.some(({ kind }) => kind !== 'stored')) throw new Error('An event was not stored.')
      }
    }
    await Promise.all(work.callers.map(callUntilEnd))
    return { count: appended, millis: performance.now() - started }
  } finally {
    await app.stop()
  }
}

/** Events without a key: each is a lane of its own, as each job of the peer is. */
export async function drainByApp(store: string, work: DrainWork, calm: () => Promise<void>): Promise<Measurement> {
  const app = new Sluice({ store, log: false, runsAtOnce: work.concurrency })
  let started = 0
  let settled = 0
  const all = Promise.withResolvers<void>()
  app.flow(FLOW, {
    on: TYPE,
    run: () => {
      if (started === 0) started = performance.now()
    },
  })
  // Told once the settlement is durable.
  app.events.on('run.done', () => {
    settled += 1
    if (settled === work.count) all.resolve()
  })
  await app.start()
  try {
    await app.flows.pause(FLOW, { reason: 'It is being filled.', by: 'bench' })
    for (let first = 0; first < work.count; first += FILL_BATCH) {
      const length = Math.min(FILL_BATCH, work.count - first)
      await app.publish(Array.from({ length }, (_, index) => ({ type: TYPE, data: payload(first + index) })))
    }
    await calm()
    await app.flows.resume(FLOW)
    await all.promise
    return { count: work.count, millis: performance.now() - started }
  } finally {
    await app.stop()
  }
}
