// `RedisConnection` is what the store needs of a Redis client. node-redis (the package `redis`) and ioredis both provide it.
import { systemClock, type Millis } from '../../clock.ts'
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

/** A server that has vanished closes no connection. If commands wait and none had a reply for this long, the connection is replaced. */
const SILENCE_LIMIT: Millis = 8_000
const WATCH_INTERVAL: Millis = 1_000
/** The operating system probes a silent connection, so that a subscription does not stay deaf. */
const KEEP_ALIVE_DELAY: Millis = 5_000
const CONNECT_TIMEOUT = 5_000
const MAX_RECONNECT_DELAY = 1_000

/** `connectRedis` connects by address with node-redis, or with ioredis if that is the only one installed. */
export async function connectRedis(
  url: string,
  clients: readonly ('redis' | 'ioredis')[] = ['redis', 'ioredis'],
): Promise<RedisConnection> {
  for (const client of clients) {
    if (client === 'redis') {
      const redis = await importOptional<typeof import('redis')>(client)
      if (redis !== undefined) return connectNodeRedis(redis, url)
    } else {
      const ioredis = await importOptional<typeof import('ioredis')>(client)
      if (ioredis !== undefined) return connectIoredis(ioredis, url)
    }
  }
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

/** `NodeRedisClient` is the part of a node-redis client that the store uses. */
interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  on(event: 'error', listener: (error: Error) => void): unknown
  connect(): Promise<unknown>
  sendCommand(args: readonly RedisArgument[]): Promise<unknown>
  subscribe(channel: string, onMessage: (message: string) => void): Promise<unknown>
  close(): Promise<unknown>
  destroy(): void
}

/** `NodeRedisConnection` replaces its client when the server is silent. */
class NodeRedisConnection implements RedisConnection {
  readonly #create: () => NodeRedisClient
  readonly #lost: (() => void)[] = []
  #client: NodeRedisClient
  #subscriber: NodeRedisClient | undefined
  #subscription: { readonly channel: string; readonly onMessage: (message: string) => void } | undefined
  #pending = 0
  #heardAt: Millis = 0
  #cancelWatch: (() => void) | undefined
  #isOpen = true

  private constructor(create: () => NodeRedisClient, client: NodeRedisClient) {
    this.#create = create
    this.#client = client
  }

  static async connect(create: () => NodeRedisClient): Promise<NodeRedisConnection> {
    const connection = new NodeRedisConnection(create, create())
    await connectOnce(connection.#client)
    connection.#watchErrors(connection.#client)
    return connection
  }

  #watchErrors(client: NodeRedisClient): void {
    client.on('error', () => {
      for (const listener of this.#lost) listener()
    })
  }

  async send(args: readonly RedisArgument[]): Promise<RedisReply> {
    if (this.#pending++ === 0) this.#heardAt = systemClock.monotonic()
    this.#cancelWatch ??= systemClock.after(WATCH_INTERVAL, () => this.#watch())
    try {
      return (await this.#client.sendCommand(args)) as RedisReply
    } finally {
      this.#pending--
      this.#heardAt = systemClock.monotonic()
    }
  }

  #watch(): void {
    this.#cancelWatch = undefined
    if (this.#pending === 0 || !this.#isOpen) return
    if (systemClock.monotonic() - this.#heardAt >= SILENCE_LIMIT) this.#replaceAll()
    else this.#cancelWatch = systemClock.after(WATCH_INTERVAL, () => this.#watch())
  }

  /** The calls that wait fail, and later ones use a new connection. */
  #replaceAll(): void {
    const old = this.#client
    this.#client = this.#create()
    this.#watchErrors(this.#client)
    this.#client.connect().catch(() => {})
    for (const listener of this.#lost) listener()
    if (old.isOpen) old.destroy()
    if (this.#subscriber?.isOpen === true) this.#subscriber.destroy()
    this.#listen().catch(() => {})
  }

  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    this.#subscription = { channel, onMessage }
    await this.#listen()
  }

  /** The client subscribes again by itself after it has reconnected. */
  async #listen(): Promise<void> {
    if (this.#subscription === undefined) return
    const subscriber = this.#create()
    this.#subscriber = subscriber
    subscriber.on('error', () => {})
    await subscriber.connect()
    await subscriber.subscribe(this.#subscription.channel, this.#subscription.onMessage)
  }

  onLost(listener: () => void): void {
    this.#lost.push(listener)
  }

  async close(): Promise<void> {
    this.#isOpen = false
    this.#cancelWatch?.()
    if (this.#subscriber?.isOpen === true) this.#subscriber.destroy()
    if (this.#client.isReady) await this.#client.close()
    else if (this.#client.isOpen) this.#client.destroy()
  }
}

function connectNodeRedis(redis: typeof import('redis'), url: string): Promise<RedisConnection> {
  return NodeRedisConnection.connect(() => {
    const client = redis.createClient({
      url,
      // Commands must fail while the server is away: their callers decide whether to repeat them.
      disableOfflineQueue: true,
      disableClientInfo: true,
      socket: {
        connectTimeout: CONNECT_TIMEOUT,
        keepAliveInitialDelay: KEEP_ALIVE_DELAY,
        reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, MAX_RECONNECT_DELAY),
      },
    })
    const mapped = client.withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer })
    return {
      get isOpen() {
        return client.isOpen
      },
      get isReady() {
        return client.isReady
      },
      on: (event, listener) => client.on(event, listener),
      connect: () => client.connect(),
      sendCommand: (args) => mapped.sendCommand(args),
      subscribe: (channel, onMessage) => client.subscribe(channel, onMessage),
      close: () => client.close(),
      destroy: () => client.destroy(),
    }
  })
}

/** The client would repeat the first connection without end. A server that cannot be reached must be an error when a store is opened. */
async function connectOnce(client: NodeRedisClient): Promise<void> {
  const failed = new Promise<never>((_, reject) => void client.on('error', reject))
  failed.catch(() => {})
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
  const subscriber = client.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null, socketTimeout: 0 })
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
