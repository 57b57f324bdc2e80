// Plants bugs in the functions of the server. The simulation finds each of them on a real server, so it does check these functions.
import { expect, inject, it } from 'vitest'
import { opener } from '../simulation/postgres-opener.ts'
import { simulate } from '../simulation/simulate.ts'
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts'

const HISTORIES = 1_000
const SEED = 20_261_120

const url = inject('postgresServers').at(-1)?.url ?? ''

/** Replaces the function in the schema of the connection. */
function plant({ in: { source }, find, replace }: PlantedBug): string {
  if (source.split(find).length !== 2) throw new Error(`"${find}" is not once in the function`)
  return source.replace(find, () => replace).replaceAll('create function', 'create or replace function')
}

it.each(PLANTED_BUGS)('$name: found', { timeout: 400_000 }, async (bug) => {
  const label = `planted_${PLANTED_BUGS.indexOf(bug)}`
  const open = opener(url, label, { prepare: (pool) => pool.query(plant(bug)) })
  const { violation } = await simulate({ open, runs: HISTORIES, seed: SEED, shrink: false })
  expect(violation?.message).toBeDefined()
})
