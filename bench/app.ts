// Sluice as its users have it: an app publishes events, and its flows run them. Sluice then does the work that a peer does in
// `addJobs` and in its worker: naming, routing, emitting, counting, and handlers with a signal and a timeout.
import { Sluice } from 'sluice'
import { payload, type AppendWork, type DrainWork, type Payload } from './workload.ts'
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
        mustBeStored(published)
      }
    }
    await Promise.all(work.callers.map(callUntilEnd))
    return { count: appended, millis: performance.now() - started }
  } finally {
    await app.stop()
  }
}

/** Events without a key: each has a lane of its own, like each job of the peer. The handler reads its event and does nothing. */
export function drainingApp(store: string, concurrency: number, called: (n: number) => void = () => {}): Sluice {
  const app = new Sluice({ store, log: false, maxConcurrentRuns: concurrency })
  app.flow(FLOW, {
    on: TYPE,
    // A peer parses the data of a job before it calls the handler; Sluice parses it when the handler reads it.
    run: ({ events }) => events.forEach(({ data }) => called((data as Payload).event)),
  })
  return app
}

export async function fillApp(app: Sluice, count: number): Promise<void> {
  for (let first = 0; first < count; first += FILL_BATCH) {
    const length = Math.min(FILL_BATCH, count - first)
    mustBeStored(
      await app.publish(Array.from({ length }, (_, index) => ({ type: TYPE, data: payload(first + index) }))),
    )
  }
}

function mustBeStored(published: readonly { readonly kind: string }[]): void {
  if (published.some(({ kind }) => kind !== 'stored')) throw new Error('An event was not stored.')
}

export async function drainByApp(store: string, work: DrainWork, calm: () => Promise<void>): Promise<Measurement> {
  let started = 0
  let settled = 0
  const all = Promise.withResolvers<void>()
  const app = drainingApp(store, work.concurrency, () => {
    if (started === 0) started = performance.now()
  })
  // Sluice emits this once the settlement is durable.
  app.on('run.done', () => {
    settled += 1
    if (settled === work.count) all.resolve()
  })
  for (const ending of ['run.retry', 'run.lost', 'run.dead'] as const)
    app.on(ending, () => all.reject(new Error(`There was a ${ending} among the runs.`)))
  await app.start()
  try {
    await app.admin.flows.pause(FLOW, { reason: 'It is being filled.', by: 'bench' })
    await fillApp(app, work.count)
    await calm()
    await app.admin.flows.resume(FLOW)
    await all.promise
    return { count: work.count, millis: performance.now() - started }
  } finally {
    await app.stop()
  }
}
