// Runs the idle engine in its process and reads the result.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { IdleFigure } from './idle-child.ts'

const CHILD = fileURLToPath(new URL('./idle-child.ts', import.meta.url))

export interface IdleOptions {
  readonly lanes: number
  /** How long each measurement takes, and how long the process rests before it. */
  readonly ms: number
  readonly settle: number
  readonly folder: string
}

export async function idle({ lanes, ms, settle, folder }: IdleOptions): Promise<IdleFigure> {
  const args = [CHILD, join(folder, 'idle.db'), String(ms), String(lanes), String(settle)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as IdleFigure
}
