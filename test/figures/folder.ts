// A folder for each measurement with real files, removed afterwards.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export async function inFolder<T>(take: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-figure-'))
  try {
    return await take(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export function rounded(value: number, digits = 2): number {
  return Math.round(value * 10 ** digits) / 10 ** digits
}
