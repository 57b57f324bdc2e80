import { expect, it } from 'vitest'
import { withDevFormat } from '../../src/app/dev-mode.ts'

it('is readable on a terminal under sluice dev', () => {
  expect(withDevFormat(undefined, true)).toEqual({ format: 'pretty-lines' })
  expect(withDevFormat({ level: 'debug' }, true)).toEqual({ level: 'debug', format: 'pretty-lines' })
})

it.each([false, { format: 'json' }, { destination: process.stderr }] as const)('leaves %j to the app', (log) => {
  expect(withDevFormat(log, true)).toBe(log)
})

it('stays JSON elsewhere', () => {
  expect(withDevFormat(undefined, false)).toEqual({})
})
