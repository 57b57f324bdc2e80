// The scenarios in virtual time, on memory and SQLite.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { nextUpExample } from '../example.ts'

testScenarios(nextUpExample, { stores: ['memory', 'sqlite'] })
