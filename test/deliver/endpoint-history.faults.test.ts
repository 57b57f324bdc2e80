// L12 L16: `kill -9` in the middle of a history changes nothing, on SQLite. test/postgres/ has the same for PostgreSQL.
import { it } from 'vitest'
import { ownFile } from '../temporary-folder.ts'
import { checkHistoryUnderKills } from './history-lives.ts'

it('L12 L16 a history survives kill -9: every event once, in order, before the live ones', async () => {
  await checkHistoryUnderKills(ownFile())
}, 300_000)
