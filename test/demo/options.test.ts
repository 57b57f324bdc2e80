// The command line of the demo: its defaults, and what it refuses.
import { expect, it } from 'vitest'
import { optionsFrom } from '../../src/demo/options.ts'

it('has a default for everything', () => {
  expect(optionsFrom([])).toEqual({ help: false, lasts: 60_000, store: undefined, seed: 1 })
})

it('takes what it is told', () => {
  const options = optionsFrom(['--seconds=2.5', '--store=memory:', '--seed=7'])
  expect(options).toEqual({ help: false, lasts: 2_500, store: 'memory:', seed: 7 })
  expect(optionsFrom(['--forever', '--seconds=5']).lasts).toBeUndefined()
})

it.each(['--seconds=soon', '--seconds=0', '--seconds=', '--seed=x', '--seed=1.5', '--unknown', 'word'])(
  'refuses %s, and names it',
  (option) => {
    expect(() => optionsFrom([option])).toThrow(option.split('=')[0])
  },
)
