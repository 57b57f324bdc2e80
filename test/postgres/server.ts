// Starts a real PostgreSQL server for a test. Nothing must be installed first, nothing is left over however the process ends,
// and no other PostgreSQL of the machine is touched.
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { freePort } from '../free-port.ts'
import { programsOf, type Version } from './programs.ts'
import type { Watched } from './watcher.ts'

export interface ServerOptions {
  readonly version: Version
  /** A folder that does not exist yet, by default in the system's temporary folder; it is removed with the server. */
  readonly folder?: string
  /** Settings as in postgresql.conf. The others keep PostgreSQL's defaults; in particular, fsync is on. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface Server {
  readonly version: Version
  readonly folder: string
  /** The address through the Unix socket if there is one: the shortest way to the server. */
  readonly url: string
  readonly tcpUrl: string
  /** The id of the main server process; undefined while the server is down. */
  readonly pid: number | undefined
  /** Ends the server with a signal, SIGKILL by default, and resolves when none of its processes is left. */
  kill(signal?: 'SIGKILL' | 'SIGQUIT' | 'SIGINT' | 'SIGTERM'): Promise<void>
  /**
   * Starts the server again on the same data and port, after a clean stop if it is running. Resolves when it accepts
   * connections.
   */
  restart(): Promise<void>
  stop(): Promise<void>
}

interface Running {
  readonly child: ChildProcess
  /** Every process of the server holds the pipe of its log. When the pipe closes, all have ended. */
  readonly gone: Promise<void>
}

const windows = process.platform === 'win32'
const USER = 'postgres'
const LOG_LINES_KEPT = 20
const READY = 'database system is ready to accept connections'
// The maximum length of a Unix socket path on every system.
const LONGEST_SOCKET = 103
// The environment excludes the caller's variables, which may name a missing locale or another server (PGDATA, PGPORT).
const ENVIRONMENT = windows ? process.env : { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }

