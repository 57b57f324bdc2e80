// How full the disk is that a store's file lies on: when it is full, nothing more is stored, whoever else filled it.
import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const FILE = 'sqlite:'

/** From 0 to 1; undefined of a store that is no file, or whose disk does not say. */
export async function diskUsed(address: unknown): Promise<number | undefined> {
  if (typeof address !== 'string' || !address.startsWith(FILE) || address === `${FILE}:memory:`) return undefined
  try {
    const { blocks, bavail } = await statfs(dirname(resolve(address.slice(FILE.length))))
    return blocks === 0 ? undefined : 1 - bavail / blocks
  } catch {
    return undefined
  }
}
