// `RedisConnection` is what the store needs of a Redis client. node-redis (the package `redis`) and ioredis both provide it.
import { SluiceError } from '../../errors.ts'

export type RedisArgument = string | Buffer
/** Bulk strings arrive as buffers, because rows hold bytes. */
export type RedisReply = Buffer | string | number | null | readonly RedisReply[]

export interface RedisConnection {
  /** Sends one command. It rejects if the connection is lost before the reply; the command may have been executed. */
  send(args: readonly RedisArgument[]): Promise<RedisReply>
  /** Receives the messages of a channel on a connection of its own, and subscribes again after a reconnect. */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>
  /** Calls the listener each time the connection is lost. */
  onLost(listener: () => void): void
  close(): Promise<void>
}

/** A server that has vanished closes no connection. A command without a reply for this long fails, and the connection is replaced. */
const SILENCE_LIMIT = 8_000
const CONNECT_TIMEOUT = 5_000
const MAX_RECONNECT_DELAY = 1_000

/** `connectRedis` connects by address with node-redis, or with ioredis if that is the only one installed. */
export async function connectRedis(url: string): Promise<RedisConnection> {
  const redis = await importOptional<typeof import('redis')>('redis')
  if (redis !== undefined) return connectNodeRedis(redis, url)
  const ioredis = await importOptional<typeof import('ioredis')>('ioredis')
  if (ioredis !== undefined) return connectIoredis(ioredis, url)
  throw new SluiceError('STORE_DRIVER_MISSING', 'The package redis is not installed.', undefined, INSTALL)
}

const INSTALL = 'Install it beside sluice: npm install redis.'

async function importOptional<T>(name: string): Promise<T | undefined> {
  try {
    return (await import(name)) as T
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

async function connectNodeRedis(redis: typeof import('redis'), url: string): Promise<RedisConnection> {
  const client = redis.createClient({
    url,
    // Commands must fail while the server is away: their callers decide whether to repeat them.
    disableOfflineQueue: true,
    pingInterval: SILENCE_LIMIT / 2,
    socket: {
      connectTimeout: CONNECT_TIMEOUT,
      socketTimeout: SILENCE_LIMIT,
      reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, MAX_RECONNECT_DELAY),
    },
  })
  const lost: (() => void)[] = []
  client.on('error', () => lost.forEach((listener) => listener()))
  await connectOnce(client)
  const subscriber = client.duplicate({ disableOfflineQueue: false })
  subscriber.on('error', () => {})
  const mapped = client.withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer })
  return {
    send: (args) => mapped.sendCommand(args) as Promise<RedisReply>,
    async subscribe(channel, onMessage) {
      await subscriber.connect()
      await subscriber.subscribe(channel, onMessage)
    },
    onLost: (listener) => void lost.push(listener),
    async close() {
      if (subscriber.isOpen) subscriber.destroy()
      if (client.isReady) await client.close()
      else if (client.isOpen) client.destroy()
    },
  }
}

interface NodeRedisLifecycle {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  once(event: 'error', listener: (error: Error) => void): unknown
  destroy(): void
}

/** The client would repeat the first connection without end. A server that cannot be reached must be an error when a store is opened. */
async function connectOnce(client: NodeRedisLifecycle): Promise<void> {
  const failed = new Promise<never>((_, reject) => client.once('error', reject))
  try {
    await Promise.race([client.connect(), failed])
  } catch (error) {
    if (client.isOpen) client.destroy()
    throw error
  }
}

async function connectIoredis(ioredis: typeof import('ioredis'), url: string): Promise<RedisConnection> {
  const client = new ioredis.Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: CONNECT_TIMEOUT,
    commandTimeout: SILENCE_LIMIT,
    socketTimeout: SILENCE_LIMIT,
    retryStrategy: (tries) => Math.min(50 * 2 ** tries, MAX_RECONNECT_DELAY),
  })
  const lost: (() => void)[] = []
  client.on('error', () => {})
  client.on('close', () => lost.forEach((listener) => listener()))
  try {
    await client.connect()
  } catch (error) {
    client.disconnect()
    throw error
  }
  const subscriber = client.duplicate({ enableOfflineQueue: true, socketTimeout: 0 })
  subscriber.on('error', () => {})
  return {
    send: ([command = '', ...args]) => client.callBuffer(String(command), args) as Promise<RedisReply>,
    async subscribe(channel, onMessage) {
      subscriber.on('message', (_channel, message) => onMessage(message))
      await subscriber.subscribe(channel)
    },
    onLost: (listener) => void lost.push(listener),
    async close() {
      subscriber.disconnect()
      client.disconnect()
    },
  }
}
