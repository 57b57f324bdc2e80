// Starts a real redis-server for a test, on a free port and in a temporary folder. Nothing is left over however the process ends, and no
// other server of the machine is touched.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findRedisServer } from '../../scripts/redis-server.mjs'
import { freePort } from '../free-port.ts'

export interface RedisServerOptions {
  /** Settings as in redis.conf. By default, the server syncs its append-only file once a second and evicts nothing. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  readonly folder: string
  readonly pid: number | undefined
  /** Ends the server with a signal, SIGKILL by default. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts the server again on the same data and port. */
  start(): Promise<void>
  stop(): Promise<void>
}

const SETTINGS = { appendonly: 'yes', appendfsync: 'everysec', 'maxmemory-policy': 'noeviction', save: '' }
const LOG_LINES_KEPT = 20

export async function startRedisServer({ settings = {} }: RedisServerOptions = {}): Promise<RedisServer> {
  const program = findRedisServer()
  if (program === undefined)
    throw new Error('There is no redis-server 7.0 or later. Install it, e.g. apt-get install redis-server.')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  const port = await freePort()
  const guard = watch(folder)
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const all = { ...SETTINGS, ...settings, port: String(port), bind: '127.0.0.1', dir: folder, daemonize: 'no' }
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])
    const server = spawn(program ?? '', args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    child = server
    guard.stdin?.write(`${server.pid}\n`)
    const lines: string[] = []
    const ready = Promise.withResolvers<boolean>()
    createInterface({ input: server.stdout }).on('line', (line) => {
      lines.push(line)
      if (lines.length > LOG_LINES_KEPT) lines.shift()
      if (line.includes('Ready to accept connections')) ready.resolve(true)
    })
    server.once('exit', () => ready.resolve(false))
    if (!(await ready.promise)) throw new Error(`redis-server did not start:\n${lines.join('\n')}`)
  }

  async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    get pid() {
      return child?.pid
    },
    kill,
    start,
    async stop() {
      await kill()
      const ended = once(guard, 'exit')
      guard.stdin?.end()
      await ended
    },
  }
}

/** The guard outlives this process, if only to end the server and to remove its folder. */
function watch(folder: string): ChildProcess {
  const script = 'while read -r line; do pid=$line; done; kill -9 "$pid" 2>/dev/null; rm -rf "$0"'
  return spawn('sh', ['-c', script, folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
}
