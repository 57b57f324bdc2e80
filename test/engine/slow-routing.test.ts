// L2a: on, key and window may take 50 ms together. A slower flow is reported, once.
import { describe, expect, test } from 'vitest'
import type { FlowOptions, Run, Sluice } from '../../src/index.ts'
import { ping, Shared, STORES, userOf, type Declare } from './scene.ts'

/** The time that the functions of a flow take, by the virtual clock. */
function slow(shared: Shared, took: { ms: number }, more: Partial<FlowOptions<Run>> = {}): Declare {
  const taking = <T>(value: T): T => {
    shared.clock.advance(took.ms)
    return value
  }
  return (app) =>
    app
      .flow('slow', {
        on: () => taking(true),
        key: (event) => taking(userOf(event)),
        ...more,
        run: () => {},
      })
      .flow('quick', { on: 'ping', key: userOf, run: () => {} })
}

function alertsOf(app: Sluice): string[] {
  const raised: string[] = []
  app.on('alert.raised', ({ alert, text }) => {
    if (alert.startsWith('slow-routing')) raised.push(`${alert} ${text}`)
  })
  return raised
}

function broken(): never {
  throw new Error('broken')
}

describe.each(STORES)('L2a the limit of 50 ms on %s', (store) => {
  test('L2a above it the flow is named, once', async () => {
    const shared = await Shared.open(store)
    const took = { ms: 26 }
    const app = await shared.process('a', slow(shared, took))
    const alerts = alertsOf(app)
    await app.publish(ping('u'))
    expect(alerts).toEqual([expect.stringMatching(/^slow-routing:slow .* took 52 ms .* 50 /)])
    await app.publish([ping('u'), ping('v')])
    expect(alerts).toHaveLength(1)
  })

  test('L2a up to it nothing is reported', async () => {
    const shared = await Shared.open(store)
    const app = await shared.process('a', slow(shared, { ms: 25 }))
    const alerts = alertsOf(app)
    await app.publish(ping('u'))
    expect(alerts).toEqual([])
  })

  test('L2a a slow function that throws is reported as well', async () => {
    const shared = await Shared.open(store)
    const app = await shared.process('a', slow(shared, { ms: 60 }, { key: broken }))
    const alerts = alertsOf(app)
    await app.publish(ping('u'))
    expect(alerts).toHaveLength(1)
  })
})
