// `debounce` and `batch` are shorthands for `window`. A flow uses at most one of the three.
import { describe, expect, test } from 'vitest'
import { Sluice, type FlowOptions, type Run } from '../../src/index.ts'
import { ping, play, userOf } from './scene.ts'

type Shorthand = Pick<FlowOptions<Run>, 'window' | 'debounce' | 'batch'>

async function runsWith(shorthand: Shorthand, send: readonly number[]): Promise<readonly unknown[]> {
  const t = await play('memory:', (app) =>
    app.flow('f', { on: 'ping', key: userOf, ...shorthand, run: ({ events }) => void events.length }),
  )
  let at = 0
  for (const next of send) {
    await t.advance(next - at)
    at = next
    await t.send(ping('u', next))
  }
  await t.advance('10m')
  return t.runs.map(({ at: time, events }) => [time, events.length])
}

const SENT = [0, 4_000, 9_000, 14_000, 40_000, 41_000]

describe('L3 a shorthand equals its window', () => {
  test.each<[string, Shorthand, Shorthand]>([
    ["debounce: '5s'", { debounce: '5s' }, { window: { quiet: '5s' } }],
    ['debounce: 5000', { debounce: 5_000 }, { window: { quiet: 5_000 } }],
    ['debounce with max', { debounce: { quiet: '10s', max: '12s' } }, { window: { quiet: '10s', max: '12s' } }],
    [
      'debounce with leading',
      { debounce: { quiet: '10s', leading: true } },
      { window: { quiet: '10s', leading: true } },
    ],
    ["batch: '20s'", { batch: '20s' }, { window: { every: '20s' } }],
    ['batch with a cap', { batch: { every: '20s', maxEvents: 2 } }, { window: { every: '20s', maxEvents: 2 } }],
  ])('%s', async (_name, short, general) => {
    const runs = await runsWith(short, SENT)
    expect(runs).toEqual(await runsWith(general, SENT))
    expect(runs.length).toBeGreaterThan(1)
    expect(runs).not.toEqual(await runsWith({}, SENT))
  })
})

describe('an empty shorthand, or two windows, are rejected', () => {
  test.each<[unknown, string]>([
    [{ debounce: '5s', batch: '5s' }, 'flow("f") must have one of window, debounce and batch; got debounce and batch.'],
    [{ window: { quiet: '5s' }, debounce: '5s' }, 'got window and debounce.'],
    [{ debounce: {} }, `flow("f").debounce must be a duration or an object like { quiet: '10s', max: '1m' }; got {}.`],
    [{ batch: { quiet: '5s' } }, 'flow("f").batch must be a duration or an object like'],
    [{ batch: null }, 'flow("f").batch must be a duration'],
    [{ debounce: { quiet: '5s', maxs: '9s' } }, 'maxs is not an option'],
    [{ debounce: { quite: '5s' } }, 'flow("f").debounce.quite is not an option. Did you mean quiet?'],
    [{ debounce: 'soon' }, 'flow("f").debounce.quiet must be a duration'],
    [{ debounce: { quiet: '2s', max: '1s' } }, 'flow("f").debounce.max must be at least its quiet'],
    [{ batch: 'soon' }, 'flow("f").batch.every must be a duration'],
    [{ window: { quiet: 'soon' } }, 'flow("f").window.quiet must be a duration'],
    [{ timeout: 'soon' }, 'flow("f").timeout must be a duration'],
    [{ debounce: '2s', key: undefined }, 'flow("f"): debounce must have a key'],
    [{ batch: '2s', key: undefined }, 'flow("f"): batch must have a key'],
  ])('%j', (shorthand, message) => {
    const app = new Sluice({ store: 'memory:', log: false })
    const options = { on: 'ping', key: () => 'k', run: () => {}, ...(shorthand as Shorthand) }
    expect(() => app.flow('f', options)).toThrow(message)
  })
})
