// Proves that the simulation can fail: it finds every planted bug, and the unchanged code survives the same histories.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { MUTANTS, type Mutant } from './mutants.ts'

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const HISTORIES = { memory: '20000', sqlite: '3000', 'limits:memory': '20000' }
const SEED = '20261115'
/** Seeds for bugs that take long to be found with the default one: each starts near a history that shows the bug. */
const SEEDS: Readonly<Record<string, string>> = {
  'placing an unrouted event needs no token': '16',
  'a duplicate published event is reported as stored': '21',
  'a run can be cancelled after its commit': '14',
  'a purge in steps loses its way': '3',
  'a purged run ends in its own way': '16',
  'a slot that was moved counts as used': '23',
  'placements that moved to the table are not counted': '12',
  'new runs are forgotten in a crash': '3',
  'a list counts after its lane was written': '7',
  'a run that took a part comes back with all': '7',
  'a full group stays full': '8',
  'groups have one turn in a claim, and no second round': '2',
  'an event is a conflict with itself': '2',
  'events left over get a window again when the clock is set back': '33',
  'a second manual retry queues again': '1',
  'every event leads': '1',
  'an early alarm is taken for the deadline': '1',
  'a lane whose deadline moved earlier is only listed': '1',
  'a lane that gets a position among new runs is passed over': '52',
}

type Hunted = keyof typeof HISTORIES

function huntOf({ name, hunt: what = 'memory' }: { readonly name: string; readonly hunt?: Hunted }): {
  readonly what: Hunted
  readonly seed: string
} {
  return { what, seed: SEEDS[name] ?? SEED }
}

/** Each hunt once: most bugs share one. */
const HUNTS = [...Map.groupBy(MUTANTS.map(huntOf), ({ what, seed }) => `${what} ${seed}`).values()].flatMap(
  ([one]) => one ?? [],
)

interface Hunt {
  readonly what: Hunted
  readonly seed: string
  readonly runs: string
  /** Undefined means the unchanged code. */
  readonly mutant?: string
}

async function hunt({
  what,
  seed,
  runs,
  mutant,
}: Hunt): Promise<{ readonly code: number | null; readonly said: string }> {
  const planted = mutant === undefined ? [] : ['--import', here('plant.ts')]
  const child = spawn(process.execPath, [...planted, here('../simulation/hunt.ts'), what, runs, seed], {
    env: { ...process.env, ...(mutant !== undefined && { SLUICE_MUTANT: mutant }), SLUICE_SHRINK: '0' },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  const code = await new Promise<number | null>((resolve) => void child.on('close', resolve))
  return { code, said }
}

describe('planted bugs', () => {
  it('there are at least 17', () => expect(MUTANTS.length).toBeGreaterThanOrEqual(17))

  it('each special seed is for an existing bug', () => {
    expect(Object.keys(SEEDS).filter((name) => !MUTANTS.some((one) => one.name === name))).toEqual([])
  })

  /** By hunt, how many histories it took to find all of its bugs. */
  const found = new Map<string, number>()

  it.concurrent.each(MUTANTS)('$name: found', { timeout: 300_000 }, async (one: Mutant) => {
    const { name } = one
    const { what, seed } = huntOf(one)
    const { code, said } = await hunt({ what, seed, runs: HISTORIES[what], mutant: name })
    expect(said).toContain('violation (seed')
    expect(code).toBe(1)
    const runs = Number(/: (\d+) histories/.exec(said)?.[1])
    found.set(`${what} ${seed}`, Math.max(runs, found.get(`${what} ${seed}`) ?? 0))
  })

  // A bug in the simulation itself would report every one of them.
  it.each(HUNTS)('the unchanged code survives the hunt of $what from $seed', { timeout: 300_000 }, async (one) => {
    const runs = found.get(`${one.what} ${one.seed}`)
    const { code, said } = await hunt({ ...one, runs: String(runs) })
    expect(said).toContain(`${runs} histories`)
    expect(code).toBe(0)
  })
})
