// The connections of one process to the server: one pool, its statements prepared, its plans held.
import { createHash } from 'node:crypto'
import type { Writable } from 'node:stream'
import type { Client, ClientBase, ClientConfig, Pool } from 'pg'
import { SluiceError } from '../../errors.ts'
import type { Db } from './part.ts'
import { quoted } from './schema.ts'
import type { Row } from './values.ts'

export interface ConnectionOptions {
  readonly url: string
  readonly schema: string
  /** Whether a commit may be acknowledged before it would survive a crash. */
  readonly acceptLoss: boolean
  /** The most connections of this process. */
  readonly size: number
}

const INT8 = 20
const CONNECT_WITHIN = 10_000

/** A process that stands still in the middle of a transaction must not keep others from its lanes. */
const LONGEST_PAUSE = 5_000
/** A server that has vanished answers nothing, not even no. */
const LONGEST_STATEMENT = 30_000
/** Nor does it say goodbye: where nothing was heard for so long, the system asks whether it is there, ten times at most. */
const ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 5_000 } as const

/**
 * Plans are chosen once and by the index: a table that was just emptied, or has just grown, must not make the next claim
 * a walk through all of it. Nor does it pay to remember what was looked up, for nothing is looked up twice.
 */
const SETTINGS = `set idle_in_transaction_session_timeout = ${LONGEST_PAUSE}; set enable_seqscan = off; set enable_memoize = off; set plan_cache_mode = force_generic_plan; set jit = off;
  set default_transaction_isolation = 'read committed'; set client_min_messages = warning; set timezone = 'UTC'`

/**
 * Whatever it is set to later. How many servers a commit waits for is the operator's to say: only that it waits for none is not
 * taken over.
 */
const DURABLE = `select set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`

export async function connect({ url, size, ...session }: ConnectionOptions): Promise<Pool> {
  const pg = await driver()
  const pool = new pg.Pool({
    ...configOf(url, pg.types),
    max: size,
    idleTimeoutMillis: 0,
    query_timeout: LONGEST_STATEMENT,
  })
  pool.on('connect', (client) => {
    // One that breaks while it is taken, between two statements, has nobody else who listens: the process would end.
    client.on('error', () => {})
    // What fails here fails again with the first statement, where somebody waits for it.
    client.query(sessionOf(session)).catch(() => {})
  })
  // A connection that breaks while nobody uses it is replaced by the next that is wanted.
  pool.on('error', () => {})
  return pool
}

/** Waits for as long as it takes: a migration may have much to do, or to wait for another process that does it. */
export async function connectOnce(url: string): Promise<Client> {
  const pg = await driver()
  const client = new pg.Client(configOf(url, pg.types))
  client.on('error', () => {})
  await client.connect()
  return client
}

function configOf(url: string, types: typeof import('pg').types): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN,
    ...ALIVE,
    pipeline: true,
    application_name: 'sluice',
    types: {
      getTypeParser: ((oid: number, format: 'text') =>
        oid === INT8 ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  }
}

/** What makes a session one of the store. */
export function sessionOf({ schema, acceptLoss }: Pick<ConnectionOptions, 'schema' | 'acceptLoss'>): string {
  return `${SETTINGS}; ${acceptLoss ? '' : `${DURABLE}; `}set search_path = ${quoted(schema)}`
}

/** A connection of its own, for what is told between processes. */
export async function listener(url: string): Promise<Client> {
  const pg = await driver()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN,
    ...ALIVE,
    application_name: 'sluice hints',
  })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Without a goodbye, to which a server that has vanished gives no answer. */
export function cut(client: Client): void {
  streamOf(client).destroy()
}

function streamOf(client: ClientBase): Writable {
  return (client as unknown as { readonly connection: { readonly stream: Writable } }).connection.stream
}

/** An optional peer: whoever names a PostgreSQL store brings it. */
async function driver(): Promise<Pick<typeof import('pg'), 'Client' | 'Pool' | 'types'>> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw new SluiceError('STORE_DRIVER_MISSING', 'The package pg is not installed.', error)
  }
}

/** The names of prepared statements, by their text. */
const names = new Map<string, string>()

function nameOf(sql: string): string {
  let name = names.get(sql)
  if (name === undefined) names.set(sql, (name = createHash('sha1').update(sql).digest('base64url')))
  return name
}

/** Statements that are sent without waiting for each other travel together, and are done in the order in which they were sent. */
export class Connection implements Db {
  readonly readOnly: boolean
  readonly #client: ClientBase
  #isCorked = false
  #isOver = false
  #failure: unknown

  constructor(client: ClientBase, readOnly: boolean) {
    this.#client = client
    this.readOnly = readOnly
  }

  async rows(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    // It would be done, and could not be undone.
    if (this.#isOver) throw new TypeError('A statement came after the commit.')
    this.#gather()
    const { rows } = await this.#client
      .query<Row & unknown[]>({
        name: nameOf(sql),
        text: sql,
        values: [...values],
        rowMode: 'array',
      })
      .catch((error: unknown) => {
        // What comes after it fails for its sake, and may be heard of first.
        throw (this.#failure ??= error)
      })
    return rows
  }

  /** Answers whether it was: the commit of a transaction that has failed is a rollback. */
  async commit(): Promise<boolean> {
    this.#gather()
    this.#isOver = true
    const { command } = await this.#client.query({ text: 'commit', values: [] })
    return command === 'COMMIT'
  }

  /** What is sent within one turn of the event loop goes to the socket as one piece. */
  #gather(): void {
    if (this.#isCorked) return
    const stream = streamOf(this.#client)
    this.#isCorked = true
    stream.cork()
    process.nextTick(() => {
      this.#isCorked = false
      stream.uncork()
    })
  }
}

/** For what is done once: several statements as one text. */
export async function script(client: ClientBase, sql: string): Promise<void> {
  await client.query(sql)
}
