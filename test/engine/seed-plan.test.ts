// The test plan of the first seed, as written there: debounced users, first ready first served, reruns, and 429.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { Gate, keysOf, numbersOf, ping, play, sendNow, soon, STORES, emittedEvents, userOf } from './scene.ts'

const rank = (gate?: Gate) => (app: Sluice) =>
  app.flow('rank-user', {
    on: 'ping',
    key: userOf,
    window: { quiet: '10s', max: '60s' },
    whileRunning: 'requeue',
    concurrency: 1,
    retry: ['250ms', '1s', '2s'],
    run: ({ key }) => {
      if (key === 'failing') throw new Error('502')
      return gate?.wait(key)
    },
  })

describe.each(STORES)('seed 000 test plan on %s', (store) => {
  test('burst of events for one user → single processing after debounce', async () => {
    const t = await play(store, rank())
    for (let n = 0; n < 20; n++) {
      await t.send(ping('U1', n))
      await t.advance('500ms')
    }
    expect(t.runs).toEqual([])
    await t.advance('10s')
    expect(t.runs).toMatchObject([{ key: 'U1', at: 19_500, ending: 'done' }])
    expect(t.runs[0]?.events).toHaveLength(20)
    await t.advance('10m')
    expect(t.runs).toHaveLength(1)
  })

  test('alternating events for two users (U1 → U2 → U1) → FCFS by ready time', async () => {
    const t = await play(store, rank())
    await t.send(ping('U1', 1))
    await t.advance('2s')
    await t.send(ping('U2', 1))
    await t.advance('2s')
    await t.send(ping('U1', 2))
    await t.advance('60s')
    expect(t.runs.map(({ key, at }) => [key, at])).toEqual([
      ['U2', 12_000],
      ['U1', 14_000],
    ])
    expect(numbersOf(t)).toEqual([[1], [1, 2]])
  })

  test('alternating: an event of U1 during the run of U2 joins U1; one during its own run reruns it behind ready users', async () => {
    const gate = new Gate()
    const t = await play(store, rank(gate))
    await t.send(ping('U1', 1))
    await t.advance('2s')
    await t.send(ping('U2', 1))
    await t.send(ping('U1', 2))
    await t.advance('11s')
    expect(keysOf(t)).toEqual(['U2'])
    await t.send(ping('U1', 3))
    gate.open('U2')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [1, 2, 3]])
    await t.send([ping('U1', 4), ping('U3', 1)])
    await t.advance('15s')
    gate.open('U1')
    await soon(t)
    // U3 was ready before the end of U1's run requested the rerun.
    expect(keysOf(t)).toEqual(['U2', 'U1', 'U3'])
    gate.open('U3')
    await soon(t)
    expect(keysOf(t)).toEqual(['U2', 'U1', 'U3', 'U1'])
  })

  test('duplicate suppression: a user has at most one place in the order', async () => {
    const gate = new Gate()
    const t = await play(store, rank(gate))
    await t.send(ping('U1', 1))
    await t.advance('10s')
    for (let n = 0; n < 5; n++) {
      await t.send(ping('U2', n))
      await t.advance('11s')
    }
    gate.open('U1')
    await soon(t)
    gate.open('U2')
    await t.advance('60s')
    expect(numbersOf(t)).toEqual([[1], [0, 1, 2, 3, 4]])
  })

  test('no-assignee events → skipped and counted', async () => {
    const t = await play(store, rank())
    const published = await sendNow(t, [{ type: 'ping', data: {} }, { type: 'ping', data: { user: null } }, ping('U1')])
    expect(published.map((one) => one.kind)).toEqual(['stored', 'stored', 'stored'])
    await t.advance('60s')
    expect(keysOf(t)).toEqual(['U1'])
    expect(emittedEvents(t, 'event.skipped')).toMatchObject([{ flow: 'rank-user' }, { flow: 'rank-user' }])
  })

  test('transient errors: 250 ms, 1 s, 2 s; a permanent error does not delay other users', async () => {
    const t = await play(store, rank())
    await t.send(ping('failing'))
    await t.advance('1s')
    await t.send(ping('U2'))
    await t.advance('60s')
    expect(t.runs.filter((run) => run.key === 'failing').map((run) => run.at)).toEqual([10_000, 10_250, 11_250, 13_250])
    expect(t.runs.find((run) => run.key === 'U2')).toMatchObject({ at: 11_000, ending: 'done' })
  })

  test('the rate: at most 3 calls in any second, over all users', async () => {
    const calls: number[] = []
    const t = await play(store, (app) => {
      const api = app.limit('notion-api', { rate: 3, per: '1s' })
      app.flow('rank-user', {
        on: 'ping',
        key: userOf,
        run: async () => {
          for (let n = 0; n < 3; n++) await api.run(() => void calls.push(t.elapsed))
        },
      })
    })
    await t.send(Array.from({ length: 5 }, (_, n) => ping(`U${n}`)))
    await t.advance('60s')
    expect(calls).toHaveLength(15)
    for (let n = 3; n < calls.length; n++) expect((calls[n] ?? 0) - (calls[n - 3] ?? 0)).toBeGreaterThanOrEqual(1_000)
    expect(t.runs.filter((run) => run.ending === 'done')).toHaveLength(5)
  })
})

interface Api {
  readonly url: string
  readonly hits: number[]
}

/** Responds to the second request with 429 and Retry-After: 1, and to all others with success. */
async function flakyApi(): Promise<Api> {
  const hits: number[] = []
  const server: Server = createServer((_request, response) => {
    hits.push(performance.now())
    if (hits.length === 2) response.writeHead(429, { 'retry-after': '1' }).end()
    else response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, hits }
}

describe('seed 000, in real time', () => {
  test('429 responses → backoff and continued progress', async () => {
    const { url, hits } = await flakyApi()
    const app = new Sluice({ store: 'memory:', log: false })
    onTestFinished(() => app.stop())
    const api = app.limit('notion-api', { rate: 20, per: '1s' })
    const ended = Promise.withResolvers<void>()
    const done = new Set<string>()
    app.flow('rank-user', {
      on: 'ping',
      key: userOf,
      concurrency: 1,
      retry: ['50ms', '50ms'],
      run: async ({ key }) => {
        const response = await api.fetch(url)
        if (!response.ok) throw new Error(`status ${response.status}`)
        done.add(key)
        if (done.size === 3) ended.resolve()
      },
    })
    let paused = 0
    app.on('limit.paused', () => paused++)
    await app.start()
    await app.publish([ping('U1'), ping('U2'), ping('U3')])
    await ended.promise
    expect(paused).toBe(1)
    expect(hits).toHaveLength(4)
    // Nobody calls during Retry-After, neither the rejected user nor the others.
    expect((hits[2] ?? 0) - (hits[1] ?? 0)).toBeGreaterThanOrEqual(990)
  })
})
