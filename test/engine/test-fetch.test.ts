// `testApp(app, { fetch })`: what the app sends arrives at a function of the test, in virtual time.
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import { testApp, VirtualClock, type TestFetch } from '../../src/testing/index.ts'
import { ownFile } from '../temporary-folder.ts'

const KEY = randomBytes(32).toString('base64')
const URL_OF_SUBSCRIBER = 'https://subscriber.example/hook?a=1'

function delivering(options: Partial<SluiceOptions> = {}): Sluice {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: KEY, ...options })
  return app.delivery('news', { on: 'news.*', retry: ['5s', '5s'] })
}

function calling(call: (fetch: typeof globalThis.fetch, signal: AbortSignal) => Promise<unknown>): Sluice {
  const app = new Sluice({ store: 'memory:', log: false })
  const api = app.limit('api', { rate: 1, per: '1s' })
  return app.flow('call', {
    on: 'ping',
    retry: ['1s'],
    timeout: '20s',
    run: async ({ signal }) => void (await call(api.fetch, signal)),
  })
}

const wait = (clock: VirtualClock, ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))

describe('deliveries', () => {
  it('arrive signed, with the headers and the body that a subscriber would get', async () => {
    const got: { request: Request; text: string }[] = []
    const t = await testApp(delivering(), {
      fetch: async (request) => {
        got.push({ request, text: await request.text() })
        return new Response(null, { status: 204 })
      },
    })
    const { secret } = await t.app.endpoints.create({ url: URL_OF_SUBSCRIBER, headers: { 'x-own': 'yes' } })
    await t.send({ type: 'news.out', data: { n: 1 } })
    const [{ request, text } = { request: new Request(URL_OF_SUBSCRIBER), text: '' }] = got
    expect([request.method, request.url]).toEqual(['POST', URL_OF_SUBSCRIBER])
    const headers = Object.fromEntries(request.headers)
    expect(headers).toMatchObject({ 'user-agent': 'Sluice', 'content-type': 'application/json', 'x-own': 'yes' })
    const signed = Number(headers['webhook-timestamp']) * 1_000
    expect(signed).toBe(t.clock.now())
    expect(new Webhook(secret).sign(headers['webhook-id'] ?? '', new Date(signed), text)).toBe(
      headers['webhook-signature'],
    )
    expect(t.runs).toMatchObject([{ flow: 'news', ending: 'done' }])
    await t.stop()
  })

  it('meet an answer that is late, an error, and Retry-After in virtual time', async () => {
    const at: number[] = []
    const answers: TestFetch[] = [
      async () => {
        await wait(t.clock, 2_000)
        return new Response('busy', { status: 503, headers: { 'retry-after': '60' } })
      },
      () => {
        throw new Error('no route to host')
      },
      () => new Response('ok'),
    ]
    const t = await testApp(delivering(), {
      fetch: (request) => {
        at.push(t.elapsed)
        return answers.shift()?.(request) ?? new Response('ok')
      },
    })
    const { id } = await t.app.endpoints.create({ url: URL_OF_SUBSCRIBER })
    await t.send({ type: 'news.out' })
    await t.advance('2m')
    expect(at).toEqual([0, 62_000, 67_000])
    expect(t.runs.map(({ ending, error }) => [ending, error])).toEqual([
      ['retry', expect.stringContaining('503')],
      ['retry', 'connect: no route to host'],
      ['done', undefined],
    ])
    expect(await t.app.endpoints.deliveries(id)).toMatchObject([{ status: 'SUCCESS' }])
    await t.stop()
  })

  it('fail after the deadline if no answer comes, and the request is aborted', async () => {
    const requests: Request[] = []
    const t = await testApp(delivering(), {
      fetch: (request) => {
        requests.push(request)
        return new Promise<Response>(() => {})
      },
    })
    await t.app.endpoints.create({ url: URL_OF_SUBSCRIBER })
    await t.send({ type: 'news.out' })
    await t.advance('29s')
    expect(t.runs).toMatchObject([{ ending: 'running' }])
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ ending: 'retry', error: 'timeout: No complete response within 30000 ms.' }])
    expect(requests[0]?.signal.aborted).toBe(true)
    await t.stop()
  })

  it('are proven by a handshake, and an endless answer is cut', async () => {
    const methods: string[] = []
    const app = delivering({ delivery: { proof: 'cloudevents', origin: 'hooks.example.com' } })
    const t = await testApp(app, {
      fetch: (request) => {
        methods.push(request.method)
        const endless = new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(10_000)) })
        const granted = { 'webhook-allowed-origin': 'hooks.example.com', 'webhook-allowed-rate': '*' }
        return request.method === 'OPTIONS' ? new Response(null, { headers: granted }) : new Response(endless)
      },
    })
    await t.app.endpoints.create({ url: URL_OF_SUBSCRIBER })
    await t.send({ type: 'news.out' })
    expect(t.runs).toMatchObject([{ ending: 'done' }])
    expect(methods).toEqual(['OPTIONS', 'POST'])
    await t.stop()
  })

  it('are still guarded: no forbidden URL is accepted, and none that was stored is posted to', async () => {
    const urls: string[] = []
    const fetch: TestFetch = ({ url }) => {
      urls.push(url)
      return new Response('ok')
    }
    const store = ownFile()
    const open = await testApp(delivering({ delivery: { allowLoopback: true } }), { store, fetch })
    await open.app.endpoints.create({ url: 'http://127.0.0.1:8080/hook' })
    await open.send({ type: 'news.out' })
    expect(urls).toEqual(['http://127.0.0.1:8080/hook'])
    await open.stop()
    const t = await testApp(delivering(), { store, fetch })
    for (const url of [
      'http://subscriber.example/',
      'https://10.0.0.1/',
      'https://[::1]/',
      'https://metadata.internal/',
    ])
      await expect(t.app.endpoints.create({ url })).rejects.toThrow('url')
    await t.send({ type: 'news.out' })
    expect(t.runs).toMatchObject([
      { ending: 'dead', error: 'PermanentError: guarded: The destination is not allowed.' },
    ])
    expect(urls).toHaveLength(1)
    await t.stop()
  })
})

