// The scenarios in virtual time, on each store.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { nextUpExample } from '../example.ts'

testScenarios(nextUpExample)
