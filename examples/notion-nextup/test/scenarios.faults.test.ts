// The scenarios in virtual time, on PostgreSQL.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { nextUpExample } from '../example.ts'

testScenarios(nextUpExample, { stores: ['postgres'] })
