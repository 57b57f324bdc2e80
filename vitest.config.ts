import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What is measured against the clock has the machine to itself. */
const MEASURED = ['test/figures/**/*.test.ts']
/** But for what waits most of its time: for slots of a limit, or for nothing to happen. These do so beside each other. */
const PACED = ['limit-rate', 'limit-flood', 'shared-limit', 'idle'].map((name) => `test/figures/${name}.test.ts`)

/** What leaves its process as it found it: many files share one, and what they import is loaded once. */
const LIGHT = ['api', 'deliver', 'engine', 'limit', 'observe', 'properties', 'receive', 'sources'].map(
  (folder) => `test/${folder}/**/*.test.ts`,
)

/** What is about one store. `STORES=sqlite,postgres` runs these files of the stores it names, and no others. */
const OF_STORE = {
  memory: ['test/stores/memory*.test.ts', 'test/simulation/simulation.test.ts'],
  sqlite: ['test/stores/sqlite*.test.ts', 'test/sqlite/**/*.test.ts', 'test/simulation/simulation.test.ts'],
  postgres: ['test/stores/postgres*.test.ts', 'test/postgres/**/*.test.ts', 'test/simulation/postgres*.test.ts'],
} as const

type StoreName = keyof typeof OF_STORE

const stores = chosenStores(process.env['STORES'] ?? '')
const embedded = stores?.filter((name) => name !== 'postgres').flatMap((name) => OF_STORE[name])

/** What begins last must not be what takes longest: half of the machine would have nothing to do. */
const LONG = [
  'test/simulation/simulation.test.ts',
  'test/stores/postgres.test.ts',
  'test/simulation/postgres.test.ts',
  'test/sqlite/kill.test.ts',
  'test/engine-kill/kill-engine.test.ts',
  'test/postgres/kill/processes.test.ts',
]

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- of the sequencer, not of an array
    const usual = await super.sort(files)
    return usual.toSorted((one, other) => placeOf(one) - placeOf(other))
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const found = LONG.findIndex((name) => moduleId.endsWith(name))
  return found === -1 ? LONG.length : found
}

/** More than there are cores: many wait for a disk, a server, or a process that they have started. */
const WORKERS = 3

const common = {
  pool: 'forks',
  testTimeout: 30_000,
  // On a busy machine a second is not long.
  expect: { poll: { timeout: 10_000 } },
  hookTimeout: 30_000,
  // A test that passes only at the second try is a failing test.
  retry: 0,
} as const

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          ...common,
          name: 'light',
          include: stores === undefined ? LIGHT : [],
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          // A process for each file: tests that kill, fork or block a worker must not reach their neighbours.
          name: 'apart',
          include: embedded ?? ['test/**/*.test.ts', 'examples/**/*.test.ts'],
          exclude: [...MEASURED, ...LIGHT, ...OF_STORE.postgres],
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'postgres',
          include: stores?.includes('postgres') === false ? [] : [...OF_STORE.postgres],
          globalSetup: 'test/postgres/global-setup.ts',
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'paced',
          include: stores === undefined ? PACED : [],
          maxWorkers: PACED.length,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...common,
          name: 'alone',
          include: stores === undefined ? MEASURED : [],
          exclude: PACED,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})

/** Undefined: every test there is. */
function chosenStores(list: string): readonly StoreName[] | undefined {
  if (list === '') return undefined
  return list.split(',').map((name) => {
    if (Object.hasOwn(OF_STORE, name)) return name as StoreName
    throw new Error(`STORES is a list of ${Object.keys(OF_STORE).join(', ')}, with commas between; not ${name}.`)
  })
}
