// Graphile Worker as the peer, set up for throughput as its own documentation recommends: a weak opponent proves nothing.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import type { Logger, WorkerUtils } from 'graphile-worker'
import { startServer, type Server } from '../../test/postgres/server.ts'
import type { Measurement, Settings, Side } from '../sides.ts'
import { CONCURRENCY, payload } from '../workload.ts'
import type { AppendWork, DrainWork } from '../workload.ts'

type GraphileWorker = typeof import('graphile-worker')

interface Peer {
  readonly library: GraphileWorker
  readonly silence: Logger
  readonly pool: Pool
  readonly localQueueSize: number
}

const TASK = 'settle'
const JOBS = 'graphile_worker._private_jobs'
// The least that its documentation recommends; more did not help (README).
const POOL_SIZE = 10
// Jobs that end in the same turn of the event loop are completed together.
const COMPLETE_BATCH_DELAY = 0
const FILL_BATCH = 1000

export async function openGraphile(folder: string, localQueueSize: number): Promise<Side> {
  // The library reads this when it is loaded: it then formats no line for the silenced logger after each job.
  process.env['NO_LOG_SUCCESS'] = '1'
  const library = await import('graphile-worker')
  const postgres = await startServer({ version: 18, folder })
  const pool = poolOf(postgres)
  const peer: Peer = { library, silence: new library.Logger(() => () => {}), pool, localQueueSize }
  const close = async (): Promise<void> => {
    await pool.end()
    await postgres.stop()
  }
  try {
    await withUtils(peer, (utils) => utils.migrate())
    return {
      name: 'graphile-worker',
      settings: await settingsOf(peer),
      append: (work) => append(peer, work),
      drain: (work) => drain(peer, work),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A pool of our own. The library's pool loses its error handlers at the end, and a connection that is not quite closed when
 * the server stops would then crash the process. Failed queries still reject.
 */
function poolOf(postgres: Server): Pool {
  const pool = new Pool({ connectionString: postgres.url, max: POOL_SIZE })
  pool.on('error', ignored)
  pool.on('connect', (client) => client.on('error', ignored))
  return pool
}

function ignored(): void {}

async function append(peer: Peer, work: AppendWork): Promise<Measurement> {
  await empty(peer)
  return withUtils(peer, async (utils) => {
    let appended = 0
    const started = performance.now()
    const ends = started + work.seconds * 1000
    const callUntilEnd = async (batches: AppendWork['callers'][number]): Promise<void> => {
      for (let turn = 0; performance.now() < ends; turn += 1) {
        const keys = batches[turn % batches.length] ?? []
        const runAt = new Date(Date.now() + work.debounceMillis)
        const first = appended
        appended += keys.length
        await utils.addJobs(
          keys.map((jobKey, index) => ({ identifier: TASK, payload: payload(first + index), jobKey, runAt })),
        )
      }
    }
    await Promise.all(work.callers.map(callUntilEnd))
    return { count: appended, millis: performance.now() - started }
  })
}

async function drain(peer: Peer, work: DrainWork): Promise<Measurement> {
  await empty(peer)
  await fill(peer, work.count)
  let handled = 0
  let started = 0
  const allHandled = Promise.withResolvers<void>()
  const settle = (): void => {
    if (handled === 0) started = performance.now()
    handled += 1
    if (handled === work.count) allHandled.resolve()
  }
  const runner = await peer.library.run({
    pgPool: peer.pool,
    preset: { worker: workerOptions(peer, work.concurrency) },
    taskList: { [TASK]: settle },
    crontab: '',
    noHandleSignals: true,
  })
  const stoppedEarly = runner.promise.then(() => {
    throw new Error(`graphile-worker stopped after ${handled} of ${work.count} jobs.`)
  })
  // This promise also settles when the runner stops below, and nothing awaits it by then.
  stoppedEarly.catch(() => {})
  await Promise.race([allHandled.promise, stoppedEarly])
  while (!(await isEmpty(peer))) await sleep(1)
  const millis = performance.now() - started
  await runner.stop()
  return { count: work.count, millis }
}

function workerOptions(peer: Peer, concurrency: number): GraphileConfig.WorkerOptions {
  return {
    logger: peer.silence,
    concurrentJobs: concurrency,
    localQueue: { size: peer.localQueueSize },
    completeJobBatchDelay: COMPLETE_BATCH_DELAY,
    failJobBatchDelay: COMPLETE_BATCH_DELAY,
  }
}

async function fill(peer: Peer, count: number): Promise<void> {
  await withUtils(peer, async (utils) => {
    for (let first = 0; first < count; first += FILL_BATCH) {
      const length = Math.min(FILL_BATCH, count - first)
      await utils.addJobs(Array.from({ length }, (_, index) => ({ identifier: TASK, payload: payload(first + index) })))
    }
  })
  // Autovacuum would have done this by now. The checkpoint must not happen during somebody's round.
  await peer.pool.query(`vacuum analyze ${JOBS}`)
  await peer.pool.query('checkpoint')
}

async function empty(peer: Peer): Promise<void> {
  await peer.pool.query(`truncate ${JOBS}`)
  await peer.pool.query('checkpoint')
}

async function isEmpty(peer: Peer): Promise<boolean> {
  const { rowCount } = await peer.pool.query(`select from ${JOBS} limit 1`)
  return rowCount === 0
}

async function withUtils<Result>(peer: Peer, use: (utils: WorkerUtils) => Promise<Result>): Promise<Result> {
  const utils = await peer.library.makeWorkerUtils({ pgPool: peer.pool, logger: peer.silence })
  try {
    return await use(utils)
  } finally {
    await utils.release()
  }
}

async function settingsOf(peer: Peer): Promise<Settings> {
  const names = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size']
  const { rows } = await peer.pool.query<{ readonly name: string; readonly setting: string }>(
    'select name, current_setting(name) as setting from pg_settings where name = any($1)',
    [names],
  )
  return {
    version: await graphileVersion(),
    concurrentJobs: CONCURRENCY,
    maxPoolSize: POOL_SIZE,
    'localQueue.size': peer.localQueueSize,
    completeJobBatchDelay: COMPLETE_BATCH_DELAY,
    ...Object.fromEntries(rows.map((row) => [`postgres.${row.name}`, row.setting])),
  }
}

async function graphileVersion(): Promise<string> {
  const manifest = new URL('../package.json', import.meta.resolve('graphile-worker'))
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { readonly version: string }
  return version
}
