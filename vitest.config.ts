import { defineConfig } from 'vitest/config'

/** What is measured against the clock has the machine to itself. */
const ALONE = ['test/figures/**/*.test.ts']

const common = {
  // A process for each file: tests that kill, fork or block a worker must not reach their neighbours.
  pool: 'forks',
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // A test that passes only at the second try is a failing test.
  retry: 0,
} as const

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...common,
          name: 'together',
          include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
          exclude: ALONE,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...common, name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
