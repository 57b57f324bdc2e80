// The scenarios in virtual time, with the times of the design.
import { describe } from 'vitest'
import { testScenarios } from '../../kit/scenario-tests.ts'
import { neoforgeMeta } from '../example.ts'
import { attempts } from '../scenarios/deliveries.ts'
import { api } from '../scenarios/subscribers.ts'
import { SHORT_TIMES, TRUE_TIMES } from '../scenarios/world.ts'

const options = { now: Date.UTC(2026, 10, 18, 12), stores: ['postgres'] } as const

testScenarios({ ...neoforgeMeta, env: TRUE_TIMES }, options)

describe('with other settings', () => {
  const scenarios = { 'Subscribers as in the design, which know of no challenge': api }
  testScenarios({ ...neoforgeMeta, env: { ...TRUE_TIMES, WEBHOOK_PROOF: 'none' }, scenarios }, options)
  testScenarios(
    { ...neoforgeMeta, env: { ...SHORT_TIMES, MAX_ATTEMPTS: '6' }, scenarios: { 'Six attempts': attempts } },
    options,
  )
})
