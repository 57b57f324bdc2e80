// The scenarios in virtual time, on memory and SQLite.
import { testScenarios } from '../../kit/scenario-tests.ts'
import { assistant } from '../example.ts'

testScenarios(assistant, { stores: ['memory', 'sqlite'] })
