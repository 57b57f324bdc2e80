// The scenarios in virtual time, on PostgreSQL.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { assistant } from '../example.ts'

testScenarios(assistant, { stores: ['postgres'] })
