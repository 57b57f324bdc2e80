// `sluice dev`: the same in a process of its own, begun anew whenever a file of the project changes.
import { spawn, type ChildProcess } from 'node:child_process'
import { watch } from 'node:fs'
import { basename, extname, sep } from 'node:path'
import { systemClock } from '../clock.ts'
import { MASTER_KEY } from '../seal.ts'
import { devKey } from './dev-key.ts'

export interface DevParts {
  /** The arguments of `start`. */
  readonly args: readonly string[]
  /** The file that is run with them. */
  readonly main: string
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

const CODE: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs', '.json'])
const IGNORED: ReadonlySet<string> = new Set(['node_modules', '.git', 'dist', 'coverage'])
/** Editors write a file in several steps, and formatters after them. */
const SETTLED_AFTER = 150

export async function dev({ args, main, folder, env: given, say, signal }: DevParts): Promise<void> {
  const env = { ...given, ...ownKey(folder, given, say) }
  let child: ChildProcess | undefined
  let pending: (() => void) | undefined
  let turn = Promise.resolve()
  const begin = (): void => {
    child = spawn(process.execPath, [main, 'start', ...args], { stdio: 'inherit', cwd: folder, env })
    child.once('exit', (code) => {
      if (code !== 0 && code !== null) say('sluice dev: waits for a change')
    })
  }
  const again = (name: string): void => {
    pending?.()
    pending = systemClock.after(SETTLED_AFTER, () => {
      say(`sluice dev: ${name} has changed`)
      turn = turn.then(() => ended(child)).then(begin)
    })
  }
  begin()
  const watcher = watch(folder, { recursive: true }, (_kind, name) => {
    if (name !== null && isCode(name)) again(name)
  })
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  watcher.close()
  pending?.()
  await turn
  await ended(child)
}

/** Whoever tries it out has a key from the first minute on, and keeps what was sealed under it. */
function ownKey(folder: string, env: DevParts['env'], say: DevParts['say']): Readonly<Record<string, string>> {
  if (env[MASTER_KEY] !== undefined) return {}
  const { key, file, isNew } = devKey(folder)
  if (isNew) say(`sluice dev: made a master key, ${file}; keep it, and keep it out of version control`)
  return { [MASTER_KEY]: key }
}

function isCode(name: string): boolean {
  // `.env` and its like are all name, and no extension.
  const isRead = CODE.has(extname(name)) || basename(name).startsWith('.env')
  return isRead && !name.split(sep).some((part) => IGNORED.has(part))
}

/** Told to stop, it lets its runs end first. */
async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  await exited
}
