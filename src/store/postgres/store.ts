// `openPostgresStore` opens the store on PostgreSQL, which many processes share.
import type { Pool } from 'pg'
import { systemClock, type Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { StatsReply, Store } from '../contract/index.ts'
import { TableStore } from '../core/store.ts'
import { connect, connectOnce, Connection, connectListener, runScript, buildSessionSql } from './connections.ts'
import { toSluiceError } from './errors.ts'
import { Notifications } from './notifications.ts'
import { VacuumStatsReader } from './vacuum-stats.ts'
import { assertDedicatedSession } from './session-check.ts'
import { ActivityFeed } from './activity-feed.ts'
import type { DirectPlan } from './plain-calls.ts'
import { migrate } from './schema.ts'
import { readStoreName } from './tables.ts'
import { Transactions } from './transactions.ts'
import { text } from './values.ts'

export interface PostgresOptions {
  readonly url: string
  /** The schema of the tables. Two apps may share a database, each with its own schema. */
  readonly schema?: string
  /** The maximum number of connections of this process. */
  readonly connections?: number
  /** A clock for tests. The default is the server's clock. */
  readonly clock?: Clock
  /** Accepts a server that may lose acknowledged commits. The default is to reject such a server. */
  readonly acceptLoss?: boolean
}

type PrepareOptions = Required<Pick<PostgresOptions, 'url' | 'schema' | 'acceptLoss'>> & { readonly pool: Pool }

const DEFAULT_SCHEMA = 'sluice'
const DEFAULT_CONNECTIONS = 8

class PostgresStore extends TableStore {
  /** The schema in which other programs publish inside their own transactions. */
  readonly outbox: string
  readonly #vacuumStats: VacuumStatsReader

  constructor(deps: ConstructorParameters<typeof TableStore>[0], outbox: string, vacuumStats: VacuumStatsReader) {
    super(deps)
    this.outbox = outbox
    this.#vacuumStats = vacuumStats
  }

  override async stats(): Promise<StatsReply> {
    const [stats, vacuum] = await Promise.all([super.stats(), this.#vacuumStats.read()])
    return vacuum === undefined ? stats : { ...stats, vacuum }
  }
}

export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  return createStore(await connectStore(options), options)
}

/** `StoreConnections` are the connections of a store, and the name of its schema's contents. */
export interface StoreConnections {
  readonly pool: Pool
  readonly name: string
}

/** `connectStore` connects to the server and brings the schema up to date. */
export async function connectStore(options: Omit<PostgresOptions, 'clock'>): Promise<StoreConnections> {
  const { url, schema = DEFAULT_SCHEMA, connections = DEFAULT_CONNECTIONS, acceptLoss = false } = options
  const pool = await connect({ url, schema, acceptLoss, size: connections })
  try {
    return { pool, name: await prepareSchema({ url, schema, acceptLoss, pool }) }
  } catch (error) {
    await pool.end()
    throw toSluiceError(error)
  }
}

/**
 * `createStore` returns a store over these connections. It shares no cache with another store over them. `planDirect` is for
 * tests only.
 */
export function createStore(
  { pool, name }: StoreConnections,
  options: PostgresOptions,
  planDirect?: () => DirectPlan,
): Store {
  const { url, schema = DEFAULT_SCHEMA, clock } = options
  const notifications = new Notifications({
    channel: `sluice/${schema}`,
    connect: () => connectListener(url),
    clock: systemClock,
  })
  const activityFeed = new ActivityFeed({ pool, hints: notifications, clock: systemClock })
  const commits = new Transactions({ pool, name, schema, clock, notifications, activityFeed, planDirect })
  const time = clock ?? systemClock
  return new PostgresStore({ commits, clock: time }, schema, new VacuumStatsReader({ pool, schema, clock: time }))
}

/** `prepareSchema` checks the server, migrates the schema and returns the name of the store. */
async function prepareSchema({ url, schema, acceptLoss, pool }: PrepareOptions): Promise<string> {
  const client = await connectOnce(url)
  try {
    await runScript(client, buildSessionSql({ schema, acceptLoss }))
    const db = new Connection(client, false)
    await assertDedicatedSession(pool, client)
    if (!acceptLoss) await assertDurableServer(db)
    await db.query('begin')
    await migrate(db, schema, (sql) => runScript(client, sql))
    const name = await readStoreName(db)
    await db.commit()
    return name
  } finally {
    await client.end()
  }
}

/** The server's defaults, not the values of this session: other writers of the schema may use the defaults. */
const UNSAFE_SETTINGS = `select name from pg_settings where name in ('fsync', 'synchronous_commit') and reset_val = 'off'`

/** `assertDurableServer` rejects a server that acknowledges a commit before the commit would survive a crash. */
async function assertDurableServer(db: Connection): Promise<void> {
  const off = (await db.query(UNSAFE_SETTINGS)).map(([name]) => `${text(name)} = off`)
  if (off.length === 0) return
  const what = `The server has ${off.join(' and ')}: it acknowledges what a crash takes back.`
  throw new SluiceError('STORE_NOT_DURABLE', what)
}
