// `openRedisStore` opens the store on a Redis or Valkey server, which many processes share.
import { randomBytes } from 'node:crypto'
import { systemClock, type Clock } from '../../clock.ts'
import type { StatsReply, Store } from '../contract/index.ts'
import { TableStore } from '../core/store.ts'
import { connectRedis, type RedisConnection } from './client.ts'
import { createConfirmation, type ConfirmOptions } from './confirm.ts'
import { toSluiceError } from './errors.ts'
import { HintChannel } from './hints.ts'
import { assertUsableServer, describeDurability, readMemoryUsed, readSettings } from './server-check.ts'
import { toMetaKey } from './tables.ts'
import { Transactions } from './transactions.ts'

export interface RedisOptions {
  readonly url: string
  /** The beginning of all keys. Two apps may share a server, each with its own prefix. */
  readonly prefix?: string
  /** A clock for tests. The default is the server's clock. */
  readonly clock?: Clock | undefined
  /** Accepts a server that may lose acknowledged events. The default is to reject such a server. */
  readonly acceptLoss?: boolean
  /** What a commit waits for before it is acknowledged. */
  readonly confirm?: ConfirmOptions | undefined
}

class RedisStore extends TableStore {
  readonly #connection: RedisConnection

  constructor(parts: ConstructorParameters<typeof TableStore>[0], connection: RedisConnection) {
    super(parts)
    this.#connection = connection
  }

  override async stats(): Promise<StatsReply> {
    const [stats, memoryUsed] = await Promise.all([super.stats(), readMemoryUsed(this.#connection)])
    return { ...stats, memoryUsed }
  }
}

const DEFAULT_PREFIX = 'sluice'

export async function openRedisStore({
  url,
  prefix = DEFAULT_PREFIX,
  clock,
  acceptLoss = false,
  confirm,
}: RedisOptions): Promise<Store> {
  const connection = await connectRedis(url).catch((error: unknown) => {
    throw toSluiceError(error)
  })
  try {
    const settings = await readSettings(connection)
    assertUsableServer(settings, acceptLoss)
    const awaitDurability = createConfirmation(connection, settings, confirm)
    // All keys have one hash tag, so they are in one slot of a cluster and one script may use them all.
    const tag = `{${prefix}}`
    const name = await readStoreName(connection, tag)
    const hints = new HintChannel(connection, `${tag}:hints`)
    const durable = describeDurability(settings)
    const commits = new Transactions({
      connection,
      prefix: tag,
      name,
      clock,
      hints,
      durable,
      awaitDurability,
    })
    return new RedisStore({ commits, clock: clock ?? systemClock }, connection)
  } catch (error) {
    await connection.close()
    throw toSluiceError(error)
  }
}

/** The name of the store is chosen once, by the process that opens it first. */
async function readStoreName(connection: RedisConnection, prefix: string): Promise<string> {
  const key = toMetaKey(prefix)
  await connection.send(['HSETNX', key, 'name', randomBytes(4).toString('hex')])
  return String(await connection.send(['HGET', key, 'name']))
}
