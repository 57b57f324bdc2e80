import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification, type Vite } from 'vitest/node'

/** Kills, races, planted bugs, pages in a browser and what needs real seconds: `npm run test:faults`. */
const FAULTS = '**/*.faults.test.ts'
/** Random inputs, of which that tier tries more. */
const RANDOM = ['test/simulation/simulation.test.ts', 'test/api/random-calls.test.ts']
/** Whatever is held against a figure, in time or in memory: `npm run bench -- figures`. */
const FIGURES = '**/*.figures.test.ts'

/** Tests that a process needs for itself: thousands of connections, and handlers of the whole process. */
const APART = ['test/http/**/*.test.ts']

/** The tests of one store. `STORES=sqlite,postgres` runs only the files of the stores it names. */
const OF_STORE = {
  memory: ['test/stores/memory*.test.ts', 'test/simulation/simulation.test.ts'],
  sqlite: ['test/stores/sqlite*.test.ts', 'test/sqlite/**/*.test.ts', 'test/simulation/simulation.test.ts'],
  postgres: ['test/stores/postgres*.test.ts', 'test/postgres/**/*.test.ts', 'test/simulation/postgres*.test.ts'],
  redis: ['test/stores/redis*.test.ts', 'test/redis/**/*.test.ts', 'test/simulation/redis*.test.ts'],
} as const

type StoreName = keyof typeof OF_STORE

const stores = chosenStores(process.env['STORES'] ?? '')
const embedded = stores?.filter((name) => name !== 'postgres' && name !== 'redis').flatMap((name) => OF_STORE[name])

/** The longest files start first: a long file that starts last would leave the other cores idle. */
const LONG = [
  'test/stores/postgres.test.ts',
  'test/stores/sqlite.test.ts',
  'test/cli/commands.test.ts',
  'test/cli/commands-live.test.ts',
  'test/simulation/simulation.test.ts',
  'test/simulation/postgres.test.ts',
  'test/dashboard/operator-pages.faults.test.ts',
  'test/mutants/mutants.faults.test.ts',
  'test/engine-kill/kill-engine.faults.test.ts',
  'test/sqlite/kill.faults.test.ts',
  'test/postgres/kill/processes.faults.test.ts',
  'test/postgres/torture/torture.faults.test.ts',
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

/** More workers than cores, because many tests wait for a disk, a server or a child process. */
const WORKERS = 3

const common = {
  pool: 'forks',
  testTimeout: 120_000,
  // A busy machine can take seconds for what usually takes milliseconds.
  expect: { poll: { timeout: 60_000 } },
  hookTimeout: 120_000,
  // A test that passes only at the second try is a failing test.
  retry: 0,
  maxWorkers: WORKERS,
} as const

const SEEDED = fileURLToPath(new URL('test/seeded-fast-check.ts', import.meta.url))

/** `seeded` gives each test that imports fast-check the one with a fixed seed. */
const seeded: Vite.Plugin = {
  name: 'seeded-fast-check',
  enforce: 'pre',
  resolveId: (source, importer) => (source === 'fast-check' && importer !== SEEDED ? SEEDED : undefined),
}

// The scripts choose a tier by its projects: `light`, `apart`, `postgres` and `redis` are `npm test`; `faults`, `faults-postgres`,
// `faults-redis` and `postgres-15` are `npm run test:faults`; `figures` is `npm run bench -- figures`.
export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      {
        plugins: [seeded],
        test: {
          ...common,
          // Many files share a process, so that imports are loaded once: each leaves it as it was.
          name: 'light',
          include: embedded ?? ['test/**/*.test.ts', 'examples/**/*.test.ts'],
          exclude: [FAULTS, FIGURES, ...APART, ...OF_STORE.postgres, ...OF_STORE.redis],
          isolate: false,
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          name: 'apart',
          include: stores === undefined ? APART : [],
          exclude: [FAULTS, FIGURES],
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          isolate: false,
          name: 'postgres',
          include: stores?.includes('postgres') === false ? [] : [...OF_STORE.postgres],
          exclude: [FAULTS, FIGURES],
          globalSetup: 'test/postgres/global-setup.ts',
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          isolate: false,
          name: 'redis',
          include: stores?.includes('redis') === false ? [] : [...OF_STORE.redis],
          exclude: [FAULTS, FIGURES],
          globalSetup: 'test/redis/global-setup.ts',
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          name: 'faults',
          include: [FAULTS, ...RANDOM],
          exclude: ['node_modules/**', ...OF_STORE.postgres, ...OF_STORE.redis],
          env: { SIMULATION: 'long' },
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          name: 'faults-postgres',
          include: ['test/postgres/**/*.faults.test.ts', 'test/simulation/postgres.test.ts'],
          globalSetup: 'test/postgres/global-setup.ts',
          env: { SIMULATION: 'long' },
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          name: 'faults-redis',
          include: ['test/redis/**/*.faults.test.ts', 'test/simulation/redis.test.ts'],
          globalSetup: 'test/redis/global-setup.ts',
          env: { SIMULATION: 'long' },
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          name: 'postgres-15',
          include: [...OF_STORE.postgres],
          exclude: [FAULTS, FIGURES, 'test/simulation/postgres.test.ts'],
          globalSetup: 'test/postgres/global-setup.ts',
        },
      },
      {
        plugins: [seeded],
        test: {
          ...common,
          name: 'figures',
          include: [FIGURES],
          exclude: ['node_modules/**'],
          globalSetup: 'test/postgres/global-setup.ts',
          // Each figure has the machine to itself.
          maxWorkers: 1,
        },
      },
    ],
  },
})

/** `chosenStores` returns undefined when every test is wanted. */
function chosenStores(list: string): readonly StoreName[] | undefined {
  if (list === '') return undefined
  return list.split(',').map((name) => {
    if (Object.hasOwn(OF_STORE, name)) return name as StoreName
    throw new Error(`STORES must be a list of ${Object.keys(OF_STORE).join(', ')}; got ${name}.`)
  })
}
