// Tests `app.listen`: its options, trusted proxies, TLS, ports, and requests that arrive while it stops.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { IncomingMessage } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import type { ListenOptions } from '../../src/http/server.ts'
import type { ReceivedRequest, Source } from '../../src/receive/source.ts'
import { bytesOf, eventsIn, githubHeaders, problemOf, textOf, withGithub } from '../receive/scene.ts'
import { hook, impatient, listening, onTheWire, Wire } from './rig.ts'
import { ownFolder } from '../temporary-folder.ts'

const tls = {
  key: readFileSync(new URL('./fixtures/localhost-key.pem', import.meta.url)),
  cert: readFileSync(new URL('./fixtures/localhost-cert.pem', import.meta.url)),
}

/** Returns what a source sees of the request. */
function probe(seen: ReceivedRequest[]): Source {
  return {
    scheme: 'probe',
    secrets: ['s'],
    verify: (request) => void seen.push(request),
    events: () => [],
  }
}

async function seenBy(options: ListenOptions, headers: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const seen: ReceivedRequest[] = []
  const { url } = await listening(options, (app) => app.source('probe', probe(seen)))
  await fetch(`${url}/in/probe?a=1`, { method: 'POST', headers })
  return [seen[0]?.url.href.replace(new URL(url).host, 'here') ?? '', seen[0]?.address ?? '']
}

const FORWARDED = {
  'x-forwarded-for': '198.51.100.1, 203.0.113.9',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'hooks.example.com',
  forwarded: 'for=198.51.100.7;proto=https;host=evil.example.com',
}

