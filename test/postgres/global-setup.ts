// One PostgreSQL server for all files of a project, started once per run and only when the project has files to run.
// The project's name chooses the version; `POSTGRES_VERSIONS` overrides it. A test that kills a server starts its own.
import type { TestProject } from 'vitest/node'
import { VERSIONS, type Version } from './programs.ts'
import { startServer } from './server.ts'

export interface SharedServer {
  /** The name in the titles of tests. */
  readonly name: string
  readonly url: string
  readonly tcpUrl: string
}

declare module 'vitest' {
  interface ProvidedContext {
    readonly postgresServers: readonly SharedServer[]
  }
}

const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'on',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '64MB',
  autovacuum: 'off',
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['DATABASE_URL'] ?? ''
  if (given !== '') {
    project.provide('postgresServers', [{ name: 'PostgreSQL of DATABASE_URL', url: given, tcpUrl: given }])
    return async () => {}
  }
  const starts = await Promise.allSettled(
    versionsFor(project.name).map((version) => startServer({ version, settings: SETTINGS })),
  )
  const servers = starts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const teardown = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()))
  }
  const failed = starts.find((one) => one.status === 'rejected')
  if (failed !== undefined) {
    await teardown()
    throw failed.reason
  }
  project.provide(
    'postgresServers',
    servers.map(({ version, url, tcpUrl }) => ({ name: `PostgreSQL ${version}`, url, tcpUrl })),
  )
  return teardown
}

function versionsFor(project: string): readonly Version[] {
  const usual = project === 'postgres-15' ? '15' : '18'
  const names = (process.env['POSTGRES_VERSIONS'] ?? usual).split(',').map(Number)
  const unknown = names.find((name) => !VERSIONS.some((version) => version === name))
  if (unknown !== undefined) throw new Error(`POSTGRES_VERSIONS must be of ${VERSIONS.join(', ')}; got ${unknown}.`)
  return VERSIONS.filter((version) => names.includes(version))
}
