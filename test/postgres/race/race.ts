// Runs a race of several processes on one store and has their reports judged.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { openPostgresStore } from '../../../src/store/postgres/store.ts'
import { Judge, type RaceFigure } from './judge.ts'
import { PROCESSES, WRITERS_EACH, type RaceCall, type Worked, type Written } from './load.ts'

export interface RaceOptions {
  readonly url: string
  /** The number of events of each writer. */
  readonly batches: number
  readonly seed: number
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
const SCHEMA = 'race'

export async function race({ url, batches, seed }: RaceOptions): Promise<RaceFigure> {
  const database = `race_${process.pid}_${seed}`
  const own = withDatabase(url, database)
  await query(url, `create database ${database}`)
  try {
    const children = Array.from({ length: PROCESSES }, (_, n) =>
      begin({ url: own, schema: SCHEMA, process: n, batches, seed }),
    )
    try {
      const { written, worked } = await raced(children)
      const { lanes, events } = await leftIn(own)
      return { ...new Judge(written, worked, lanes, events).figure(), deadlocks: await deadlocksOf(url, database) }
    } finally {
      for (const child of children) child.kill('SIGKILL')
    }
  } finally {
    await query(url, `drop database ${database} with (force)`)
  }
}

function begin(call: RaceCall): ChildProcess {
  return fork(CHILD, [JSON.stringify(call)], {
    execArgv: ['--no-warnings'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

/** All processes start when all are ready, and hear that there is no more only after all have written. */
async function raced(
  children: readonly ChildProcess[],
): Promise<{ readonly written: readonly Written[]; readonly worked: readonly Worked[] }> {
  const heard: (Written | Worked)[] = []
  const allWritten = Promise.withResolvers<void>()
  const ends = children.map(async (child) => {
    // The process has sent its whole report.
    const [[code, signal]] = (await Promise.all([once(child, 'exit'), once(child, 'disconnect')])) as unknown as [
      [number | null, string | null],
    ]
    if (code !== 0) throw new Error(`A process of the race ended with ${code ?? signal}.`)
  })
  const ended = Promise.all(ends)
  const ready = Promise.all(children.map(async (child) => once(child, 'message')))
  await Promise.race([ready, ended])
  for (const child of children) {
    child.on('message', (said: Written | Worked) => {
      heard.push(said)
      if (heard.filter(({ kind }) => kind === 'written').length === PROCESSES * WRITERS_EACH) allWritten.resolve()
    })
    child.send('begin')
  }
  await Promise.race([allWritten.promise, ended])
  for (const child of children) if (child.connected) child.send('no more')
  await ended
  return {
    written: heard.filter((one) => one.kind === 'written'),
    worked: heard.filter((one) => one.kind === 'worked'),
  }
}

async function leftIn(url: string): Promise<{ readonly lanes: readonly string[]; readonly events: readonly string[] }> {
  const store = await openPostgresStore({ url, schema: SCHEMA, connections: 1, acceptLoss: true })
  const { items } = await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 100 })
  await store.close()
  const events = await query(url, `select subject from ${SCHEMA}.events`)
  return {
    lanes: items.map((lane) => `${lane.key}: ${lane.waiting} wait`),
    events: events.map((row) => String(row['subject'])),
  }
}

/** Connections report their statistics when they end, at the latest, and all have ended. */
async function deadlocksOf(url: string, database: string): Promise<number> {
  for (;;) {
    const [row] = await query(
      url,
      `select deadlocks::int as n, (select count(*)::int from pg_stat_activity where datname = '${database}') as open
       from pg_stat_database where datname = '${database}'`,
    )
    if (row?.['open'] === 0) return Number(row['n'])
  }
}

async function query(url: string, sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

function withDatabase(url: string, database: string): string {
  return url.replace(/\/[^/?]*(\?|$)/, `/${database}$1`)
}
