// The scenarios in virtual time: with the times of the design in memory, and with short times on SQLite.
import { describe } from 'vitest'
import { testScenarios } from '../../kit/scenario-tests.ts'
import { welltrack } from '../example.ts'
import { SHORT_TIMES, TRUE_TIMES } from '../scenarios/world.ts'

const now = Date.UTC(2026, 10, 18, 12)

describe('with the times of the design', () => {
  testScenarios({ ...welltrack, env: TRUE_TIMES }, { now, stores: ['memory'] })
})

describe('with short times', () => {
  testScenarios({ ...welltrack, env: SHORT_TIMES }, { now, stores: ['sqlite'] })
})