describe('limited calls', () => {
  it('reach the function at the rate of the limit', async () => {
    const at: number[] = []
    const bodies: unknown[] = []
    const app = calling((fetch) => fetch('https://api.example/things', { method: 'PUT', body: '{"n":1}' }))
    const t = await testApp(app, {
      fetch: async (request) => {
        at.push(t.elapsed)
        bodies.push([request.method, request.url, await request.json()])
        await wait(t.clock, 300)
        return Response.json({ ok: true })
      },
    })
    await t.send(['a', 'b', 'c'].map((id) => ({ id, type: 'ping' })))
    await t.advance('5s')
    expect(at).toEqual([0, 1_100, 2_200])
    expect(bodies[0]).toEqual(['PUT', 'https://api.example/things', { n: 1 }])
    expect(t.runs.every(({ ending }) => ending === 'done')).toBe(true)
    await t.stop()
  })

  it('pause on a 429, fail with the error of the function, and end with the run', async () => {
    const at: number[] = []
    const answers: TestFetch[] = [
      () => new Response('', { status: 429, headers: { 'retry-after': '7' } }),
      () => {
        throw new TypeError('fetch failed')
      },
      () => new Promise<Response>(() => {}),
    ]
    const app = calling(async (fetch, signal) => {
      const { status } = await fetch('https://api.example/', { signal })
      if (status === 429) throw new Error('refused')
    })
    const t = await testApp(app, {
      fetch: (request) => {
        at.push(t.elapsed)
        return answers.shift()?.(request) ?? new Response('ok')
      },
    })
    await t.send({ type: 'ping' })
    await t.advance('1m')
    await t.send({ type: 'ping' })
    await t.advance('1m')
    expect(at).toEqual([0, 7_000, 60_000, 81_000])
    expect(t.runs.map(({ error }) => error)).toEqual([
      'Error: refused',
      'TypeError: fetch failed',
      expect.stringContaining('20'),
      undefined,
    ])
    await t.stop()
  })
})

describe('the clock', () => {
  it('stands still while a call of a watched client is pending', async () => {
    const clock = new VirtualClock()
    const database = clock.watch({
      // Real I/O: as many turns of the event loop as it needs, and no virtual time.
      query: async () => {
        for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
        return clock.monotonic()
      },
    })
    const asked: number[] = []
    const app = new Sluice({ store: 'memory:', log: false })
    app.flow('ask', { on: 'ping', window: { quiet: '1s' }, run: async () => void asked.push(await database.query()) })
    const t = await testApp(app, { clock })
    expect(t.clock).toBe(clock)
    await t.send({ type: 'ping' })
    await t.advance('1h')
    expect(asked).toEqual([1_000])
    expect(t.runs).toMatchObject([{ at: 1_000, ending: 'done' }])
    await t.stop()
  })

  it('advances until a script is over that waits on it', async () => {
    const app = new Sluice({ store: 'memory:', log: false })
    app.flow('note', { on: 'ping', window: { quiet: '10m' }, run: () => {} })
    const t = await testApp(app)
    const script = async (): Promise<number> => {
      await app.publish({ type: 'ping' })
      await wait(t.clock, 3_600_000)
      return t.elapsed
    }
    expect(await t.until(script())).toBe(3_600_000)
    expect(t.runs).toMatchObject([{ at: 600_000, ending: 'done' }])
    await expect(t.until(Promise.reject(new Error('over')))).rejects.toThrow('over')
    await t.stop()
  })

  it('is given or starts at now, and not both; and an app itself takes no fetch', async () => {
    const clock = new VirtualClock(Date.UTC(2030, 0, 1))
    clock.advance(5_000)
    const t = await testApp(new Sluice({ store: 'memory:', log: false }), { clock })
    expect(t.elapsed).toBe(0)
    await t.stop()
    await expect(testApp(new Sluice({ store: 'memory:', log: false }), { clock, now: 0 })).rejects.toThrow(
      'now must be omitted',
    )
    const given = { store: 'memory:', fetch: () => new Response() }
    expect(() => new Sluice(given)).toThrow('fetch')
  })
})