export async function startServer({ version, settings = {}, ...options }: ServerOptions): Promise<Server> {
  const folder = resolve(
    options.folder ?? join(tmpdir(), `sluice-postgres-${version}-${randomBytes(4).toString('hex')}`),
  )
  const account = accountOf()
  const installed = await programsOf(version)
  const programs = account.uid === undefined || isOpenToAll(installed) ? installed : join(folder, 'programs')
  const data = join(folder, 'data')
  const port = await freePort()
  const password = crypto.randomUUID()
  const socket = windows || join(folder, `.s.PGSQL.${port}`).length > LONGEST_SOCKET ? '' : folder
  if (existsSync(folder)) throw new Error(`${folder} is there already, and would be removed with the server.`)
  const watcher = await watch({ folder, data, postgres: join(programs, 'bin', 'postgres'), account })
  let running: Running | undefined
  let stopped: Promise<void> | undefined

  function launch(program: string, args: readonly string[]): Running & { readonly log: Readable } {
    const child = spawn(join(programs, 'bin', program), args, {
      ...account,
      cwd: folder,
      // The server is detached, like the watcher: a signal to our whole process group must not interrupt an orderly stop.
      detached: true,
      env: ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    watcher.stdin.write(`${child.pid ?? ''}\n`)
    return { child, gone: goneOf(child), log: child.stderr }
  }

  async function goneOf(child: ChildProcess): Promise<void> {
    try {
      await once(child, 'close')
    } finally {
      running = undefined
      if (watcher.stdin.writable) watcher.stdin.write('\n')
    }
  }

  async function initialise(): Promise<void> {
    makeFolder(folder, account)
    // If the project is in a folder that only root may enter, the programs are copied to a place where they can be reached.
    if (programs !== installed) cpSync(installed, programs, { recursive: true, verbatimSymlinks: true })
    const file = join(folder, 'password')
    writeFileSync(file, password, { mode: 0o600 })
    own(file, account)
    const flags = ['--locale=C', '--encoding=UTF8', '--auth=password', `--username=${USER}`, `--pwfile=${file}`]
    const { child, gone, log } = launch('initdb', [`--pgdata=${data}`, ...flags, '--no-sync'])
    const lines = keepLines(log)
    await gone
    if (child.exitCode !== 0) throw new Error(`initdb of PostgreSQL ${version} failed:\n${lines.join('\n')}`)
  }

  async function start(): Promise<void> {
    if (stopped !== undefined) throw new Error('This PostgreSQL was stopped, and its data removed.')
    const all = { ...settings, port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: socket }
    const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const launched = launch('postgres', ['-D', data, ...args])
    running = launched
    const ready = Promise.withResolvers<true>()
    const lines = keepLines(launched.log, (line) => line.includes(READY) && ready.resolve(true))
    const isReady = await Promise.race([ready.promise, launched.gone])
    if (isReady !== true) throw new Error(`PostgreSQL ${version} did not start:\n${lines.join('\n')}`)
  }

  async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    running?.child.kill(signal)
    await running?.gone
  }

  async function stop(): Promise<void> {
    const ended = once(watcher, 'exit')
    watcher.stdin.end()
    await Promise.all([ended, running?.gone])
    if (watcher.exitCode !== 0) throw new Error(`${folder} could not be removed.`)
  }

  const stopOnce = (): Promise<void> => (stopped ??= stop())
  try {
    await initialise()
    await start()
  } catch (error) {
    await stopOnce()
    throw error
  }
  const tcpUrl = `postgres://${USER}:${password}@127.0.0.1:${port}/postgres`
  const socketUrl = `postgres://${USER}:${password}@/postgres?host=${encodeURIComponent(socket)}&port=${port}`
  return {
    version,
    folder,
    url: socket === '' ? tcpUrl : socketUrl,
    tcpUrl,
    get pid() {
      return running?.child.pid
    },
    kill,
    async restart() {
      await kill('SIGINT')
      await start()
    },
    stop: stopOnce,
  }
}

/** Resolves when the watcher runs, because nothing that it must remove may exist earlier. */
async function watch(watched: Watched): Promise<ChildProcessByStdio<Writable, Readable, null>> {
  const program = join(import.meta.dirname, 'watcher.ts')
  // The watcher has its own session, so neither Ctrl-C nor the end of a terminal reaches it.
  const watcher = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(watched)], {
    cwd: dirname(watched.folder),
    detached: true,
    env: ENVIRONMENT,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await Promise.race([once(watcher.stdout, 'data'), once(watcher, 'exit')])
  if (watcher.exitCode !== null || watcher.signalCode !== null) throw new Error('Nobody watches this PostgreSQL.')
  return watcher
}

/** PostgreSQL rejects root and needs a named user; every system has this one. */
function accountOf(): Watched['account'] {
  if (process.getuid?.() !== 0) return {}
  const nobody = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'))
  if (nobody === null) throw new Error('PostgreSQL cannot run as root, and there is no user `nobody` to run it as.')
  return { uid: Number(nobody[1]), gid: Number(nobody[2]) }
}

function makeFolder(folder: string, account: Watched['account']): void {
  mkdirSync(folder)
  own(folder, account)
  // The other user needs to pass through the folder.
  const above = dirname(folder)
  const { mode } = statSync(above)
  if (account.uid !== undefined && (mode & 0o001) === 0) chmodSync(above, mode | 0o011)
}

function isOpenToAll(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false
  return dirname(folder) === folder || isOpenToAll(dirname(folder))
}

function own(path: string, { uid, gid }: Watched['account']): void {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}

/** The last lines, for the message of an error. */
function keepLines(log: Readable, seen: (line: string) => void = () => {}): readonly string[] {
  const lines: string[] = []
  createInterface({ input: log }).on('line', (line) => {
    lines.push(line)
    if (lines.length > LOG_LINES_KEPT) lines.shift()
    seen(line)
  })
  return lines
}
