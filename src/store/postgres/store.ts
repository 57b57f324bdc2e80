// The store for many processes: one PostgreSQL, one truth.
import type { Pool } from 'pg'
import { systemClock, type Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { StatsReply, Store } from '../contract/index.ts'
import { TableStore } from '../rules/store.ts'
import { connect, connectOnce, Connection, listener, script, sessionOf } from './connections.ts'
import { fault } from './faults.ts'
import { Hints } from './hints.ts'
import { Hygiene } from './hygiene.ts'
import { refuseSharedSessions } from './one-session.ts'
import { Onlookers } from './onlookers.ts'
import { migrate } from './schema.ts'
import { nameOf } from './tables.ts'
import { Transactions } from './transactions.ts'
import { text } from './values.ts'

export interface PostgresOptions {
  readonly url: string
  /** Where its tables are; two apps may share a database. */
  readonly schema?: string
  /** The most connections of this process. */
  readonly connections?: number
  /** Time for tests; otherwise it is the server's. */
  readonly clock?: Clock
  /** A server that may forget what it has said yes to is refused, unless this says that it may. */
  readonly acceptLoss?: boolean
}

type Prepared = Required<Pick<PostgresOptions, 'url' | 'schema' | 'acceptLoss'>> & { readonly pool: Pool }

const CONNECTIONS = 8

class PostgresStore extends TableStore {
  /** Where transactions of others publish. */
  readonly outbox: string
  readonly #hygiene: Hygiene

  constructor(parts: ConstructorParameters<typeof TableStore>[0], outbox: string, hygiene: Hygiene) {
    super(parts)
    this.outbox = outbox
    this.#hygiene = hygiene
  }

  override async stats(): Promise<StatsReply> {
    const [stats, hygiene] = await Promise.all([super.stats(), this.#hygiene.look()])
    return hygiene === undefined ? stats : { ...stats, hygiene }
  }
}

export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { url, schema = 'sluice', connections = CONNECTIONS, clock, acceptLoss = false } = options
  const pool = await connect({ url, schema, acceptLoss, size: connections })
  try {
    const name = await prepare({ url, schema, acceptLoss, pool })
    const hints = new Hints({ channel: `sluice/${schema}`, connect: () => listener(url), clock: systemClock })
    const onlookers = new Onlookers({ pool, hints, clock: systemClock })
    const commits = new Transactions({ pool, name, schema, clock, hints, onlookers })
    const time = clock ?? systemClock
    return new PostgresStore({ commits, clock: time }, schema, new Hygiene({ pool, schema, clock: time }))
  } catch (error) {
    await pool.end()
    throw fault(error)
  }
}

/** Answers the name of the store. */
async function prepare({ url, schema, acceptLoss, pool }: Prepared): Promise<string> {
  const client = await connectOnce(url)
  try {
    await script(client, sessionOf({ schema, acceptLoss }))
    const db = new Connection(client, false)
    if (!acceptLoss) await refuseLoss(db)
    await refuseSharedSessions(pool, db)
    await db.rows('begin')
    await migrate(db, schema, (sql) => script(client, sql))
    const name = await nameOf(db)
    await db.commit()
    return name
  } finally {
    await client.end()
  }
}

/** As the server has them, whatever this session has made of it: other writers on it may go by the same. */
const FORGETFUL = `select name from pg_settings where name in ('fsync', 'synchronous_commit') and reset_val = 'off'`

/** Such a server says yes before it would survive a crash. */
async function refuseLoss(db: Connection): Promise<void> {
  const off = (await db.rows(FORGETFUL)).map(([name]) => `${text(name)} = off`)
  if (off.length === 0) return
  const what = `The server has ${off.join(' and ')}: it acknowledges what a crash takes back.`
  throw new SluiceError('STORE_FORGETFUL', what)
}
