// An option that would have no effect is rejected, and so is a missing options object.
import { describe, expect, test } from 'vitest'
import { Sluice, SluiceError, type FlowOptions, type Run } from '../../src/index.ts'

function refusalOf(options: unknown): SluiceError {
  const app = new Sluice({ store: 'memory:', log: false })
  try {
    app.flow('f', options as FlowOptions<Run> & { run: () => void })
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    return error as SluiceError
  }
  throw new Error('It was not refused.')
}

const key = () => 'k'

describe('options of a flow without an effect', () => {
  test.each<[string, unknown]>([
    ['factor', { delays: ['1s'], factor: 2 }],
    ['cap', { delays: ['1s'], cap: '5s' }],
    ['retries', { delays: ['1s'], retries: 3 }],
    ['retry', { first: '1s', retries: 1, delays: ['1s'] }],
    ['retry', { delays: '1s' }],
    ['retry', { jitter: 0.5 }],
    ['retry[0]', [Infinity]],
    ['retry[1]', { delays: ['1s', Infinity] }],
    ['retry.first', { first: Infinity, retries: 1 }],
    ['retry.first', { first: Infinity, cap: '1m', retries: 1 }],
  ])('%s in retry: %j', (named, retry) => {
    const error = refusalOf({ on: 'ping', retry, run: () => {} })
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(named)
  })

  test.each([
    'key',
    'window',
    'debounce',
    'batch',
    'take',
    'share',
    'concurrency',
    'whileRunning',
    'retry',
    'onDead',
    'timeout',
    'keep',
  ])('%s: null is not the same as leaving it out', (option) => {
    const error = refusalOf({ on: 'ping', key, [option]: null, run: () => {} })
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(option)
  })

  test('window: null without a key is rejected', () => {
    expect(refusalOf({ on: 'ping', window: null, run: () => {} }).message).toContain('window')
  })

  test.each([null, undefined, 'ping', 5])('%j instead of options is rejected', (options) => {
    const error = refusalOf(options)
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain('"f"')
  })
})
