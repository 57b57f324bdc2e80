// The storm of test/postgres/kill on Redis: a server that syncs each write, and a proxy that cuts off replies of commits.
import type { StormBackend } from '../../postgres/kill/storm.ts'
import { startRedisServer } from '../server.ts'
import { cuttingProxy } from './cutting-proxy.ts'

export const REDIS_STORM: StormBackend = {
  async start() {
    const server = await startRedisServer({ settings: { appendfsync: 'always' } })
    return {
      url: server.url,
      tcpUrl: server.url,
      kill: () => server.kill(),
      restart: () => server.start(),
      stop: () => server.stop(),
    }
  },
  proxy: cuttingProxy,
}
