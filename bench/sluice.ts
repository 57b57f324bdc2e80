// Sluice as it is built and published, through an app or through the store contract alone. Nothing here depends on the store.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { systemClock, type Clock, type Millis } from '../src/clock.ts'
import { newEventId } from '../src/model/event.ts'
import { computeIdentity, keylessLaneId, laneId, type LaneId } from '../src/model/identity.ts'
import { openStore } from '../src/store/open.ts'
import type { EventToStore, LeasedRun, Placement, Settlement, Store } from '../src/store/contract/index.ts'
import { startServer } from '../test/postgres/server.ts'
import { appendByApp, drainByApp } from './app.ts'
import type { DueOrder, LaneSide, Measurement, Settings, Side, SubjectOptions } from './sides.ts'
import { payload, randomFrom, type AppendWork, type DrainWork } from './workload.ts'

const FLOW = 'bench'
const NO_BYTES = new Uint8Array()
const DAY = 86_400_000
const FILL_BATCH = 200
const LEASE = 30_000

export async function openSide(folder: string, { store, through }: SubjectOptions): Promise<Side> {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const { fresh, calm, settings, close } = store === 'sqlite' ? sqlite(folder) : await postgres(folder)
  return {
    name: through === 'app' ? 'sluice' : 'sluice, store alone',
    settings: { version, through, ...settings },
    append: async (work) => (through === 'app' ? appendByApp(fresh(), work) : append(await openStore(fresh()), work)),
    drain: async (work) =>
      through === 'app' ? drainByApp(fresh(), work, calm) : drain(await openStore(fresh()), work, calm),
    close,
  }
}

interface Stores {
  /** The address of an empty store. */
  readonly fresh: () => string
  /** Does the maintenance that a server would have done before work comes; the peer gets the same. */
  readonly calm: () => Promise<void>
  readonly settings: Settings
  readonly close: () => Promise<void>
}

function sqlite(folder: string): Stores {
  let opened = 0
  return {
    fresh: () => `sqlite:${join(folder, `${++opened}.db`)}`,
    calm: async () => {},
    settings: { sqlite: process.versions['sqlite'] ?? '', journal: 'wal', synchronous: 'full' },
    close: async () => {},
  }
}

/** A server of its own beside the peer's, with the default settings of PostgreSQL. */
async function postgres(folder: string): Promise<Stores> {
  const server = await startServer({ version: 18, folder: `${folder}-postgres` })
  const pool = new Pool({ connectionString: server.url, max: 1 })
  let opened = 0
  return {
    fresh: () => `${server.url}&schema=bench${++opened}`,
    calm: async () => {
      await pool.query(`vacuum analyze bench${opened}.lanes, bench${opened}.events`)
      await pool.query('checkpoint')
    },
    settings: { postgres: server.version },
    close: async () => {
      await pool.end()
      await server.stop()
    },
  }
}

interface Window {
  readonly quiet: Millis
  readonly max: Millis
}

function placed(lane: LaneId, key: string, { quiet, max }: Window): Placement {
  return {
    lane,
    flow: FLOW,
    key,
    group: '',
    cancel: false,
    quiet,
    max,
    maxEvents: 1000,
    maxBytes: 4_194_304,
    jitter: 0,
    leading: false,
  }
}

function event(id: string, n: number, place: Placement): EventToStore {
  return {
    id,
    identity: computeIdentity(FLOW, '', id),
    dedupeFor: 7 * DAY,
    source: FLOW,
    type: 'changed',
    time: systemClock.now(),
    tenant: '',
    subject: '',
    attributes: '',
    body: Buffer.from(JSON.stringify(payload(n))),
    request: NO_BYTES,
    placements: [place],
    unrouted: [],
  }
}

