// `sluice dev` runs `sluice start` in a child process and restarts it when a file of the project changes.
import { spawn, type ChildProcess } from 'node:child_process'
import { basename, extname } from 'node:path'
import { systemClock } from '../clock.ts'
import { ENCRYPTION_KEY_VARIABLE } from '../crypto/keyring.ts'
import { DEV } from '../app/dev-mode.ts'
import { loadDevKey } from './dev-key.ts'
import { isInEnvFile } from './env-file.ts'
import { FolderWatcher } from './folder-watch.ts'

export interface DevOptions {
  /** The arguments of `start`. */
  readonly args: readonly string[]
  /** The file to run with these arguments. */
  readonly main: string
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly print: (line: string) => void
  readonly signal: AbortSignal
}

const CODE_EXTENSIONS: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs', '.json'])
const IGNORED: ReadonlySet<string> = new Set(['node_modules', '.git', 'dist', 'coverage'])
/** Editors write a file in several steps, and formatters run after them. */
const DEBOUNCE_MS = 150

export async function runDev({ args, main, folder, env: given, print, signal }: DevOptions): Promise<void> {
  const env = { ...given, ...devKeyEnv(folder, given, print), [DEV]: String(process.pid) }
  let child: ChildProcess | undefined
  let pending: (() => void) | undefined
  let restart = Promise.resolve()
  const begin = (): void => {
    child = spawn(process.execPath, [main, 'start', ...args], { stdio: 'inherit', cwd: folder, env })
    child.once('exit', (code) => {
      if (code !== 0 && code !== null && !signal.aborted) print('sluice dev: waiting for a change')
    })
  }
  const restartSoon = (name: string): void => {
    pending?.()
    pending = systemClock.after(DEBOUNCE_MS, () => {
      print(`sluice dev: ${name} changed`)
      restart = restart.then(() => stopChild(child)).then(begin)
    })
  }
  begin()
  const watcher = new FolderWatcher({
    folder,
    isIgnored: (name) => IGNORED.has(name),
    onChange: (path) => {
      if (isCode(path)) restartSoon(path)
    },
    onError: (unseen, error) => print(`sluice dev: cannot watch ${unseen}: ${String(error)}`),
  })
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  watcher.close()
  pending?.()
  await restart
  await stopChild(child)
}

/** A developer has a master key from the start, so encrypted data stays readable after a restart. */
function devKeyEnv(folder: string, env: DevOptions['env'], say: DevOptions['print']): Readonly<Record<string, string>> {
  if (env[ENCRYPTION_KEY_VARIABLE] !== undefined || isInEnvFile(folder, ENCRYPTION_KEY_VARIABLE)) return {}
  const { key, file, isNew } = loadDevKey(folder)
  if (isNew) say(`sluice dev: created the encryption key ${file}; keep it, but not in version control`)
  return { [ENCRYPTION_KEY_VARIABLE]: key }
}

function isCode(name: string): boolean {
  // `extname` is empty for `.env` and similar names.
  return CODE_EXTENSIONS.has(extname(name)) || basename(name).startsWith('.env')
}

/** The child finishes its runs before it stops. */
async function stopChild(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  await exited
}
