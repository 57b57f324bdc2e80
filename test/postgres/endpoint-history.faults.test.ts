// L12 L16: `kill -9` in the middle of a history changes nothing, on PostgreSQL.
import { describe, inject, it } from 'vitest'
import { checkHistoryUnderKills } from '../deliver/history-lives.ts'

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it('L12 L16 a history survives kill -9: every event once, in order, before the live ones', async () => {
    await checkHistoryUnderKills(`${url}${url.includes('?') ? '&' : '?'}schema=history_${process.pid}`)
  }, 300_000)
})
