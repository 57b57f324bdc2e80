import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    // A process for each file: tests that kill, fork or block a worker must not reach their neighbours.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A test that passes only at the second try is a failing test.
    retry: 0,
  },
})
