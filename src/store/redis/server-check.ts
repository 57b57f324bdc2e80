// Checks that a Redis server can keep what it acknowledges. A server that cannot is rejected, unless the user accepts the loss.
import { SluiceError } from '../../errors.ts'
import type { StatsReply } from '../contract/index.ts'
import type { RedisConnection } from './client.ts'

export interface ServerSettings {
  /** Major and minor version. */
  readonly version: readonly [number, number]
  readonly appendOnly: boolean
  readonly fsync: string
  readonly evictionPolicy: string
}

/** Scripts name their flags since 7.0. */
const OLDEST = [7, 0] as const

export async function readSettings(connection: RedisConnection): Promise<ServerSettings> {
  const info = String(await connection.send(['INFO', 'server']))
  const version = /redis_version:(\d+)\.(\d+)/.exec(info)
  return {
    version: [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)],
    appendOnly: (await readSetting(connection, 'appendonly')) === 'yes',
    fsync: await readSetting(connection, 'appendfsync'),
    evictionPolicy: await readSetting(connection, 'maxmemory-policy'),
  }
}

/** A hosted server may forbid CONFIG; then its durability is unknown. */
async function readSetting(connection: RedisConnection, name: string): Promise<string> {
  const reply = await connection.send(['CONFIG', 'GET', name]).catch((error: unknown) => {
    if (error instanceof Error && /^(?:ERR unknown command|NOPERM)/.test(error.message)) return []
    throw error
  })
  // A client with RESP3 returns a map.
  const value: unknown = Array.isArray(reply) ? reply[1] : Object.values(reply ?? {})[0]
  return Buffer.isBuffer(value) ? value.toString() : typeof value === 'string' ? value : ''
}

/** `assertUsableServer` rejects a server that is too old, or that may lose acknowledged writes. */
export function assertUsableServer({ version, appendOnly, evictionPolicy }: ServerSettings, acceptLoss: boolean): void {
  const [major, minor] = version
  if (major < OLDEST[0])
    throw new SluiceError(
      'STORE_FAILED',
      `The server must be Redis 7.0 or later, or Valkey; got ${major}.${minor}.`,
      undefined,
      UPGRADE,
    )
  if (acceptLoss) return
  const missing = [
    ...(appendOnly ? [] : ['appendonly yes']),
    ...(evictionPolicy === 'noeviction' ? [] : ['maxmemory-policy noeviction']),
  ]
  if (missing.length === 0) return
  throw new SluiceError(
    'STORE_NOT_DURABLE',
    `The Redis server may lose what it acknowledges: it must have ${missing.join(' and ')}.`,
    undefined,
    `Set ${missing.join(' and ')} in redis.conf, and restart the server or use CONFIG SET. Only if losing acknowledged events is acceptable, open the store with acceptLoss: true.`,
  )
}

const UPGRADE = 'Use Redis 7.0 or later, or Valkey 7.2 or later.'

export function describeDurability({ appendOnly, fsync, evictionPolicy }: ServerSettings): StatsReply['durable'] {
  if (!appendOnly)
    return {
      isDurable: false,
      reason: 'the server has no append-only file, so a crash loses everything since its last snapshot',
    }
  if (evictionPolicy !== 'noeviction')
    return { isDurable: false, reason: `the server evicts keys when its memory is full (${evictionPolicy})` }
  if (fsync === 'always') return { isDurable: true, reason: 'the server syncs its append-only file before it replies' }
  return {
    isDurable: true,
    reason: 'the server syncs its append-only file once a second: a crash of the machine loses up to about a second',
  }
}

/** `readMemoryUsed` returns how full the memory of the server is, from 0 to 1; undefined if it has no `maxmemory`. */
export async function readMemoryUsed(connection: RedisConnection): Promise<number | undefined> {
  const info = String(await connection.send(['INFO', 'memory']).catch(() => ''))
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
  const max = read('maxmemory')
  return max === 0 ? undefined : read('used_memory') / max
}
