// Runs a race of several processes on one store and has their reports judged.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Store } from '../../../src/store/contract/index.ts'
import { openStore } from '../../../src/store/open.ts'
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

export async function race({ url, batches, seed }: RaceOptions): Promise<RaceFigure & { readonly deadlocks: number }> {
  const database = `race_${process.pid}_${seed}`
  const own = withDatabase(url, database)
  await query(url, `create database ${database}`)
  try {
    const figure = await raceOn(`${own}${own.includes('?') ? '&' : '?'}schema=${SCHEMA}`, { batches, seed })
    return { ...figure, deadlocks: await deadlocksOf(url, database) }
  } finally {
    await query(url, `drop database ${database} with (force)`)
  }
}

/** `raceOn` runs the race on the store at an address. */
export async function raceOn(address: string, { batches, seed }: Omit<RaceOptions, 'url'>): Promise<RaceFigure> {
  const children = Array.from({ length: PROCESSES }, (_, n) => begin({ address, process: n, batches, seed }))
  try {
    const { written, worked } = await raced(children)
    const { lanes, events } = await leftIn(address)
    return new Judge(written, worked, lanes, events).figure()
  } finally {
    for (const child of children) child.kill('SIGKILL')
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

async function leftIn(
  address: string,
): Promise<{ readonly lanes: readonly string[]; readonly events: readonly string[] }> {
  const store = await openStore(address, { connections: 1, acceptLoss: true })
  try {
    const { items } = await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 100 })
    return { lanes: items.map((lane) => `${lane.key}: ${lane.waiting} wait`), events: await listSubjects(store) }
  } finally {
    await store.close()
  }
}

async function listSubjects(store: Store): Promise<readonly string[]> {
  const subjects: string[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: Awaited<ReturnType<typeof store.find<'events'>>> = await store.find({
      kind: 'events',
      filter: {},
      cursor,
      n: 1_000,
    })
    for (const event of page.items) subjects.push(event.subject)
    cursor = page.next
  }
  return subjects
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
