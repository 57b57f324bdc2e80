// `createConfirmation` lets a commit wait until the server or its replicas have it, before the commit is acknowledged.
import { SluiceError } from '../../errors.ts'
import type { RedisConnection } from './client.ts'
import type { ServerSettings } from './server-check.ts'

export interface ConfirmOptions {
  /** How many replicas must have received a commit (`WAIT`). Default: 0. */
  readonly replicas?: number
  /** Whether the append-only file must be on the disk, also with `appendfsync everysec` (`WAITAOF`, since Redis 7.2). Default: false. */
  readonly fsync?: boolean
}

/** The server stops waiting after this time, and the commit is not acknowledged. */
const TIMEOUT = 5_000
const WAITAOF_SINCE = 7.02

export function createConfirmation(
  connection: RedisConnection,
  { version: [major, minor] }: ServerSettings,
  { replicas = 0, fsync = false }: ConfirmOptions = {},
): (() => Promise<void>) | undefined {
  if (!(Number.isInteger(replicas) && replicas >= 0)) {
    const what = `confirm.replicas must be a whole number, 0 or above; got ${replicas}.`
    throw new SluiceError('CONFIG_INVALID', what, undefined, 'Omit it to wait for no replica.')
  }
  if (fsync && major + minor / 100 < WAITAOF_SINCE) {
    const what = `confirm.fsync must be used with Redis 7.2 or later; got ${major}.${minor}.`
    throw new SluiceError(
      'CONFIG_INVALID',
      what,
      undefined,
      'Set appendfsync always in redis.conf, or use a newer server.',
    )
  }
  if (!fsync && replicas === 0) return undefined
  return async () => {
    if (fsync) {
      const [local, remote] = (await connection.send(['WAITAOF', '1', String(replicas), String(TIMEOUT)])) as number[]
      if (local !== 1 || (remote ?? 0) < replicas)
        throw unconfirmed(`${local} of 1 disks and ${remote} of ${replicas} replicas`)
    } else {
      const reached = Number(await connection.send(['WAIT', String(replicas), String(TIMEOUT)]))
      if (reached < replicas) throw unconfirmed(`${reached} of ${replicas} replicas`)
    }
  }
}

/** The commit may be repeated: the store then finds it done, and waits again. */
function unconfirmed(reached: string): SluiceError {
  const what = `A commit reached ${reached} within ${TIMEOUT / 1_000} s, so it was not acknowledged.`
  return new SluiceError(
    'STORE_UNREACHABLE',
    what,
    undefined,
    'Check the replicas of the server, or lower confirm.replicas.',
  )
}