describe('forwarded headers', () => {
  it.each<readonly [string, ListenOptions, readonly string[]]>([
    ['are ignored', {}, ['http://here/in/probe?a=1', '127.0.0.1']],
    [
      'are ignored if another proxy is listed',
      { trustProxy: ['10.0.0.0/8'] },
      ['http://here/in/probe?a=1', '127.0.0.1'],
    ],
    ['are ignored if none is listed', { trustProxy: [] }, ['http://here/in/probe?a=1', '127.0.0.1']],
    [
      'are believed if it is listed',
      { trustProxy: ['127.0.0.1'] },
      ['https://hooks.example.com/in/probe?a=1', '203.0.113.9'],
    ],
    [
      'are believed as far as proxies are listed',
      { trustProxy: ['127.0.0.0/8', '203.0.113.9'] },
      ['https://hooks.example.com/in/probe?a=1', '198.51.100.1'],
    ],
  ])('%s', async (_, options, expected) => {
    expect(await seenBy(options, FORWARDED)).toEqual(expected)
  })

  it('that are invalid are ignored, even from a listed proxy', async () => {
    const trustProxy = ['127.0.0.1']
    const [url] = await seenBy({ trustProxy }, { 'x-forwarded-proto': 'javascript', 'x-forwarded-host': 'a b/c?d' })
    expect(url).toBe('http://localhost/in/probe?a=1')
  })

  it('cannot change the path, and neither can a host header', async () => {
    const seen: ReceivedRequest[] = []
    const { port, app } = await listening({}, (one) =>
      one.source('probe', probe(seen)).route('GET', '/admin', () => new Response('inside')),
    )
    for (const host of ['x/in/probe?', 'x/admin?', 'x/admin#', 'u@x', '[', 'x:99999', '', 'é']) {
      const wire = new Wire(port).write(Buffer.from(`GET /elsewhere HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 'latin1'))
      await wire.answers()
      expect([host, wire.status]).toEqual([host, 404])
    }
    expect((await app.admin.sources.refused('')).every(({ path }) => path === '/elsewhere')).toBe(true)
  })

  it('may all be missing, including the host', async () => {
    const { port } = await listening()
    const wire = new Wire(port).write(
      onTheWire('{}')
        .toString()
        .replace('HTTP/1.1', 'HTTP/1.0')
        .replace(/host: .*\r\n/, ''),
    )
    await wire.answers()
    expect(wire.status).toBe(202)
  })
})

async function overTls(url: string, body: string): Promise<readonly [number, string]> {
  const headers = githubHeaders(body)
  const sending = tlsRequest(`${url}/in/github`, { method: 'POST', headers, ca: tls.cert, agent: false })
  sending.end(body)
  const [response] = (await once(sending, 'response')) as [IncomingMessage]
  return [response.statusCode ?? 0, await text(response)]
}

describe('TLS', () => {
  it('uses the given certificate', async () => {
    const { url, store } = await listening({ tls })
    expect(url).toMatch(/^https:/)
    expect((await overTls(url, '{"a":1}'))[0]).toBe(202)
    expect((await eventsIn(store)).map(({ body }) => textOf(body))).toEqual(['{"a":1}'])
  })

  it('disconnects a client that does not start a handshake', async () => {
    const { port, url } = await impatient({ tls })
    const wire = new Wire(port)
    expect((await overTls(url, '{}'))[0]).toBe(202)
    await wire.closed
  })

  it.each<ListenOptions>([
    { tls: { key: 'none', cert: 'none' } },
    { trustProxy: ['not an address'] },
    { trustProxy: '127.0.0.1' as unknown as string[] },
    { trustProxies: [] } as ListenOptions,
    { port: 70_000 },
    { port: 1.5 },
  ])('and other options that cannot be are refused: %j', async (options) => {
    const app = new Sluice({ store: 'memory:', log: false })
    onTestFinished(() => app.stop())
    await expect(app.listen({ port: 0, ...options })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})

/** Sets `PORT` while `use` runs. */
async function withPort(port: string | undefined, use: () => Promise<void>): Promise<void> {
  const before = process.env['PORT']
  process.env['PORT'] = port
  try {
    await use()
  } finally {
    delete process.env['PORT']
    if (before !== undefined) process.env['PORT'] = before
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function unserved(): Sluice {
  const made = withGithub(new Sluice({ store: 'memory:', log: false }))
  onTestFinished(() => made.stop())
  return made
}

describe('the port', () => {
  it('is that of the environment if none is given', async () => {
    const port = await freePort()
    await withPort(String(port), async () => {
      const { url, sources } = await unserved().listen()
      expect(url).toBe(`http://127.0.0.1:${port}`)
      expect(sources).toEqual([{ name: 'github', scheme: 'github', path: '/in/github' }])
      expect((await hook(url, '{}')).status).toBe(202)
      expect((await unserved().listen({ port: 0 })).url).not.toBe(url)
    })
  })

  it('is 8787 if the environment has an empty one', async () => {
    await withPort(' ', async () => {
      const where = await unserved()
        .listen()
        .then(({ url }) => url, String)
      expect(where).toMatch(/127\.0\.0\.1:8787$|Port 8787 of/)
    })
  })

  it('of the environment is rejected if it is invalid', async () => {
    await withPort('http', async () => {
      await expect(unserved().listen()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    })
  })

  it('that is taken causes LISTEN_FAILED, and the app can listen on another one', async () => {
    const { port } = await listening()
    const second = unserved()
    await expect(second.listen({ port })).rejects.toMatchObject({ code: 'LISTEN_FAILED' })
    expect((await hook((await second.listen({ port: 0 })).url, '{}')).status).toBe(202)
  })
})

/** A real store whose appends wait at a gate. */
async function gated(): Promise<{ readonly store: Store; readonly open: () => void; readonly reached: Promise<void> }> {
  const real = await openStore('memory:')
  const [gate, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const append: Store['append'] = async (call) => {
    reached.resolve()
    await gate.promise
    return real.append(call)
  }
  const store = new Proxy(real, {
    get: (target, name): unknown => {
      const own: unknown = name === 'append' ? append : Reflect.get(target, name)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })
  return { store, open: gate.resolve, reached: reached.promise }
}

/** Resolves when nothing listens on the port any more. */
async function refusing(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isRefused = await once(socket, 'connect').then(
      () => false,
      () => true,
    )
    socket.destroy()
    if (isRefused) return
  }
}

describe('close', () => {
  it('responds to requests that have arrived, accepts no new ones, and does not wait for kept-alive connections', async () => {
    const { store, open, reached } = await gated()
    const { port, close } = await listening({}, withGithub, { store })
    const wire = new Wire(port).write(onTheWire('{}'))
    await reached
    const closed = close()
    await refusing(port)
    open()
    await Promise.all([closed, wire.closed])
    expect(wire.status).toBe(202)
    expect(await eventsIn(store)).toHaveLength(1)
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
  })

  it('may be called twice, and before stop', async () => {
    const { close, app } = await listening()
    await Promise.all([close(), close()])
    await app.stop()
  })

  it('also closes a server that starts to listen while its app stops', async () => {
    const app = withGithub(new Sluice({ store: 'memory:', log: false }))
    const port = await freePort()
    const late = app.listen({ port })
    await app.stop()
    await expect(late).rejects.toMatchObject({ code: 'APP_STOPPED' })
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
  })
})

interface Sent {
  readonly body: string
  readonly status: number | 'none'
}

async function sent(port: number, body: string, agent: Agent): Promise<Sent> {
  const headers = { ...githubHeaders(body, { delivery: body }), 'content-length': Buffer.byteLength(body) }
  const sending = plainRequest({ port, host: '127.0.0.1', path: '/in/github', method: 'POST', headers, agent })
  try {
    sending.end(body)
    const [response] = (await once(sending, 'response')) as [IncomingMessage]
    await text(response)
    return { body, status: response.statusCode ?? 0 }
  } catch {
    return { body, status: 'none' }
  }
}

describe('stop', () => {
  it('during requests: each is stored and gets a 2xx, or gets another status', async () => {
    const folder = ownFolder()
    const address = `sqlite:${join(folder, 'a.db')}`
    const app = withGithub(new Sluice({ store: address, log: false, addressRate: { rate: Infinity, per: '1m' } }))
    await app.start()
    const { url } = await app.listen({ port: 0 })
    const agent = new Agent({ keepAlive: true, maxSockets: 16 })
    onTestFinished(() => agent.destroy())
    let acked = 0
    let stopping: Promise<void> | undefined
    const senders = Array.from({ length: 16 }, async (_, sender): Promise<readonly Sent[]> => {
      const all: Sent[] = []
      for (let n = 0; n < 60; n++) {
        const one = await sent(Number(new URL(url).port), `{"n":"${sender}/${n}"}`, agent)
        all.push(one)
        if (one.status === 202 && ++acked === 200) stopping = app.stop()
      }
      return all
    })
    const all = (await Promise.all(senders)).flat()
    await stopping
    expect(new Set(all.map(({ status }) => status)).isSubsetOf(new Set([202, 503, 'none']))).toBe(true)
    const store = await openStore(address)
    onTestFinished(() => store.close())
    const stored = new Set((await eventsIn(store)).map(({ body }) => textOf(body)))
    const taken = all.filter(({ status }) => status === 202).map(({ body }) => body)
    expect(taken.filter((body) => !stored.has(body))).toEqual([])
    expect(taken.length).toBeGreaterThanOrEqual(200)
    expect(taken.length).toBeLessThan(960)
  })

  it('waits for a request that came through fetch', async () => {
    const { store, open, reached } = await gated()
    const app = withGithub(new Sluice({ store, log: false }))
    const body = bytesOf('{}')
    const answer = app.fetch(new Request('http://x/in/github', { method: 'POST', headers: githubHeaders(body), body }))
    await reached
    let isStopped = false
    const stopped = app.stop().then(() => (isStopped = true))
    const late = await app.fetch(new Request('http://x/in/github', { method: 'POST' }))
    expect((await problemOf(late)).code).toBe('APP_STOPPED')
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(isStopped).toBe(false)
    open()
    expect((await answer).status).toBe(202)
    await stopped
    await store.close()
  })

  it('does not wait for a slow sender longer than its timeout', async () => {
    const { port, app } = await listening({}, withGithub, { shutdownTimeout: 100 })
    const wire = new Wire(port).write(onTheWire('{}'.padEnd(1_000)).subarray(0, -900))
    // The slow request is in progress once a later request on another connection has its response.
    await hook(`http://127.0.0.1:${port}`, '{}')
    await app.stop()
    wire.socket.destroy()
  })
})
