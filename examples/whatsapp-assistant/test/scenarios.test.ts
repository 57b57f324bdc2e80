// The scenarios in virtual time, on each store.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { assistant } from '../example.ts'

testScenarios(assistant)
