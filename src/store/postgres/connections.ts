// Opens the connections of one process: a pool with prepared statements and fixed plans, and a separate connection for hints.
import { createHash } from 'node:crypto'
import type { Writable } from 'node:stream'
import type { Client, ClientBase, ClientConfig, Pool } from 'pg'
import { SluiceError } from '../../errors.ts'
import type { Db } from './row-cache.ts'
import { quoteIdentifier } from './schema.ts'
import type { Row } from './values.ts'

export interface ConnectionOptions {
  readonly url: string
  readonly schema: string
  /** Whether a commit may be acknowledged before it would survive a crash. */
  readonly acceptLoss: boolean
  /** The maximum number of connections of this process. */
  readonly size: number
}

const INT8 = 20
const CONNECT_TIMEOUT = 10_000

/** A process that stops in the middle of a transaction must not block its lanes for others. */
const IDLE_TIMEOUT = 5_000
/** A server that has vanished returns nothing, not even an error. */
const STATEMENT_TIMEOUT = 30_000
/**
 * A vanished server does not close its connections either. After this much silence the operating system probes the connection,
 * at most ten times.
 */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 5_000 } as const

/**
 * The server chooses each plan once, and by index: after a table was emptied or has grown, the next claim must not scan all of
 * it. Memoizing lookups does not pay, because no lookup repeats.
 */
const SETTINGS = `set idle_in_transaction_session_timeout = ${IDLE_TIMEOUT}; set enable_seqscan = off; set enable_memoize = off; set plan_cache_mode = force_generic_plan; set jit = off;
  set default_transaction_isolation = 'read committed'; set client_min_messages = warning; set timezone = 'UTC'`

/**
 * Overrides `synchronous_commit = off`. The operator decides how many servers a commit waits for; only the choice to wait for
 * none is not accepted.
 */
const DURABLE = `select set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`

export async function connect({ url, size, ...session }: ConnectionOptions): Promise<Pool> {
  const pg = await loadDriver()
  const pool = new pg.Pool({
    ...createClientConfig(url, pg.types),
    max: size,
    idleTimeoutMillis: 0,
    query_timeout: STATEMENT_TIMEOUT,
  })
  pool.on('connect', (client) => {
    // Without this listener, a client that breaks while it is checked out, between two statements, would end the process.
    client.on('error', () => {})
    // A failure here occurs again with the first statement, whose caller handles it.
    client.query(buildSessionSql(session)).catch(() => {})
  })
  // The pool replaces a connection that breaks while it is idle.
  pool.on('error', () => {})
  return pool
}

/** `connectOnce` sets no statement timeout: a migration may take long, or wait for another process that migrates. */
export async function connectOnce(url: string): Promise<Client> {
  const pg = await loadDriver()
  const client = new pg.Client(createClientConfig(url, pg.types))
  client.on('error', () => {})
  await client.connect()
  return client
}

function createClientConfig(url: string, types: typeof import('pg').types): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    ...KEEP_ALIVE,
    pipeline: true,
    application_name: 'sluice',
    types: {
      getTypeParser: ((oid: number, format: 'text') =>
        oid === INT8 ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  }
}

/** `buildSessionSql` returns the settings of a session of the store. */
export function buildSessionSql({ schema, acceptLoss }: Pick<ConnectionOptions, 'schema' | 'acceptLoss'>): string {
  return `${SETTINGS}; ${acceptLoss ? '' : `${DURABLE}; `}set search_path = ${quoteIdentifier(schema)}`
}

/** `connectListener` opens the separate connection for hints between processes. */
export async function connectListener(url: string): Promise<Client> {
  const pg = await loadDriver()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    ...KEEP_ALIVE,
    application_name: 'sluice hints',
  })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** `destroyClient` closes the socket without the closing handshake, to which a vanished server would not respond. */
export function destroyClient(client: Client): void {
  getStream(client).destroy()
}

function getStream(client: ClientBase): Writable {
  return (client as unknown as { readonly connection: { readonly stream: Writable } }).connection.stream
}

/** `loadDriver` imports `pg`, an optional peer dependency: users of a PostgreSQL store install it. */
async function loadDriver(): Promise<Pick<typeof import('pg'), 'Client' | 'Pool' | 'types'>> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw new SluiceError('STORE_DRIVER_MISSING', 'The package pg is not installed.', error)
  }
}

/** The names of prepared statements, by their text. */
const statementNames = new Map<string, string>()

function getStatementName(sql: string): string {
  let name = statementNames.get(sql)
  if (name === undefined) statementNames.set(sql, (name = createHash('sha1').update(sql).digest('base64url')))
  return name
}

/**
 * `Connection` sends statements in a pipeline. Statements that do not wait for each other travel together, and the server
 * executes them in the order in which they were sent.
 */
export class Connection implements Db {
  readonly readOnly: boolean
  readonly #client: ClientBase
  #isCorked = false
  #isCommitted = false
  #failure: unknown

  constructor(client: ClientBase, readOnly: boolean) {
    this.#client = client
    this.readOnly = readOnly
  }

  async query(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    // The server would execute the statement outside the transaction, and no rollback could undo it.
    if (this.#isCommitted) throw new TypeError('A statement came after the commit.')
    this.#corkOnce()
    const { rows } = await this.#client
      .query<Row & unknown[]>({
        name: getStatementName(sql),
        text: sql,
        values: [...values],
        rowMode: 'array',
      })
      .catch((error: unknown) => {
        // Later statements fail because this one did, and their errors may arrive first. So every statement throws the first
        // failure.
        throw (this.#failure ??= error)
      })
    return rows
  }

  /** `commit` returns whether the transaction was committed: a commit after a failure is a rollback. */
  async commit(): Promise<boolean> {
    this.#corkOnce()
    this.#isCommitted = true
    const { command } = await this.#client.query({ text: 'commit', values: [] })
    return command === 'COMMIT'
  }

  /** `corkOnce` sends everything of one turn of the event loop to the socket as one piece. */
  #corkOnce(): void {
    if (this.#isCorked) return
    const stream = getStream(this.#client)
    this.#isCorked = true
    stream.cork()
    process.nextTick(() => {
      this.#isCorked = false
      stream.uncork()
    })
  }
}

/** `runScript` runs several statements from one text, e.g. a migration. */
export async function runScript(client: ClientBase, sql: string): Promise<void> {
  await client.query(sql)
}
