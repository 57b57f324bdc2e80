// The sides of the workers bench: what a worker process does, and how its jobs are added. The jobs do nothing, on PostgreSQL.
import type { Pool } from 'pg'
import { drainingApp, fillApp } from '../app.ts'
import { payload } from '../workload.ts'

export interface Workers {
  /** Adds this many due jobs to an empty store. */
  readonly fill: (url: string, count: number) => Promise<void>
  /** Runs in a process of its own until it is killed. */
  readonly work: (url: string, concurrency: number) => Promise<unknown>
  /** The table that has a row for each job that is not settled. */
  readonly waiting: string
  /** Empties the store. */
  readonly empty: string
}

export type WorkersName = 'sluice' | 'graphile-worker' | 'pg-boss'

const SCHEMA = 'workers'
const TASK = 'settle'
const FILL_BATCH = 1_000

export const workers: Readonly<Record<WorkersName, Workers>> = {
  sluice: {
    async fill(url, count) {
      const app = drainingApp(`${url}&schema=${SCHEMA}`, 1)
      await fillApp(app, count)
      await app.stop()
    },
    async work(url, concurrency) {
      await drainingApp(`${url}&schema=${SCHEMA}`, concurrency).start()
    },
    waiting: `select from ${SCHEMA}.lanes limit 1`,
    empty: `drop schema if exists ${SCHEMA} cascade`,
  },
  'graphile-worker': {
    async fill(url, count) {
      const { makeWorkerUtils } = await graphile()
      const utils = await makeWorkerUtils({ connectionString: url })
      await utils.migrate()
      for (let first = 0; first < count; first += FILL_BATCH) {
        await utils.addJobs(jobs(first, count).map((job) => ({ identifier: TASK, payload: job })))
      }
      await utils.release()
    },
    async work(url, concurrency) {
      const { run, Logger } = await graphile()
      await run({
        connectionString: url,
        preset: {
          worker: {
            logger: new Logger(() => () => {}),
            concurrentJobs: concurrency,
            maxPoolSize: 10,
            localQueue: { size: 500 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        taskList: { [TASK]: () => {} },
        crontab: '',
        noHandleSignals: true,
      })
    },
    waiting: 'select from graphile_worker._private_jobs limit 1',
    empty: 'drop schema if exists graphile_worker cascade',
  },
  'pg-boss': {
    async fill(url, count) {
      const boss = await pgBoss(url)
      await boss.createQueue(TASK)
      for (let first = 0; first < count; first += FILL_BATCH) {
        await boss.insert(
          TASK,
          jobs(first, count).map((data) => ({ data })),
        )
      }
      await boss.stop()
    },
    async work(url, concurrency) {
      const boss = await pgBoss(url)
      // pg-boss fetches and completes many jobs at a time, and fetches again at once if there are more.
      await boss.work(TASK, { batchSize: concurrency, burstWhenBatchFull: true }, async () => {})
    },
    waiting: `select from pgboss.job where name = '${TASK}' and state < 'completed' limit 1`,
    empty: 'drop schema if exists pgboss cascade',
  },
}

/** Autovacuum would have done this by then. The checkpoint must not happen during somebody's round. */
export async function calm(pool: Pool): Promise<void> {
  await pool.query('vacuum analyze')
  await pool.query('checkpoint')
}

function jobs(first: number, count: number): readonly { readonly event: number; readonly body: string }[] {
  return Array.from({ length: Math.min(FILL_BATCH, count - first) }, (_, index) => payload(first + index))
}

function graphile(): Promise<typeof import('graphile-worker')> {
  process.env['NO_LOG_SUCCESS'] = '1'
  return import('graphile-worker')
}

async function pgBoss(url: string): Promise<import('pg-boss').PgBoss> {
  const { PgBoss } = await import('pg-boss')
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false })
  await boss.start()
  return boss
}
