// The command line of the demo: its defaults, and what it refuses.
import { expect, it } from 'vitest'
import { optionsFrom } from '../options.ts'

it('has a default for everything', () => {
  const serving = { help: false, lasts: undefined, store: undefined, seed: 1, play: false, port: undefined }
  expect(optionsFrom([])).toEqual(serving)
  expect(optionsFrom(['--play'])).toEqual({ ...serving, play: true, lasts: 60_000 })
})

it('takes what it is told', () => {
  const options = optionsFrom(['--seconds=2.5', '--store=memory:', '--seed=7', '--port=0'])
  expect(options).toEqual({ help: false, lasts: 2_500, store: 'memory:', seed: 7, play: false, port: 0 })
  expect(optionsFrom(['--forever', '--seconds=5']).lasts).toBeUndefined()
})

it.each(['--seconds=soon', '--seconds=0', '--seconds=', '--seed=x', '--seed=1.5', '--port=x', '--unknown', 'word'])(
  'refuses %s, and names it',
  (option) => {
    expect(() => optionsFrom([option])).toThrow(option.split('=')[0])
  },
)
