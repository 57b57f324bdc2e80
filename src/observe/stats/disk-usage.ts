// `readDiskUsage` measures the disk that holds the store's file: on a full disk nothing more is stored.
import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const SQLITE_PREFIX = 'sqlite:'

/** `readDiskUsage` returns 0 to 1, or undefined if the store is not a file or its disk does not report its size. */
export async function readDiskUsage(address: unknown): Promise<number | undefined> {
  if (typeof address !== 'string' || !address.startsWith(SQLITE_PREFIX) || address === `${SQLITE_PREFIX}:memory:`)
    return undefined
  try {
    const { blocks, bavail } = await statfs(dirname(resolve(address.slice(SQLITE_PREFIX.length))))
    return blocks === 0 ? undefined : 1 - bavail / blocks
  } catch {
    return undefined
  }
}
