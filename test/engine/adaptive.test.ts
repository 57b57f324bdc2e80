// L22: an adaptive window grows under pressure, and shrinks again by itself.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { Gate, ping, play, STORES, userOf } from './scene.ts'

const QUIET = { from: '2s', to: '32s' } as const

async function waitOf(t: TestApp, key: string): Promise<number> {
  const sent = t.elapsed
  await t.send(ping(key))
  for (let n = 0; n < 200 && !t.runs.some((run) => run.key === key); n++) await t.advance('500ms')
  return (t.runs.find((run) => run.key === key)?.at ?? Infinity) - sent
}

async function refusing(): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(429, { 'retry-after': '0' }).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe.each(STORES)('L22 adaptive windows on %s', (store) => {
  test('L22 without pressure quiet is `from`', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: QUIET, max: '5m' }, run: () => {} }),
    )
    await t.advance('1s')
    expect(await waitOf(t, 'u')).toBe(2_000)
    await t.advance('10m')
    expect(await waitOf(t, 'v')).toBe(2_000)
  })

  test('L22 a first ready lane that is later than `from` raises the level, which halves each minute', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: QUIET, max: '5m' },
        concurrency: 1,
        timeout: '1h',
        run: ({ key }) => (key === 'slow' ? gate.wait() : undefined),
      }),
    )
    await t.send([ping('slow'), ping('behind')])
    await t.advance('2s')
    expect(t.runs).toMatchObject([{ key: 'slow' }])
    await t.advance('60s')
    gate.open()
    await t.advance('1s')
    const pressed = await waitOf(t, 'pressed')
    expect(pressed).toBeGreaterThan(4_000)
    expect(pressed).toBeLessThanOrEqual(32_000)
    await t.advance('30m')
    expect(await waitOf(t, 'calm')).toBeLessThanOrEqual(2_010)
  })

  test('L22 a 429 raises the level by a quarter, at most once in 5 s', async () => {
    const url = await refusing()
    // The refused call is real, but the clock is virtual: the handler ends when the response has arrived.
    const ended = Promise.withResolvers<void>()
    const declare = (app: Sluice): unknown => {
      const api = app.limit('api', { rate: 100, per: '1s' })
      return app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: QUIET, max: '5m' },
        run: async ({ key }) => {
          if (key !== 'refused') return
          await api.fetch(url)
          ended.resolve()
        },
      })
    }
    const t = await play(store, declare)
    await t.send(ping('refused'))
    await t.advance('2s')
    await ended.promise
    await t.advance('2s')
    const wait = await waitOf(t, 'after')
    // 2 s × 16^0.25 is 4 s, and the level has already decayed a little.
    expect(wait).toBeGreaterThan(3_500)
    expect(wait).toBeLessThanOrEqual(4_000)
  })

  test('L22 explain shows the current window', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: QUIET, max: '5m' }, run: () => {} }),
    )
    await t.advance('1s')
    await t.send(ping('u'))
    expect((await t.explain('f', 'u')).text).toContain('pressure')
  })
})