async function append(store: Store, work: AppendWork): Promise<Measurement> {
  let appended = 0
  const started = performance.now()
  const ends = started + work.seconds * 1000
  const window = { quiet: work.debounceMillis, max: 10 * work.debounceMillis }
  const callUntilEnd = async (batches: AppendWork['callers'][number]): Promise<void> => {
    for (let turn = 0; performance.now() < ends; turn += 1) {
      const keys = batches[turn % batches.length] ?? []
      const first = appended
      appended += keys.length
      const now = systemClock.now()
      const events = keys.map((key, index) =>
        event(newEventId(now), first + index, placed(laneId(FLOW, key), key, window)),
      )
      const { results } = await store.append({ routes: 1, events })
      if (results.some((result) => result.kind !== 'stored')) throw new Error('An event was not stored.')
    }
  }
  await Promise.all(work.callers.map(callUntilEnd))
  const millis = performance.now() - started
  await store.close()
  return { count: appended, millis }
}

/** Events without a key: each has a lane of its own, like each job of the peer. */
async function fillStore(store: Store, count: number, quiet: (n: number) => Millis): Promise<void> {
  for (let first = 0; first < count; first += FILL_BATCH) {
    const length = Math.min(FILL_BATCH, count - first)
    const now = systemClock.now()
    const events = Array.from({ length }, (_, index) => {
      const id = newEventId(now)
      const due = quiet(first + index)
      return event(id, first + index, placed(keylessLaneId(FLOW, id), id, { quiet: due, max: due }))
    })
    await store.append({ routes: 1, events })
  }
}

function claim(slots: number): Parameters<Store['settleAndClaim']>[0]['claim'][number] {
  const caps = { maxEvents: 1000, maxBytes: 4_194_304, lease: LEASE, take: 'all' } as const
  const failing = Math.max(1, Math.floor(slots / 4))
  return {
    ...caps,
    flow: FLOW,
    maxRuns: slots,
    maxFailing: failing,
    maxSuspects: 1,
    maxPerGroup: undefined,
    blockOnCrash: false,
  }
}

/** Does nothing, like the handler of the peer. */
async function handler(_lease: LeasedRun): Promise<void> {}

async function drain(store: Store, work: DrainWork, calm: Stores['calm']): Promise<Measurement> {
  await fillStore(store, work.count, () => 0)
  await calm()
  const started = performance.now()
  let settled = 0
  await drainStore(store, {
    concurrency: work.concurrency,
    process: 'bench',
    isOver: (more) => (settled += more) >= work.count,
  })
  const millis = performance.now() - started
  await store.close()
  return { count: work.count, millis }
}

interface Draining {
  readonly concurrency: number
  readonly process: string
  /** Called with the number of newly settled runs. */
  readonly isOver: (more: number) => boolean
}

/** Settles and claims in turn, as the engine does. */
async function drainStore(store: Store, { concurrency, process, isOver }: Draining): Promise<void> {
  let settle: readonly Settlement[] = []
  for (let request = 1; ; request++) {
    const reply = await store.settleAndClaim({
      process,
      request,
      routes: 1,
      settle,
      claim: [claim(concurrency)],
      budget: 1e9,
    })
    if (reply.settled.some((answer) => answer !== 'ok')) throw new Error('A run was lost.')
    if (isOver(settle.length)) return
    if (reply.claimed.length === 0) await sleep(1)
    settle = await Promise.all(
      reply.claimed.map(async (lease): Promise<Settlement> => {
        await handler(lease)
        const { lane, token } = lease
        return {
          lane,
          token,
          outcome: { kind: 'done' },
          attempt: undefined,
          publish: [],
          whileRunning: 'window',
          keep: 0,
        }
      }),
    )
  }
}

export async function openLanes(folder: string): Promise<LaneSide> {
  // Lanes become due when the clock is moved, however long it takes to fill them.
  let moved = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + moved }
  const store = await openStore(`sqlite:${join(folder, 'lanes.db')}`, { clock })
  let request = 0
  return {
    async fill(count: number, due: DueOrder) {
      const random = randomFrom(count)
      const latest = 10 * DAY
      await fillStore(store, count, (n) => (due === 'arrival' ? DAY + n : DAY + Math.floor(random() * latest)))
      moved = 30 * DAY
    },
    async claim(limit) {
      const call = { process: 'bench', request: ++request, routes: 1, settle: [], claim: [claim(limit)], budget: 1e9 }
      const { claimed } = await store.settleAndClaim(call)
      return claimed.length
    },
    close: () => store.close(),
  }
}
