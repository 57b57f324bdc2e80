// A lane opens with its first event, whether code or a run published it.
import { describe, expect, test } from 'vitest'
import { ping, play, sendNow, STORES, emittedEvents, userOf } from './scene.ts'

describe.each(STORES)('lane.opened on %s', (store) => {
  test('is emitted when an event enters a lane without events, published by code or by a run', async () => {
    const t = await play(store, (app) => {
      app.flow('f', { on: 'ping', key: userOf, run: (run) => run.publish({ type: 'pong', data: { user: 'v' } }) })
      app.flow('g', { on: 'pong', key: userOf, window: { quiet: '1m' }, run: () => {} })
    })
    await sendNow(t, [ping('u', 1), ping('u', 2)])
    await sendNow(t, ping('u', 3))
    const opened = emittedEvents(t, 'lane.opened')
    expect(opened).toEqual([
      { flow: 'f', key: 'u' },
      { flow: 'g', key: 'v' },
      { flow: 'f', key: 'u' },
    ])
  })
})
