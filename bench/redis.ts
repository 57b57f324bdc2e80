// A temporary Redis for the peer with an append-only file. It syncs every second, as its users run it, or before each response,
// as Sluice does. The program itself comes from the system (Debian: redis-server).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { freePort } from '../test/free-port.ts'

export interface Redis {
  readonly url: string
  stop(): Promise<void>
}

const READY = 'Ready to accept connections'

/** Returns undefined if this machine has no redis-server. */
export async function startRedis(folder: string, sync: 'everysec' | 'always'): Promise<Redis | undefined> {
  await mkdir(folder, { recursive: true })
  const port = await freePort()
  const options = {
    port,
    dir: folder,
    bind: '127.0.0.1',
    appendonly: 'yes',
    appendfsync: sync,
    'maxmemory-policy': 'noeviction',
    save: '',
  }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const isThere = await Promise.race([
    once(server, 'error').then(() => false),
    (async () => {
      for await (const chunk of server.stdout) if (String(chunk).includes(READY)) return true
      return false
    })(),
  ])
  if (!isThere) return undefined
  process.once('exit', () => server.kill('SIGKILL'))
  server.stdout.resume()
  const stop = async (): Promise<void> => {
    const exited = once(server, 'exit')
    server.kill('SIGTERM')
    await exited
  }
  return { url: `redis://127.0.0.1:${port}`, stop }
}
