// The scenarios in virtual time, on PostgreSQL.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { opikAlerts } from '../example.ts'
import { TRUE_TIMES } from '../world.ts'

testScenarios({ ...opikAlerts, env: TRUE_TIMES }, { stores: ['postgres'] })
