// The scenarios in virtual time, on each store.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { hello } from '../example.ts'

testScenarios(hello)
