// One Redis server for all files of a project, started once per run and only when the project has files to run. A test that kills a
// server starts its own.
import type { TestProject } from 'vitest/node'
import { startRedisServer } from './server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly redisUrl: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startRedisServer()
  project.provide('redisUrl', server.url)
  return () => server.stop()
}
