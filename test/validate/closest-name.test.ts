import { expect, it } from 'vitest'
import { suggestName } from '../../src/validate/closest-name.ts'

const NAMES = ['flow', 'key', 'tenant', 'maxEvents', 'from']

it.each([
  ['flwo', 'flow'],
  ['flow', 'flow'],
  ['tennant', 'tenant'],
  ['maxevent', 'maxEvents'],
  ['kye', 'key'],
  ['form', 'from'],
])('finds what %s was meant to be', (wrong, meant) => {
  expect(suggestName(wrong, NAMES)).toBe(` Did you mean ${meant}?`)
})

it.each(['', 'x', 'window', 'on', 'f'.repeat(100_000)])('suggests nothing for another name', (wrong) => {
  expect(suggestName(wrong, NAMES)).toBe('')
})

it('puts the prefix before the name', () => {
  expect(suggestName('flwo', NAMES, '--')).toBe(' Did you mean --flow?')
})
