// The command line of the demo: its defaults, and what it refuses.
import { expect, it } from 'vitest'
import { optionsFrom } from '../options.ts'

it('has a default for everything', () => {
  const defaults = { help: false, lasts: undefined, store: undefined, seed: 1, play: true, port: undefined }
  expect(optionsFrom([])).toEqual(defaults)
  expect(optionsFrom(['--quiet'])).toEqual({ ...defaults, play: false })
})

it('reads each option', () => {
  const options = optionsFrom(['--seconds=2.5', '--store=memory:', '--seed=7', '--port=0'])
  expect(options).toEqual({ help: false, lasts: 2_500, store: 'memory:', seed: 7, play: true, port: 0 })
})

it.each(['--seconds=soon', '--seconds=0', '--seconds=', '--seed=x', '--seed=1.5', '--port=x', '--unknown', 'word'])(
  'refuses %s, and names it',
  (option) => {
    expect(() => optionsFrom([option])).toThrow(option.split('=')[0])
  },
)
